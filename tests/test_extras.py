"""Without the extras: the core works, and what needs a library names the extra that brings it, in one line."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from natgrad.extras import EXTRAS, MissingExtra, needs

ROOT = Path(__file__).parents[1]
MISSING = "import sys\nfor name in {names!r}: sys.modules[name] = None\n"
CORE = """
import jax, jax.numpy as jnp
import natgrad as ng
jax.config.update("jax_enable_x64", True)
line = ng.Interval(0, 1)
network = ng.MLP(1, 1, 4, 1, key=jax.random.key(0))
problem = ng.LeastSquares(network, fit=ng.Residual(lambda u, x: u(x) - x[0], line.interior(20, rule="gauss")))
print(ng.solve(problem, ng.NystromNGD(), steps=3).steps)
"""


def python(code):
    """A process that finds none of the libraries of the extras."""
    names = [module for modules in EXTRAS.values() for module in modules]
    command = [sys.executable, "-c", MISSING.format(names=names) + code]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT)


def test_the_core_needs_none_of_them():
    assert python(CORE).stdout.strip() == "3"


@pytest.mark.parametrize(
    ("code", "line"),
    [
        ("import natgrad.interop.optax", "natgrad.interop.optax needs optax: pip install 'natgrad[optax]'"),
        ("import natgrad as ng; ng.Adam(10).rate(3)", "Adam needs optax: pip install 'natgrad[optax]'"),
        (
            "import natgrad as ng; ng.trackers.TensorBoard('a')",
            "TensorBoard needs tensorboardX: pip install 'natgrad[tensorboard]'",
        ),
        ("import natgrad as ng; ng.trackers.WandB()", "WandB needs wandb: pip install 'natgrad[wandb]'"),
        ("import natgrad as ng; ng.trackers.MLflow()", "MLflow needs mlflow: pip install 'natgrad[mlflow]'"),
        ("import natgrad as ng; ng.fem.Space(None)", "A mesh needs skfem: pip install 'natgrad[fem]'"),
        ("import natgrad as ng; ng.Surface('part.stl')", "A surface file needs meshio: pip install 'natgrad[mesh]'"),
        (
            "import natgrad as ng; from natgrad.interop.vtk import to_vtk; to_vtk('/tmp/u.vtu', sum, mesh='u.msh')",
            "A mesh needs meshio: pip install 'natgrad[mesh]'",
        ),
        (
            "from natgrad.experiment.plots import spectra; spectra([0], [[1.0]], '', None)",
            "A picture needs matplotlib: pip install 'natgrad[plots]'",
        ),
    ],
)
def test_a_use_names_its_extra(code, line):
    assert python(code).stderr.splitlines()[-1] == f"natgrad.extras.MissingExtra: {line}"


def test_the_command_says_it_in_one_line():
    done = python("from natgrad.__main__ import main; main()")
    assert (done.returncode, done.stderr) == (
        2,
        "natgrad: The command natgrad needs typer: pip install 'natgrad[cli]'\n",
    )


def test_other_missing_modules_are_not_hidden():
    with pytest.raises(ModuleNotFoundError) as told, needs("A picture", "plots"):
        import natgrad.no_such_module  # noqa: F401
    assert not isinstance(told.value, MissingExtra)


def test_extras_are_those_of_the_package():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    assert EXTRAS.keys() | {"all", "cuda", "dev", "docs"} == extras.keys()
    told = {name.strip() for name in extras["all"][0].partition("[")[2].rstrip("]").split(",")}
    assert told | {"plots", "wandb", "mlflow"} == EXTRAS.keys()  # cli brings plots; services are not for all
    core = {requirement.partition(">")[0] for requirement in project["dependencies"]}
    assert core == {"jax", "equinox", "jaxtyping", "numpy", "scipy"}
