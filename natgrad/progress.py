"""The display of a training run: a live line in a terminal or notebook, a line now and then in a file."""

import math
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from types import TracebackType
from typing import Any

from natgrad.problem import Problem

STAGES = ("window", "value")  # of what has several, which one a step is of
NORMS = {"h1": "H¹", "l2": "L²"}  # the first that is known is shown
LINES = 10  # printed in the course of a run where there is no terminal


class Progress:
    """`with Progress(…) as display: display.update(record)`; see `natgrad.solve`."""

    def __init__(self, problem: Problem, first: int, last: int, *, enabled: bool):
        self.enabled, self.first, self.last = enabled, first, last
        self.sizes = f"{problem.num_parameters} parameters, {problem.num_rows} residual rows"
        self.energy = not problem.least_squares
        self.every = max(1, (last - first) // LINES)
        self.bar: Any = None
        self.spoken = False
        self.errors: dict[str, float] = {}
        self.validation = math.nan

    def __enter__(self) -> "Progress":
        if self.enabled and sys.stderr.isatty() and find_spec("rich"):
            # rich takes as long to import as all of natgrad: only a terminal pays for it. It is an extra.
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
            from rich.progress import Progress as Bar

            self.bar = Bar(
                BarColumn(bar_width=24),
                MofNCompleteColumn(),
                TextColumn("{task.fields[text]}"),
                TimeRemainingColumn(),
                console=Console(stderr=True),
                transient=True,
            )
            self.task = self.bar.add_task("", total=self.last, completed=self.first, text=f"{self.sizes}, compiling")
            self.bar.start()
        elif self.enabled:
            print(f"natgrad: {self.sizes}, compiling", file=sys.stderr, flush=True)
        return self

    def compiled(self, seconds: float, origin: str) -> None:
        """Says how long compilation took, and whether the step was there already; not of each stage after the first."""
        if self.spoken and origin == "memory":
            return
        self.spoken = True
        text = f"compiled in {seconds:.1f} s{'' if origin == 'new' else ' (cached)'}"
        if self.bar is not None:
            self.bar.update(self.task, text=f"{self.sizes}, {text}")
        elif self.enabled:
            print(f"natgrad: {text}", file=sys.stderr, flush=True)

    def until(self, last: int) -> None:
        """The steps there will be are others than thought: a stage begins, whose evaluations are its own."""
        self.last, self.every = last, max(1, (last - self.first) // LINES)
        self.errors, self.validation = {}, math.nan
        if self.bar is not None:
            self.bar.update(self.task, total=last)

    def update(self, record: dict[str, Any]) -> None:
        """Shows a step."""
        self.remember(record)
        if self.bar is not None:
            self.bar.update(self.task, completed=record["step"], text=self.text(record))
        elif self.enabled and (record["step"] - self.first) % self.every == 0:
            print(f"{record['step']:>6}/{self.last}  {self.text(record)}", file=sys.stderr, flush=True)

    def remember(self, record: dict[str, Any]) -> None:
        """Keeps what is evaluated now and then."""
        self.errors = record["errors"] or self.errors
        if not math.isnan(validation := record.get("validation", math.nan)):
            self.validation = validation

    def text(self, record: dict[str, Any]) -> str:
        """loss, validation loss, error, μ, rank and inner iterations, in a line.

        An energy is soon a constant to all digits that are shown: what it fell by is not, nor is its gradient.
        """
        if self.energy and "change" in record:
            parts = [f"decrease {-record['change']:.1e}"]
            parts += [f"|∇L| {record['gradient_norm']:.1e}"] if "gradient_norm" in record else []
        else:
            parts = [f"loss {record['loss']:.2e}"]
        if not math.isnan(self.validation):
            parts.append(f"validation {self.validation:.2e}")
        parts += [f"{NORMS[norm]} {self.errors[norm]:.2e}" for norm in NORMS if norm in self.errors][:1]
        if "mu" in record:
            parts.append(f"μ {record['mu']:.1e}")
        if "step_size" in record:
            parts.append(f"α {record['step_size']:.2g}")
        if "rank" in record:
            parts.append(f"ℓ {int(record['rank'])}")
        if "inner_iterations" in record:
            parts.append(f"cg {int(record['inner_iterations'])}")
        parts += [f"{name} {record[name]:.6g}" for name in STAGES if name in record]
        return "  ".join(parts) + f"  {record['time']:.1f} s"

    def finish(self, status: str, records: list[dict[str, Any]], diagnosis: Sequence[str] = ()) -> None:
        """The last word, and a line for each thing that is wrong."""
        if self.bar is not None:
            self.bar.stop()
            self.bar = None
        if self.enabled and records:
            self.remember(records[-1])
            count = records[-1]["step"]
            line = f"stopped after {count} {'step' if count == 1 else 'steps'} ({status})  {self.text(records[-1])}"
            print(line, *(f"natgrad: {sentence}" for sentence in diagnosis), sep="\n", file=sys.stderr, flush=True)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.bar is not None:
            self.bar.stop()
