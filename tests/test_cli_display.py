"""The live display of a terminal: sizes while the step compiles, a line that is rewritten, and one that stays."""

import io
from types import SimpleNamespace

import pytest

from natgrad.progress import Progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


def screen(monkeypatch):
    """A terminal in the place of stderr; called by the test itself, since capturing resets it before."""
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "160")
    monkeypatch.setattr("sys.stderr", terminal := Terminal())
    return terminal


def test_a_terminal_sees_a_live_line(monkeypatch):
    terminal = screen(monkeypatch)
    problem = SimpleNamespace(num_parameters=21, num_rows=42, least_squares=True)
    record = {"step": 3, "time": 1.5, "loss": 2e-3, "errors": {"h1": 4e-2}, "mu": 1e-7, "rank": 12}
    with Progress(problem, 0, 10, enabled=True) as display:
        assert "21 parameters, 42 residual rows, compiling" in terminal.getvalue()
        display.update(record)
        display.bar.refresh()
        assert "3/10" in terminal.getvalue()
        display.finish("interrupted", [record])
    text = terminal.getvalue()
    assert "\x1b[?25l" in text
    assert text.rindex("\x1b[?25h") > text.rindex("\x1b[?25l")  # the cursor is back
    last = text.splitlines()[-1]
    assert last.endswith("stopped after 3 steps (interrupted)  loss 2.00e-03  H¹ 4.00e-02  μ 1.0e-07  ℓ 12  1.5 s")


def test_the_cursor_comes_back_after_an_error(monkeypatch):
    terminal = screen(monkeypatch)
    problem = SimpleNamespace(num_parameters=21, num_rows=42, least_squares=True)
    with pytest.raises(ZeroDivisionError), Progress(problem, 0, 10, enabled=True):
        raise ZeroDivisionError
    assert terminal.getvalue().rindex("\x1b[?25h") > terminal.getvalue().rindex("\x1b[?25l")


def test_nothing_where_nothing_is_wanted(monkeypatch):
    terminal = screen(monkeypatch)
    with Progress(SimpleNamespace(num_parameters=1, num_rows=1, least_squares=True), 0, 10, enabled=False) as display:
        display.finish("steps", [])
    assert terminal.getvalue() == ""
