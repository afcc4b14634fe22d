"""`natgrad …`: every experiment a command away.

Wrong input ends with one line on stderr and exit code 2; a run that breaks down with exit code 1; an interrupted one
with 130. Everything heavy (plots, tables, the live display) is imported by the command that needs it.
"""

import os
import sys
import traceback
from pathlib import Path
from typing import Annotated, Any

import typer

from natgrad.extras import MissingExtra

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Natural gradient descent for neural networks that solve PDEs.",
)

Problem = Annotated[str, typer.Argument(help="The problem; `natgrad list` shows them.")]
Optimizer = Annotated[str, typer.Option(help="The optimizer; `natgrad list` shows them.")]
Preset = Annotated[str, typer.Option(help="Its sizes: small, or paper for the paper's; `natgrad list` has them all.")]
Recipe = Annotated[str, typer.Option(help="default, or published: the paper's algorithm, points and metrics.")]
Steps = Annotated[int | None, typer.Option(help="Iterations at most; the preset says how many by default.")]
Seed = Annotated[int, typer.Option(help="Seeds the network, the points and the solver.")]
Seeds = Annotated[str | None, typer.Option(help="Several seeds, one run each: 0:10 or 0,3,5.")]
Set = Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Any option, e.g. problem.width=16.")]
Out = Annotated[Path | None, typer.Option(help="The run folder (of several runs: the folder of their folders).")]
Target = Annotated[float | None, typer.Option(help="Stop at this relative H¹ error.")]
Limit = Annotated[float | None, typer.Option(help="Stop after so many seconds of stepping.")]
Every = Annotated[int | None, typer.Option(help="Evaluate the error every so many iterations.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing.")]
Force = Annotated[bool, typer.Option("--force", help="Start an existing run over.")]
Plots = Annotated[bool, typer.Option(help="Draw pictures at the end.")]
Cache = Annotated[bool, typer.Option(help="Keep compiled programs in the user's cache folder.")]
Devices = Annotated[
    int | None, typer.Option(help="Spread the points over so many devices (of all processes; a processor is divided).")
]
Memory = Annotated[str | None, typer.Option(help="What a device may use, e.g. 8GB: strategy, batch and rank follow.")]
Coordinator = Annotated[str | None, typer.Option(metavar="HOST:PORT", help="Of process 0, for several processes.")]
ProcessId = Annotated[int | None, typer.Option(help="Which of them this one is, from 0.")]
NumProcesses = Annotated[int | None, typer.Option(help="How many processes there are.")]
Runs = Annotated[list[Path], typer.Argument(help="Run folders, folders of run folders, or archives (.tar.xz).")]


def _version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        print("natgrad", version("natgrad"))
        raise typer.Exit


@app.callback()
def natgrad(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Say which.")] = False,
) -> None:
    """Natural gradient descent for neural networks that solve PDEs."""


@app.command("list")
def list_() -> None:
    """Problems, optimizers and presets, with sizes."""
    from natgrad.experiment.listing import listing

    print(listing())


@app.command()
def run(
    problem: Problem,
    optimizer: Optimizer = "auto",
    preset: Preset = "small",
    recipe: Recipe = "default",
    steps: Steps = None,
    seed: Seed = 0,
    seeds: Seeds = None,
    set_: Set = None,
    out: Out = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the run in the folder.")] = False,
    force: Force = False,
    quiet: Quiet = False,
    target_error: Target = None,
    time_limit: Limit = None,
    evaluate_every: Every = None,
    devices: Devices = None,
    memory: Memory = None,
    coordinator: Coordinator = None,
    process_id: ProcessId = None,
    num_processes: NumProcesses = None,
    plots: Plots = True,
    cache: Cache = True,
) -> None:
    """Trains and writes a run folder."""
    from natgrad.experiment.config import Config
    from natgrad.experiment.many import parse_seeds, train_all

    setup(cache)
    join(devices, coordinator, process_id, num_processes)
    shared: dict[str, Any] = {
        "problem": problem, "optimizer": optimizer, "preset": preset, "recipe": recipe, "steps": steps,
        "evaluate_every": evaluate_every, "target_error": target_error, "time_limit": time_limit,
        "settings": tuple(set_ or ()), "devices": devices, "memory": memory,
    }  # fmt: skip
    configs = [Config(seed=s, **shared) for s in parse_seeds(seed, seeds)]
    folders = [Path(c.folder) if out is None else out / f"seed{c.seed}" if seeds else out for c in configs]
    results = train_all(configs, folders, resume=resume, force=force, quiet=quiet, plots=plots)
    raise typer.Exit(max(exit_code(result) for result in results))


