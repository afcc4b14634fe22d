"""Runs of problems whose weights are found in training: kept, shown, and gone on with bit for bit."""

import json

import jax
import numpy as np
import pytest

import natgrad as ng
from natgrad.experiment import checkpoint
from natgrad.experiment.config import Config
from natgrad.experiment.journal import Journal
from natgrad.experiment.plots import plot
from natgrad.experiment.run import run
from natgrad.experiment.runs import find
from natgrad.experiment.spectrum import spectrum
from natgrad.zoo import poisson3d, registry
from natgrad.zoo.registry import Benchmark
from tests.experiment.small_runs import NYSTROM, SETTINGS, assert_same_run, history
from tests.experiment.test_resume import Crash, crash_after

pytestmark = pytest.mark.usefixtures("compiled")


@pytest.fixture(autouse=True)
def benchmark(monkeypatch):
    """poisson3d with the weight of its boundary left to the solver."""

    def build(key, *, width: int = 4, depth: int = 1, interior: int = 30, boundary: int = 12) -> ng.LeastSquares:
        cube, keys = ng.Box([0.0] * 3, [1.0] * 3), jax.random.split(key, 3)
        return ng.LeastSquares(
            ng.MLP(3, 1, width, depth, key=keys[0]),
            pde=ng.Residual(lambda u, x: ng.laplacian(u, x) + poisson3d.exact(x), cube.interior(interior, key=keys[1])),
            rim=ng.Residual(lambda u, x: u(x), cube.boundary(boundary, key=keys[2]), weight="auto"),
            exact=poisson3d.exact,
        )

    made = Benchmark("mine", "mine", "mine", build, poisson3d.benchmark.presets, poisson3d.benchmark.fields)
    monkeypatch.setitem(registry._REGISTERED, "mine", made)


def train(folder, optimizer="ngd-full", steps=24, **options):
    more = NYSTROM if optimizer.startswith("nystrom") else ()
    config = Config("mine", optimizer, steps=steps, settings=(*SETTINGS, *more))
    return run(config, folder, quiet=True, say=lambda text: None, **options)


@pytest.mark.parametrize("optimizer", ["nystrom-gaussian", "adam", pytest.param("lbfgs", marks=pytest.mark.slow)])
def test_crash_and_resume(tmp_path, monkeypatch, optimizer):
    train(tmp_path / "whole", optimizer)
    monkeypatch.setattr(checkpoint, "SHARE", float("inf"))
    with monkeypatch.context() as patch:
        crash_after(patch, Journal, "append", 21)
        with pytest.raises(Crash):
            train(tmp_path / "run", optimizer)
    train(tmp_path / "run", optimizer, resume=True)
    assert_same_run(tmp_path / "whole", tmp_path / "run")


def test_weights_are_in_the_folder(tmp_path):
    result = train(tmp_path / "run")
    records = history(tmp_path / "run")
    assert all(set(record["weights"]) == {"pde", "rim"} for record in records)
    assert json.loads((tmp_path / "run" / "result.json").read_text())["weights"] == records[-1]["weights"]
    assert result["weights"]["pde"] == 1
    assert result["plan"]["gramian"] == "assembled"
    (kept,) = find([tmp_path])
    np.testing.assert_array_equal(kept.column("weights.rim"), [record["weights"]["rim"] for record in records])
    written = plot([kept], tmp_path / "plots", fields=False)
    assert "weights.png" in {path.name for path in written}


def test_the_spectrum_is_that_of_the_weighted_gramian(tmp_path):
    config = Config("mine", "ngd-full", steps=2, settings=SETTINGS)
    written, _ = spectrum(config, [0, 2], tmp_path, force=False, quiet=True)
    with np.load(written) as found:
        start = found["eigenvalues"][0].sum()
    made = registry.get("mine").build(jax.random.key(0))
    solver = ng.Balanced(ng.FullNGD())
    weights = solver.init(made, made.params, jax.random.fold_in(jax.random.key(0), 1)).weights
    matrix = ng.gramian(made.with_weights(weights)).as_matrix()
    np.testing.assert_allclose(start, np.trace(matrix), rtol=1e-10)
