"""`natgrad …`: every experiment a command away.

Wrong input ends with one line on stderr and exit code 2; a run that breaks down with exit code 1; an interrupted one
with 130; one that SIGTERM ended with 143. Everything heavy (plots, tables, the live display) is imported by the command
that needs it.
"""

import os
import sys
import traceback
from pathlib import Path
from typing import Annotated, Any

import typer

from natgrad import __version__
from natgrad.experiment import arguments as given
from natgrad.experiment.commands import draw_movie, export
from natgrad.extras import MissingExtra

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Natural gradient descent for neural networks that solve PDEs.",
)


def _version(asked: bool) -> None:
    if asked:
        print("natgrad", __version__)
        raise typer.Exit


Version = Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")]


@app.callback()
def natgrad(
    version: Version = False,
) -> None:
    """Natural gradient descent for neural networks that solve PDEs."""


@app.command("list")
def list_(problem: given.Listed = None) -> None:
    """Show the problems and the optimizers, or one problem's presets."""
    from natgrad.experiment.listing import listing

    print(listing(problem))


@app.command()
@given.takes_common
def run(
    problem: given.Problem,
    *,
    optimizer: given.Optimizer = "auto",
    common: given.Common,
    together: given.Together = False,
    resume: Annotated[bool, typer.Option("--resume", help="Continue the run in the folder.")] = False,
    windows: given.Windows = None,
    via: given.Via = None,
    devices: given.Devices = None,
    memory: given.Memory = None,
    distributed: given.Distributed = False,
    coordinator: given.Coordinator = None,
    process_id: given.ProcessId = None,
    num_processes: given.NumProcesses = None,
    log: given.Log = None,
) -> None:
    """Train a network, and write the run into a folder."""
    from natgrad.experiment.joining import join
    from natgrad.experiment.many import check_together, parse_list, train_all, train_together
    from natgrad.experiment.single import train_one
    from natgrad.experiment.statuses import exit_code

    seeds, out = common.seeds, common.out
    if together:
        several = {"devices": devices, "distributed": distributed or None, "coordinator": coordinator}
        check_together(seeds, **several, num_processes=num_processes)
    setup(common.cache)
    join(devices, distributed, coordinator, process_id, num_processes)
    configs = common.configs(problem, optimizer, devices=devices, memory=memory, windows=windows, via=via)
    folders = [Path(c.folder) if out is None else out / f"seed{c.seed}" if seeds else out for c in configs]
    how: dict[str, Any] = {"resume": resume, "force": common.force, "quiet": common.quiet, "plots": common.plots}
    how["log"] = () if log is None else parse_list("--log", log)
    train_several = train_together if together else train_all
    results = train_several(configs, folders, **how) if seeds else [train_one(configs[0], folders[0], **how)]
    raise typer.Exit(max(exit_code(result["status"]) for result in results))


@app.command()
@given.takes_common
def compare(
    problem: given.Problem,
    optimizers: Annotated[str, typer.Option(help="The optimizers to compare, separated by commas.")],
    common: given.Common,
) -> None:
    """Run several optimizers on one problem. Write a table and a plot. Runs that exist are used."""
    from natgrad.experiment.many import parse_list

    setup(common.cache)
    names = parse_list("--optimizers", optimizers)
    configs = [config for name in names for config in common.configs(problem, name)]
    series(configs, common, Path("runs") / problem / f"compare-{common.preset}")


@app.command()
@given.takes_common
def sweep(
    problem: given.Problem,
    param: Annotated[str, typer.Option(help="The option to vary, e.g. gamma or problem.width.")],
    values: Annotated[str, typer.Option(help="The values of the option, separated by commas.")],
    *,
    optimizer: given.Optimizer = "auto",
    common: given.Common,
) -> None:
    """Do one run for each value of an option. Write a table and a plot. Runs that exist are used."""
    from natgrad.experiment.many import parse_list

    setup(common.cache)
    settings = [f"{param}={value}" for value in parse_list("--values", values)]
    configs = [config for setting in settings for config in common.configs(problem, optimizer, setting)]
    series(configs, common, Path("runs") / problem / f"sweep-{optimizer}-{common.preset}-{param}")


def series(configs: list[Any], common: given.Common, home: Path) -> None:
    """Trains what is missing and puts the table and the overlay plot into --out (`home` where none is given)."""
    from natgrad.experiment.folder import held
    from natgrad.experiment.many import overview, train_missing
    from natgrad.experiment.statuses import exit_code

    out, quiet = common.out, common.quiet
    folders = [Path(c.folder) if out is None else out / Path(c.folder).name for c in configs]
    with held(out or home, "series") as folder:
        results = train_missing(configs, folders, force=common.force, quiet=quiet, plots=common.plots)
        overview(folders[: len(results)], folder, quiet)
    raise typer.Exit(max(exit_code(result["status"]) for result in results))


@app.command()
def spectrum(
    problem: given.Problem,
    optimizer: given.Optimizer = "auto",
    preset: given.Preset = "small",
    recipe: given.Recipe = "default",
    steps: given.Steps = None,
    seed: given.Seed = 0,
    set_: given.Set = None,
    at: Annotated[
        str | None,
        typer.Option(help="The iterations, separated by commas. The default is six, spread over the run."),
    ] = None,
    out: given.Out = None,
    force: given.Overwrite = False,
    quiet: given.Quiet = False,
    cache: given.Cache = True,
) -> None:
    """Write the eigenvalues of the Gramian along training. The files are spectrum.npz and spectrum.png."""
    from natgrad.experiment import spectrum as spectra
    from natgrad.experiment.config import Config
    from natgrad.experiment.many import parse_list
    from natgrad.experiment.single import speaker

    setup(cache)
    config = Config(problem, optimizer, preset, recipe, seed, steps, settings=tuple(set_ or ()))
    try:
        iterations = [int(part) for part in parse_list("--at", at)] if at is not None else None
    except ValueError:
        raise ValueError(f"--at takes iterations separated by commas, such as 0,10,100, got {at!r}") from None
    folder = out or Path("runs") / problem / f"spectrum-{Path(config.folder).name}"
    for path in spectra.spectrum(config, iterations, folder, force=force, quiet=quiet):
        speaker(quiet)(f"wrote {path}")