@app.command()
def compare(
    problem: Problem,
    optimizers: Annotated[str, typer.Option(help="Their names, separated by commas.")],
    preset: Preset = "small",
    recipe: Recipe = "default",
    steps: Steps = None,
    seed: Seed = 0,
    seeds: Seeds = None,
    set_: Set = None,
    out: Out = None,
    force: Force = False,
    quiet: Quiet = False,
    target_error: Target = None,
    time_limit: Limit = None,
    evaluate_every: Every = None,
    plots: Plots = True,
    cache: Cache = True,
) -> None:
    """Several optimizers on one problem: their runs, an overlay plot and a table. Runs that exist are used."""
    from natgrad.experiment.config import Config
    from natgrad.experiment.many import parse_list, parse_seeds

    setup(cache)
    names = parse_list("--optimizers", optimizers)
    configs = [
        Config(problem, name, preset, recipe, s, steps, evaluate_every, target_error, time_limit, tuple(set_ or ()))
        for name in names
        for s in parse_seeds(seed, seeds)
    ]
    series(configs, out, Path("runs") / problem / f"compare-{preset}", force=force, quiet=quiet, plots=plots)


@app.command()
def sweep(
    problem: Problem,
    param: Annotated[str, typer.Option(help="The option to vary, e.g. gamma or problem.width.")],
    values: Annotated[str, typer.Option(help="Its values, separated by commas.")],
    optimizer: Optimizer = "auto",
    preset: Preset = "small",
    recipe: Recipe = "default",
    steps: Steps = None,
    seed: Seed = 0,
    seeds: Seeds = None,
    set_: Set = None,
    out: Out = None,
    force: Force = False,
    quiet: Quiet = False,
    target_error: Target = None,
    time_limit: Limit = None,
    evaluate_every: Every = None,
    plots: Plots = True,
    cache: Cache = True,
) -> None:
    """One option at several values: a run each, a table and a plot. Runs that exist are used."""
    from natgrad.experiment.config import Config
    from natgrad.experiment.many import parse_list, parse_seeds

    setup(cache)
    given = tuple(set_ or ())
    configs = [
        Config(problem, optimizer, preset, recipe, s, steps, evaluate_every, target_error, time_limit,
               (*given, f"{param}={value}"))
        for value in parse_list("--values", values)
        for s in parse_seeds(seed, seeds)
    ]  # fmt: skip
    home = Path("runs") / problem / f"sweep-{optimizer}-{preset}-{param}"
    series(configs, out, home, force=force, quiet=quiet, plots=plots)


def series(configs: list[Any], out: Path | None, home: Path, *, force: bool, quiet: bool, plots: bool) -> None:
    """Trains what is missing and puts the table and the overlay plot into `out` (`home` where none is given)."""
    from natgrad.experiment.many import overview, train_missing

    folders = [Path(c.folder) if out is None else out / Path(c.folder).name for c in configs]
    results = train_missing(configs, folders, force=force, quiet=quiet, plots=plots)
    overview(folders[: len(results)], out or home, quiet)
    raise typer.Exit(max(exit_code(result) for result in results))


