"""The arguments and options of the command line, each with its help."""

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any

import typer

OUTPUT = "--output", "--force"  # how the command line says where to write, and what to write over

Problem = Annotated[str, typer.Argument(help="The problem to solve. `natgrad list` shows all of them.")]
Listed = Annotated[str | None, typer.Argument(metavar="PROBLEM", help="Show the presets of this problem.")]
Optimizer = Annotated[str, typer.Option(help="The optimizer. `natgrad list` shows all of them.")]
Preset = Annotated[
    str,
    typer.Option(
        help="The size of the problem. `natgrad list PROBLEM` shows the presets. The preset named paper has the "
        "paper's sizes; its points and metric are the paper's with --recipe published."
    ),
]
Recipe = Annotated[
    str,
    typer.Option(help="default is natgrad's own algorithm; published is the paper's, with its points and metric."),
]
Steps = Annotated[int | None, typer.Option(help="Stop after this many iterations. The default is that of the preset.")]
Seed = Annotated[int, typer.Option(help="The seed of the network, the points and the solver.")]
Seeds = Annotated[str | None, typer.Option(help="Do one run for each of these seeds: 0:10 or 0,3,5.")]
Together = Annotated[
    bool,
    typer.Option("--together", help="Train all seeds by one program: at the same time on a GPU, in turn on a CPU."),
]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Set an option of the problem or the optimizer: width=16."),
]
Out = Annotated[Path | None, typer.Option(help="The folder of the run. Several runs get one folder each inside it.")]
Target = Annotated[float | None, typer.Option(help="Stop when the relative H¹ error is this small.")]
Limit = Annotated[float | None, typer.Option(help="Stop after this many seconds of stepping.")]
Windows = Annotated[
    str | None,
    typer.Option(
        help="March through time by windows, each with its own network. Give their number, times separated by "
        "commas, or auto. --steps is for each window."
    ),
]
Via = Annotated[
    str | None,
    typer.Option(
        metavar="KEY=VALUES",
        help="Train at other values of an option first, in turn: reynolds=100,400. Each begins where the last one "
        "ended. --steps is for each value. none leaves out the values of the preset.",
    ),
]
Every = Annotated[int | None, typer.Option(help="Evaluate the error once in this many iterations.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print warnings and errors, and nothing else.")]
Force = Annotated[bool, typer.Option("--force", help="Delete the run that natgrad made in the folder, and start over.")]
Overwrite = Annotated[bool, typer.Option("--force", help="Replace the output if it exists.")]
Plots = Annotated[bool, typer.Option(help="Draw pictures when the run ends.")]
Log = Annotated[
    str | None,
    typer.Option(help="Log every step into the run's folder: tensorboard, wandb (offline), mlflow, or several."),
]
Cache = Annotated[bool, typer.Option(help="Keep compiled programs in your cache folder for the next run.")]
Devices = Annotated[
    int | None,
    typer.Option(help="Spread the points over this many devices of all processes. A CPU is split into as many."),
]
Memory = Annotated[
    str | None,
    typer.Option(help="The memory of one device, such as 8GB. natgrad chooses strategy, batch size and rank to fit."),
]
Distributed = Annotated[
    bool, typer.Option("--distributed", help="Join the processes that srun, mpirun or a Kubernetes job started.")
]
Coordinator = Annotated[
    str | None, typer.Option(metavar="HOST:PORT", help="Where process 0 listens, if you start the processes by hand.")
]
ProcessId = Annotated[int | None, typer.Option(help="The number of this process. The first process has number 0.")]
NumProcesses = Annotated[int | None, typer.Option(help="The number of processes that share the run.")]
Pictures = Annotated[
    Path | None, typer.Option(help="The folder of the pictures. For one run, the default is plots/ in its folder.")
]
Folders = Annotated[
    list[Path],
    typer.Argument(metavar="RUNS...", help="Folders of runs, or folders that have or will have them inside."),
]
Port = Annotated[int, typer.Option(help="Where the page is served, on 127.0.0.1. The default is any free port.")]
Runs = Annotated[
    list[Path], typer.Argument(help="Folders of runs, folders that have them inside, or archives of them (.tar.xz).")
]
Movie = Annotated[
    Path | None, typer.Option(help="Draw the fields of one run over time, and nothing else: u.gif, or u.mp4 by ffmpeg.")
]
Times = Annotated[
    str | None, typer.Option(help="How many times, evenly spread, such as 20, or which ones: 0.0,0.5,1.0.")
]


@dataclass(frozen=True)
class Common:
    """The options that `natgrad run`, `compare` and `sweep` have in common."""

    preset: Preset = "small"
    recipe: Recipe = "default"
    steps: Steps = None
    seed: Seed = 0
    seeds: Seeds = None
    set_: Set = None
    out: Out = None
    force: Force = False
    quiet: Quiet = False
    target_error: Target = None
    time_limit: Limit = None
    evaluate_every: Every = None
    plots: Plots = True
    cache: Cache = True

    def configs(self, problem: str, optimizer: str, *settings: str, **others: Any) -> list[Any]:
        """The `Config` of each seed; `settings` and `others` are those of one command alone."""
        from natgrad.experiment.config import Config
        from natgrad.experiment.many import parse_seeds

        limits = self.steps, self.evaluate_every, self.target_error, self.time_limit
        all_settings = (*(self.set_ or ()), *settings)
        return [
            Config(problem, optimizer, self.preset, self.recipe, seed, *limits, all_settings, **others)
            for seed in parse_seeds(self.seed, self.seeds)
        ]


def takes_common(command: Callable[..., None]) -> Callable[..., None]:
    """The command with all options of `Common` in place of its parameter `common`: typer reads the signature."""
    options = [inspect.Parameter(f.name, inspect.Parameter.KEYWORD_ONLY, default=f.default, annotation=f.type)
               for f in fields(Common)]  # fmt: skip
    parameters: list[inspect.Parameter] = []
    for parameter in inspect.signature(command).parameters.values():
        own = parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        parameters += options if parameter.annotation is Common else [own]

    @functools.wraps(command)
    def call(**values: Any) -> None:
        common = Common(**{option.name: values.pop(option.name) for option in options})
        command(common=common, **values)

    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return call


def parse_times(text: str | None) -> int | list[float] | None:
    """What --times says: a number of times, or times."""
    if text is None:
        return None
    try:
        return int(text) if text.strip().isdigit() else [float(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(
            f"--times takes a number of times or a list, such as 20 or 0.0,0.5,1.0, got {text!r}"
        ) from None
