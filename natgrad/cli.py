"""`natgrad …`: every experiment a command away.

Wrong input ends with one line on stderr and exit code 2; a run that breaks down with exit code 1; an interrupted one
with 130. Everything heavy (plots, tables, the live display) is imported by the command that needs it.
"""

import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Natural gradient descent for neural networks that solve PDEs.",
)

Problem = Annotated[str, typer.Argument(help="The problem; `natgrad list` shows them.")]
Optimizer = Annotated[str, typer.Option(help="The optimizer; `natgrad list` shows them.")]
Preset = Annotated[str, typer.Option(help="The size of the problem: small or paper.")]
Recipe = Annotated[str, typer.Option(help="default, or published for the paper's algorithm to the letter.")]
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
Runs = Annotated[list[Path], typer.Argument(help="Run folders, or folders of run folders.")]


@app.command("list")
def list_() -> None:
    """Problems, optimizers and presets, with sizes."""
    from natgrad.experiment.listing import listing

    print(listing())


@app.command()
def run(
    problem: Problem,
    optimizer: Optimizer = "nystrom-gaussian",
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
    plots: Plots = True,
    cache: Cache = True,
) -> None:
    """Trains and writes a run folder."""
    from natgrad.experiment.config import Config
    from natgrad.experiment.many import parse_seeds, train_all

    setup(cache)
    shared: dict[str, Any] = {
        "problem": problem, "optimizer": optimizer, "preset": preset, "recipe": recipe, "steps": steps,
        "evaluate_every": evaluate_every, "target_error": target_error, "time_limit": time_limit,
        "settings": tuple(set_ or ()),
    }  # fmt: skip
    configs = [Config(seed=s, **shared) for s in parse_seeds(seed, seeds)]
    folders = [Path(c.folder) if out is None else out / f"seed{c.seed}" if seeds else out for c in configs]
    results = train_all(configs, folders, resume=resume, force=force, quiet=quiet, plots=plots)
    raise typer.Exit(max(exit_code(result) for result in results))


def exit_code(result: dict[str, Any]) -> int:
    """1 for a breakdown, 130 for an interruption, else 0."""
    return {"not finite": 1, "no descent": 1, "interrupted": 130}.get(result["status"], 0)


def setup(cache: bool) -> None:
    """Double precision, and compiled programs kept in the user's cache folder."""
    import jax

    jax.config.update("jax_enable_x64", True)
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(home) / "natgrad" / "compiled"
    if not cache or "JAX_COMPILATION_CACHE_DIR" in os.environ:
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:  # no home to write to: compile every time
        return
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.5)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", 0)


def main(arguments: list[str] | None = None) -> None:
    """The command line; ends the process."""
    try:
        code = app(arguments, prog_name="natgrad", standalone_mode=False)
        sys.exit(code if isinstance(code, int) else 0)
    except typer.Exit as stop:
        sys.exit(stop.exit_code)
    except (typer.Abort, KeyboardInterrupt):
        sys.exit(130)
    except ValueError as error:
        complain(str(error))
    except OSError as error:
        complain(f"{error.filename or ''}: {error.strerror or error}".lstrip(": "))
    except Exception as error:
        if not hasattr(error, "format_message"):  # the parser's own complaints have it, and nothing else does
            raise
        if type(error).__name__ == "NoArgsIsHelpError":
            print(error.format_message())
            sys.exit(2)
        complain(error.format_message())


def complain(message: str) -> None:
    """One line, exit code 2."""
    print("natgrad:", " ".join(message.split()), file=sys.stderr)
    sys.exit(2)