@app.command()
def spectrum(
    problem: Problem,
    optimizer: Optimizer = "auto",
    preset: Preset = "small",
    recipe: Recipe = "default",
    steps: Steps = None,
    seed: Seed = 0,
    set_: Set = None,
    at: Annotated[
        str | None, typer.Option(help="Iterations, separated by commas; six over the run by default.")
    ] = None,
    out: Out = None,
    force: Force = False,
    quiet: Quiet = False,
    cache: Cache = True,
) -> None:
    """Eigenvalues of the Gramian along training, as spectrum.npz and spectrum.png."""
    from natgrad.experiment import spectrum as spectra
    from natgrad.experiment.config import Config
    from natgrad.experiment.many import parse_list, speaker

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
    runs: Runs,
    form: Annotated[str, typer.Option("--format", help="markdown, csv or latex.")] = "markdown",
    output: Annotated[Path | None, typer.Option("--output", "-o", help="A file, instead of the terminal.")] = None,
) -> None:
    """The error at the plateau and the time to it: optimizers as rows, problems as columns."""
    from natgrad.experiment.files import write
    from natgrad.experiment.runs import find
    from natgrad.experiment.tables import document

    text = document(find(runs), form)
    if output is None:
        print(text, end="")
    else:
        write(writable(output), text)
        print(f"wrote {output}")


@app.command()
def plot(
    runs: Runs,
    out: Annotated[Path | None, typer.Option(help="The folder of the pictures; of one run, its own plots/.")] = None,
    fields: Annotated[bool, typer.Option(help="Draw the fields too.")] = True,
    quiet: Quiet = False,
) -> None:
    """Convergence against iterations and time, what the solver did, and the fields."""
    from natgrad.experiment.many import speaker
    from natgrad.experiment.plots import plot as draw
    from natgrad.experiment.runs import find

    setup(cache=True)
    found = find(runs)
    folder = out or (found[0].folder / "plots" if len(found) == 1 and found[0].folder.is_dir() else Path("plots"))
    for path in draw(found, folder, fields=fields):
        speaker(quiet)(f"wrote {path}")


@app.command()
def report(
    runs: Runs,
    output: Annotated[Path, typer.Option("--output", "-o", help="The page.")] = Path("report.html"),
    fields: Annotated[bool, typer.Option(help="Draw the fields too.")] = True,
    quiet: Quiet = False,
) -> None:
    """One self-contained page with interactive curves, fields, the table and the commands."""
    from natgrad.experiment.files import write
    from natgrad.experiment.many import speaker
    from natgrad.experiment.report import page
    from natgrad.experiment.runs import find

    setup(cache=True)
    found = find(runs)
    writable(output)
    write(output, page(found, fields=fields))
    speaker(quiet)(f"wrote {output}")


def writable(path: Path) -> Path:
    """The path itself, if a file can be there."""
    if path.is_dir() or not path.parent.is_dir():
        reason = "is a folder" if path.is_dir() else "lies in a folder that does not exist"
        raise ValueError(f"{path} {reason}: --output takes the name of a file")
    return path


def exit_code(result: dict[str, Any]) -> int:
    """1 for a breakdown, 130 for an interruption, else 0."""
    return {"not finite": 1, "no descent": 1, "interrupted": 130}.get(result["status"], 0)


def setup(cache: bool) -> None:
    """Double precision, and compiled programs kept in the user's cache folder, or not."""
    import jax

    jax.config.update("jax_enable_x64", True)
    if not cache:
        os.environ["NATGRAD_CACHE"] = "0"


def join(devices: int | None, coordinator: str | None, process_id: int | None, num_processes: int | None) -> None:
    """The devices of this process, and the other processes, before JAX looks for either."""
    import jax

    from natgrad.parallel import connect
    from natgrad.programs import disk

    given = [value is not None for value in (coordinator, process_id, num_processes)]
    if any(given) and not all(given):
        raise ValueError("several processes need all of --coordinator HOST:PORT, --process-id I and --num-processes N")
    count = num_processes or 1
    if devices is not None:
        if devices < 1 or devices % count:
            raise ValueError(
                f"--devices must be a positive multiple of the number of processes ({count}), got {devices}"
            )
        most = max(16, os.cpu_count() or 1)  # more parts of a processor than that wait for each other without end
        if devices // count > most:
            raise ValueError(f"--devices must be at most {most} a process, got {devices}")
        if "xla_force_host_platform_device_count" not in os.environ.get("XLA_FLAGS", ""):
            jax.config.update("jax_num_cpu_devices", devices // count)
    if coordinator is not None and process_id is not None:
        disk.keep_by_jax()
        connect(coordinator, process_id, count)
    elif jax.default_backend() != "cpu":
        disk.keep_by_jax()


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
    except Exception as error:
        gone(error)
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
    from natgrad.parallel import lost

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
