"""Reference solutions are accurate and quick, or refused in one line."""

import math

import pytest

from natgrad.zoo import _reference


@pytest.mark.parametrize(
    ("make", "arguments", "message"),
    [
        (_reference.allen_cahn, (1e-3, 1e6), "got diffusion 0.001 and reaction 1000000.0"),
        (_reference.allen_cahn, (1.0, 5.0), "got diffusion 1.0 and reaction 5.0"),
        (_reference.allen_cahn, (-1e-3, 5.0), "needs diffusion ≥ 0"),
        (_reference.allen_cahn, (1e-3, math.nan), "reaction of allen_cahn must be a finite number, got nan"),
        (_reference.allen_cahn, (1e-3, 100.0), "has layers too thin for its reference"),
        (_reference.burgers, (0.0,), "needs a positive nu, got 0.0"),
        (_reference.burgers, (math.inf,), "nu of burgers must be a finite number"),
        (_reference.condensate, (-1.0, 5.0, 4.0), "needs positive beta and chemical, got -1.0 and 5.0"),
        (_reference.condensate, (1.0, 1.0, 4.0), "there is no condensate with beta 1.0 and chemical 1.0"),
    ],
)
def test_what_would_take_long_or_not_be_accurate_is_refused(make, arguments, message):
    with pytest.raises(ValueError, match=message):
        make(*arguments)
