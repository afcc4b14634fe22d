"""The polynomials along an axis and the rules on [0, 1]."""

import numpy as np
import pytest

from natgrad.fem.lagrange import gauss, lobatto, table


@pytest.mark.parametrize("degree", range(1, 9))
def test_lobatto_points_integrate_to_degree_2k_minus_1(degree):
    points = lobatto(degree)
    weights = np.linalg.solve(points ** np.arange(degree + 1)[:, None], 1 / np.arange(1, degree + 2))
    for power in range(2 * degree):
        np.testing.assert_allclose(weights @ points**power, 1 / (power + 1), rtol=1e-9)
    np.testing.assert_allclose(points, 1 - points[::-1], rtol=1e-15)


@pytest.mark.parametrize("order", range(10))
def test_gauss_is_exact_to_its_order(order):
    points, weights = gauss(order)
    for power in range(order + 1):
        np.testing.assert_allclose(weights @ points**power, 1 / (power + 1), rtol=1e-13)


@pytest.mark.parametrize("degree", [1, 4, 8])
def test_nodal_polynomials_reproduce_values_and_slopes(degree):
    nodes, t = lobatto(degree), np.linspace(-0.1, 1.1, 7)
    values, slopes = table(t, nodes)
    np.testing.assert_allclose(table(nodes, nodes)[0], np.eye(degree + 1), atol=1e-13)
    np.testing.assert_allclose(values @ nodes**degree, t**degree, atol=1e-12)
    np.testing.assert_allclose(slopes @ nodes**degree, degree * t ** (degree - 1), atol=1e-11)
