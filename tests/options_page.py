"""docs/api/options.md, written from the annotations: `python -m tests.options_page > docs/api/options.md`."""

import natgrad as ng
from natgrad import zoo
from natgrad.fem.tensor import rectangle
from natgrad.optim.baselines import Wolfe
from natgrad.optim.direction import Direct
from natgrad.options import table
from natgrad.precondition import Identity, Nystrom, PivotedRowFactor, RowFactor, RPCholesky

SOLVERS = (
    ng.NaturalGradient,
    ng.PCG,
    Direct,
    ng.Kernel,
    ng.Polish,
    ng.Polished,
    ng.Balanced,
    ng.Adam,
    ng.LBFGS,
    ng.BFGS,
    ng.SSBroyden,
    Wolfe,
)
BUILDERS = (RowFactor, PivotedRowFactor, Nystrom, RPCholesky, Identity)
RULES = ("Relative", "Guarded", "Spectral", "LossPower", "GradientPower", "Geometric", "LevenbergMarquardt")
SEARCHES = (ng.Armijo, ng.GridSearch)
OTHERS = (
    ng.MLP,
    ng.Waves,
    ng.FourierSeries,
    ng.FourierFeatures,
    ng.Periodic,
    ng.Unknown,
    ng.Residual,
    ng.ByResidual,
    ng.Ball,
    ng.Interval,
    rectangle,
)

HEAD = """# Options and their ranges

An option's annotation says what it may be. The check, its message and this page come from the annotation
(`natgrad.options`), and `--set option=value` on the command line goes through the same check. A value out of its range
is refused when the part is built: `gamma must be a positive finite number, got -1`.

::: natgrad.options
"""


def page() -> str:
    """The whole page."""
    rules = [getattr(ng.damping, name) for name in RULES]
    parts = {"Solvers": SOLVERS, "Preconditioners": BUILDERS, "Damping": rules, "Searches": SEARCHES, "Others": OTHERS}
    sections = [f"## {title}\n\n" + "\n\n".join(map(table, owners)) for title, owners in parts.items()]
    problems = [table(zoo.get(name).build, name) for name in zoo.names()]
    return "\n\n".join([HEAD.rstrip(), *sections, "## Problems of the zoo\n\n" + "\n\n".join(problems)]) + "\n"


if __name__ == "__main__":
    print(page(), end="")
