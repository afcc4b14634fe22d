"""Problems in other units: with a normalized network they are the same problems."""

import jax
import numpy as np
import pytest

from benchmarks import units


def test_the_table_of_the_page_has_a_row_a_problem_and_network():
    case = {"problem": "heat3d", "size": 1.0, "length": 1.0}
    results = [{**case, "network": "plain", "seed": seed, "error": error, "later": None if seed else 2.0}
               for seed, error in enumerate((1.0, 3e-3, 2e-5))]  # fmt: skip
    results.append({**case, "network": "normalized", "length": 100.0, "seed": 0, "status": "failed: ?"})
    rows = list(units.compact(results, later=False))
    assert rows == [
        ("heat3d, `Normalized`", "", "", "", "", "", "failed"),
        ("heat3d, bare MLP", "", "3.0e-3", *[""] * 4),
    ]
    assert list(units.compact(results[:1], later=True)) == [("heat3d", "", "2.0", *[""] * 4)]


@pytest.mark.parametrize("name", units.PROBLEMS)
def test_a_normalized_problem_has_the_same_loss_in_all_units(name):
    """Up to the square of the size of u and the unit of the points' measure; and errors are known."""
    jax.config.update("jax_enable_x64", True)
    reference = units.known(name).build(jax.random.key(0))
    assert reference.norms is not None
    losses = {}
    for size, length in ((1.0, 1.0), (30.0, 0.01)):
        case = {"problem": name, "network": "normalized", "size": size, "length": length}
        problem, stretch = units.in_units(reference, case)
        losses[size] = float(jax.jit(lambda problem: problem.loss(problem.params))(problem)) / np.prod(stretch)
    assert losses[30.0] == pytest.approx(900 * losses[1.0], rel=1e-9)
