"""Tables of references are kept on disk, by what made them, and computed again where they are damaged."""

import numpy as np
import pytest

from natgrad.zoo._reference import cache

calls = []


def squares(n):
    calls.append(n)
    return {"squares": np.arange(n) ** 2.0}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    calls.clear()
    monkeypatch.setenv("NATGRAD_CACHE", str(tmp_path))
    return tmp_path


def test_tables_are_computed_once_for_each_set_of_parameters():
    first, again, other = cache.kept(squares, n=4), cache.kept(squares, n=4), cache.kept(squares, n=5)
    assert calls == [4, 5]
    assert np.array_equal(first["squares"], again["squares"])
    assert other["squares"].shape == (5,)


def test_damaged_tables_are_computed_again(folder):
    cache.kept(squares, n=4)
    (path,) = (folder / "references").iterdir()
    data = bytearray(path.read_bytes())
    data[-3] ^= 1
    path.write_bytes(data)
    assert np.array_equal(cache.kept(squares, n=4)["squares"], [0, 1, 4, 9])
    cache.kept(squares, n=4)
    assert calls == [4, 4]


def test_nothing_is_kept_where_it_is_switched_off(folder, monkeypatch):
    monkeypatch.setenv("NATGRAD_CACHE", "0")
    cache.kept(squares, n=4), cache.kept(squares, n=4)
    assert calls == [4, 4]
    assert not list(folder.iterdir())
