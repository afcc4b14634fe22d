"""Windows as long as they can be solved: halved where they are not, longer where they are easy."""

import itertools

import pytest

from tests.stages.equations import heat, march
from tests.stages.test_march import same

HOW = {"times": "auto", "steps": 12, "tolerance": 1e-4}


def attempts(solution):
    """(window, t0, t1) of each, in order."""
    place = lambda record: (record["window"], record["t0"], record["t1"])
    return [place for place, _ in itertools.groupby(solution.history.records, place)]


@pytest.fixture(scope="module")
def whole():
    return march(heat(), **HOW)


def test_windows_are_halved_and_cover_all_of_time(whole):
    tried = attempts(whole)
    assert tried[0] == (1, 0.0, 0.5)
    again = [pair for pair in itertools.pairwise(tried) if pair[0][0] == pair[1][0]]
    assert again, tried  # one was in vain at least
    for (_, t0, t1), (_, s0, s1) in again:
        assert s0 == t0
        assert s1 - s0 <= 0.5001 * (t1 - t0)
    times = whole.u.times
    assert (times[0], times[-1]) == (0.0, 2.0)
    assert list(times) == sorted(set(times))
    kept = [one for one, then in zip(tried, [*tried[1:], (0, 0, 0)], strict=True) if one[0] != then[0]]
    assert [t1 for _, _, t1 in kept] == list(times[1:])
    assert len(whole.params) == len(kept)


def test_easy_windows_get_longer():
    easy = march(heat(), times="auto", steps=12, tolerance=1e4)
    lengths = [t1 - t0 for _, t0, t1 in attempts(easy)]
    assert lengths[0] == pytest.approx(0.5)
    assert lengths[1] == pytest.approx(0.75)  # a step of one would leave a sliver
    assert sum(lengths) == pytest.approx(2.0)


def test_it_goes_on_with_the_same_bits(whole):
    tried = attempts(whole)
    first_in_vain = next(i for i, pair in enumerate(itertools.pairwise(tried)) if pair[0][0] == pair[1][0])
    for stop in (12 * first_in_vain + 5, 12 * first_in_vain + 12, 12 * first_in_vain + 15, whole.steps - 1):
        stopped = march(heat(), callback=lambda record, stop=stop: record["step"] == stop, **HOW)
        assert stopped.steps == stop
        same(whole, march(heat(), resume=stopped, **HOW))


def test_it_is_deterministic(whole):
    same(whole, march(heat(), **HOW))