@app.command()
def table(
    runs: given.Runs,
    form: Annotated[str, typer.Option("--format", help="The format: markdown, csv or latex.")] = "markdown",
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write the table into this file.")] = None,
    force: given.Overwrite = False,
) -> None:
    """Print the error at the plateau and the time to it. Each row is an optimizer, each column a problem."""
    from natgrad.experiment.runs import find
    from natgrad.experiment.tables import document
    from natgrad.storage.files import writable, write

    path = None if output is None else writable(output, force, *given.OUTPUT)
    text = document(find(runs), form)
    if path is None:
        print(text, end="")
    else:
        write(path, text)
        print(f"wrote {path}")


@app.command()
def plot(
    runs: given.Runs,
    out: given.Pictures = None,
    fields: Annotated[bool, typer.Option(help="Draw the solutions too.")] = True,
    movie: given.Movie = None,
    times: given.Times = None,
    force: given.Overwrite = False,
    quiet: given.Quiet = False,
) -> None:
    """Draw convergence, solver and solutions of runs. With --movie, draw one run over time."""
    from natgrad.experiment.folder import held
    from natgrad.experiment.plots import plot as draw
    from natgrad.experiment.runs import find
    from natgrad.experiment.single import speaker

    setup(cache=True)
    found = find(runs)
    if movie is not None or times is not None or force:
        draw_movie(found, movie, times, None if fields else "--no-fields", out, force=force, quiet=quiet)
        return
    own = found[0].folder / "plots" if len(found) == 1 and found[0].folder.is_dir() else Path("plots")
    with held(out or own, "pictures") as folder:
        for path in folder.draw(lambda workshop: draw(found, workshop, fields=fields)):
            speaker(quiet)(f"wrote {path}")


app.command()(export)


@app.command()
def watch(runs: given.Folders, port: given.Port = 0) -> None:
    """Follow runs in a browser while they go on. The page is local and refreshes itself. Ctrl-C ends it."""
    from natgrad.experiment.watch import serve

    serve(runs, port)


@app.command()
def report(
    runs: given.Runs,
    output: Annotated[Path, typer.Option("--output", "-o", help="The file of the page.")] = Path("report.html"),
    force: given.Overwrite = False,
    fields: Annotated[bool, typer.Option(help="Draw the solutions too.")] = True,
    quiet: given.Quiet = False,
) -> None:
    """Write one self-contained page about runs. It has curves, solutions, the table and the commands."""
    from natgrad.experiment.report import page
    from natgrad.experiment.runs import find
    from natgrad.experiment.single import speaker
    from natgrad.storage.files import writable, write

    setup(cache=True)
    found = find(runs)
    writable(output, force, *given.OUTPUT)
    write(output, page(found, fields=fields))
    speaker(quiet)(f"wrote {output}")


def setup(cache: bool) -> None:
    """Double precision, and compiled programs kept in the user's cache folder, or not."""
    import jax

    jax.config.update("jax_enable_x64", True)
    if not cache:
        os.environ["NATGRAD_CACHE"] = "0"


def main(arguments: list[str] | None = None) -> None:
    """The command line; ends the process."""
    try:
        code = command(arguments)
        sys.stdout.flush()
    except BrokenPipeError:  # whoever read the output, `head` say, has gone
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 1
    sys.exit(code)


def command(arguments: list[str] | None) -> int:
    """The exit code of a command line."""
    try:
        code = app(arguments, prog_name="natgrad", standalone_mode=False)
        return code if isinstance(code, int) else 0
    except typer.Exit as stop:
        return stop.exit_code
    except (typer.Abort, KeyboardInterrupt):
        return 130
    except BrokenPipeError:
        raise
    except (ValueError, MissingExtra) as error:
        gone(error)
        return complain(str(error))
    except OSError as error:
        gone(error)
        return complain(f"{error.filename or ''}: {error.strerror or error}".lstrip(": "))
    except MemoryError as error:
        gone(error)
        return complain(f"there is not enough memory: {error}".rstrip(": "))
    except Exception as error:
        gone(error)
        if "RESOURCE_EXHAUSTED" in str(error):
            return complain(f"there is not enough memory: {str(error).splitlines()[0]}")
        if not hasattr(error, "format_message"):  # the parser's own complaints have it, and nothing else does
            raise
        if type(error).__name__ == "NoArgsIsHelpError":
            print(error.format_message())
            return 2
        return complain(error.format_message())


def gone(error: Exception) -> None:
    """Ends this process at once where another one of its run has ended, or will never hear why this one does."""
    jax = sys.modules.get("jax")
    if jax is None or jax.process_count() == 1:
        return
    from natgrad.backend.parallel import lost

    if lost(error):
        complain("another process of this run has ended: start all of them again with --resume")
    elif isinstance(error, ValueError):  # all of them found the same mistake
        return
    else:
        traceback.print_exc()
    sys.stdout.flush()
    os._exit(1)  # a regular exit would wait for the others


def complain(message: str) -> int:
    """One line, exit code 2."""
    print("natgrad:", " ".join(message.split()), file=sys.stderr)
    return 2
