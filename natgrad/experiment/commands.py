"""Commands that write what other tools show: `natgrad export`, and the movie of `natgrad plot`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from natgrad.experiment import arguments as given
from natgrad.storage.files import writable


def export(
    run: Annotated[Path, typer.Argument(help="The folder of a run.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The file: .vtu, .pvd (a series), .npz or .csv.")],
    mesh: Annotated[Path | None, typer.Option(help="A mesh of space that meshio reads, such as plate.msh.")] = None,
    resolution: Annotated[int | None, typer.Option(help="Cells along each axis of the domain's own grid.")] = None,
    times: given.Times = None,
    force: given.Overwrite = False,
    quiet: given.Quiet = False,
) -> None:
    """Write the solution for ParaView, NumPy or a spreadsheet. Its gradient and its error are in there."""
    import jax

    from natgrad.experiment.export import export as write_run
    from natgrad.experiment.runs import load
    from natgrad.experiment.single import speaker

    jax.config.update("jax_enable_x64", True)
    if resolution is not None and resolution < 1:
        raise ValueError(f"--resolution must be a positive integer, got {resolution}")
    moments = given.parse_times(times)
    writable(output, force, *given.OUTPUT)
    paths = write_run(load(run), output, mesh=mesh, resolution=resolution, times=moments, force=force)
    speaker(quiet)(f"wrote {paths[-1]}" + (f" and its {len(paths) - 1} times" if len(paths) > 1 else ""))


def draw_movie(
    runs: Sequence[Any], path: Path | None, times: str | None, fields: str | None, out: Any, *, force: bool, quiet: bool
) -> None:
    """The movie of one run, the only picture that is drawn then."""
    from natgrad.experiment.movie import of_run
    from natgrad.experiment.single import speaker

    if path is None:
        raise ValueError("--times and --force are those of a --movie: give its name, such as --movie u.gif")
    if len(runs) != 1:
        raise ValueError(f"--movie is that of one run, and there are {len(runs)}")
    if fields or out is not None:
        raise ValueError(f"--movie is the only picture that is drawn: leave {fields or '--out'} out")
    writable(path, force, "--movie", "--force")
    speaker(quiet)(f"wrote {of_run(path, runs[0], given.parse_times(times), force=force)}")
