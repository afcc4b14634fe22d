"""The command line from end to end on problems of moments: every command, what it prints and what it writes."""

import json
import os
import re
import subprocess
import sys

import numpy as np
import pytest

from natgrad import zoo
from natgrad.cli import main
from tests.experiment.conftest import compiled as compiled
from tests.experiment.small_runs import SETTINGS, history

TINY = [word for setting in SETTINGS for word in ("--set", setting)]
pytestmark = pytest.mark.usefixtures("compiled")


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", "")
    return tmp_path


def natgrad(*words):
    """The exit code."""
    with pytest.raises(SystemExit) as stop:
        main([str(word) for word in words])
    return stop.value.code


def test_list(here, capsys):
    assert natgrad("list") == 0
    out = capsys.readouterr().out
    for name in ("poisson3d", "heat3d", "kovasznay", "nystrom-gaussian", "adam", "(small, paper)"):
        assert name in out
    assert natgrad("list", "heat3d") == 0
    out = capsys.readouterr().out
    for words in ("paper  width=64 ", "--recipe published: interior=10000", "60 steps of natural gradient descent\n"):
        assert words in out
    assert "kovasznay" not in out
    assert natgrad("list", "heat") == 2
    assert capsys.readouterr().err.startswith("natgrad: unknown problem 'heat'")


def test_every_command_is_described_in_a_whole_sentence(here, capsys):
    """Too long a sentence would be cut off by three dots."""
    assert natgrad("--help") == 0
    out = capsys.readouterr().out
    commands = out[out.index("Commands:") :].splitlines()[1:]
    assert len(commands) == 10
    for line in commands:
        assert re.fullmatch(r"  \w+ +[A-Z].*[^.]\.", line), line


def test_list_says_the_windows_of_a_preset(here, capsys):
    windows, steps = zoo.get("advection").preset("small").windows, zoo.get("advection").preset("small").steps["ngd"]
    assert natgrad("list", "advection") == 0
    assert f"{windows} windows of time, {steps} steps of natural gradient descent in each\n" in capsys.readouterr().out


@pytest.mark.parametrize("words", [["list"], ["--version"], []])
def test_a_reader_that_goes_early_is_no_error(words):
    """As in `natgrad list | head -0`: no traceback."""
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run([sys.executable, "-m", "natgrad", *words], stdout=write, stderr=subprocess.PIPE, text=True)
    os.close(write)
    assert done.stderr == ""
    assert done.returncode == 1


def test_run_report_and_the_rest(here, capsys):
    """One run, then everything that is made from it."""
    assert natgrad("run", "poisson3d", "--optimizer", "ngd-full", *TINY, "--steps", 6, "--evaluate-every", 2) == 0
    captured = capsys.readouterr()
    assert "\x1b" not in captured.out + captured.err
    folder = next((here / "runs" / "poisson3d").iterdir())
    assert folder.name.startswith("ngd-full-small")
    assert folder.name.endswith("seed0")
    assert f"runs/poisson3d/{folder.name}: finished after 6 steps" in captured.out
    assert "21 parameters" in captured.err
    assert len(history(folder)) == 6
    assert {path.name for path in (folder / "plots").iterdir()} == {
        "convergence.png", "solver.png", "fields.png", "loss.png", "natgrad.json",
    }  # fmt: skip

    assert natgrad("table", folder, "--format", "csv") == 0
    assert capsys.readouterr().out.startswith("optimizer,poisson3d error")
    assert natgrad("plot", folder, "--out", "pictures") == 0
    assert sorted(path.name for path in (here / "pictures").iterdir()) == [
        "convergence.png",
        "fields.png",
        "loss.png",
        "natgrad.json",
        "solver.png",
    ]
    assert natgrad("report", folder, "-o", "page.html", "--quiet") == 0
    text = (here / "page.html").read_text()
    assert "data:image/png;base64," in text
    command = json.loads((folder / "result.json").read_text())["command"]
    assert " ".join(command) in text

    # The command in the report repeats the run.
    assert natgrad(*command[1:], "--out", "again", "--quiet", "--no-plots") == 0
    assert [record["loss"] for record in history(here / "again")] == [record["loss"] for record in history(folder)]
    assert not (here / "again" / "plots").exists()


def test_quiet_says_nothing(here, capfd):
    assert natgrad("run", "poisson3d", "--optimizer", "adam", *TINY, "--steps", 3, "--quiet", "--no-plots") == 0
    captured = capfd.readouterr()
    assert captured.out == captured.err == ""


def test_a_breakdown_is_exit_code_1(here, capsys):
    words = ["--set", "peak=1e200", "--set", "start=1e200", "--steps", 30, "--no-plots"]
    assert natgrad("run", "poisson3d", "--optimizer", "adam", *TINY, *words) == 1
    assert "not finite" in capsys.readouterr().out


def test_seeds(here, capsys):
    words = ["run", "poisson3d", "--optimizer", "adam", *TINY, "--steps", 3, "--no-plots", "--out", "runs"]
    assert natgrad(*words, "--seeds", "0:2") == 0
    assert sorted(path.name for path in (here / "runs").iterdir()) == ["seed0", "seed1"]
    assert [json.loads((here / "runs" / f"seed{k}" / "result.json").read_text())["seed"] for k in (0, 1)] == [0, 1]
    capsys.readouterr()
    assert natgrad(*words, "--seeds", "1:3") == 2
    assert "seed1 holds a run already" in capsys.readouterr().err
    assert not (here / "runs" / "seed2").exists()


def test_seeds_together(here, capsys):
    words = ["run", "poisson3d", "--optimizer", "adam", *TINY, "--steps", 3, "--no-plots", "--out", "runs"]
    words.append("--together")
    assert natgrad(*words, "--seeds", "0:2") == 0
    assert "adam, seeds 0, 1" in capsys.readouterr().out
    assert [json.loads((here / "runs" / f"seed{k}" / "result.json").read_text())["steps"] for k in (0, 1)] == [3, 3]
    for more in ([], ["--seeds", "0:2", "--devices", 2], ["--seeds", "1:3"]):
        assert natgrad(*words, *more) == 2
        assert capsys.readouterr().err.count("\n") == 1
    assert not (here / "runs" / "seed2").exists()


def test_compare_reuses_what_is_there(here, capsys):
    words = ["compare", "poisson3d", *TINY, "--steps", 4, "--no-plots"]
    assert natgrad(*words, "--optimizers", "adam") == 0
    capsys.readouterr()
    first = {path: path.stat().st_mtime_ns for path in here.rglob("history.jsonl")}
    assert natgrad(*words, "--optimizers", "adam,ngd-full") == 0
    out = capsys.readouterr().out
    assert "adam-small-width=4-depth=1-interior=30-boundary=12-seed0 is finished" in out
    assert all(path.stat().st_mtime_ns == when for path, when in first.items())
    overview = here / "runs" / "poisson3d" / "compare-small"
    assert {path.name for path in overview.iterdir()} == {
        "table.md", "table.csv", "table.tex", "convergence.png", "solver.png", "loss.png", "natgrad.json",
    }  # fmt: skip
    assert "| ngd-full " in out
    assert "| adam " in out
    # Another number of steps is another run of Adam, whose schedule depends on it.
    assert natgrad("compare", "poisson3d", *TINY, "--steps", 5, "--optimizers", "adam") == 2
    assert "solver.total is 4 there and 5 here" in capsys.readouterr().err


def test_sweep(here, capsys):
    words = ["sweep", "poisson3d", "--optimizer", "adam", *TINY, "--steps", 4, "--no-plots"]
    assert natgrad(*words, "--param", "peak", "--values", "1e-3,1e-2", "--out", "sweep") == 0
    out = capsys.readouterr().out
    assert "adam (peak=0.001)" in out
    assert "adam (peak=0.01)" in out
    assert len(list((here / "sweep").glob("*/result.json"))) == 2
    assert (here / "sweep" / "table.md").read_text() in out


def test_spectrum(here, capsys):
    words = ["spectrum", "poisson3d", "--optimizer", "adam", *TINY, "--steps", 4, "--at", "0,2,4", "--out", "spectra"]
    assert natgrad(*words, "--quiet") == 0
    with np.load(here / "spectra" / "spectrum.npz") as found:
        assert list(found["steps"]) == [0, 2, 4]
        eigenvalues = found["eigenvalues"]
        assert found["loss"].shape == (3,)
    assert eigenvalues.shape == (3, 21)
    assert np.all(np.diff(eigenvalues, axis=1) <= 0)
    assert np.all(eigenvalues > -1e-10 * eigenvalues[:, :1])
    assert (here / "spectra" / "spectrum.png").exists()
    assert natgrad(*words) == 2
    assert "holds spectra already" in capsys.readouterr().err
    assert natgrad(*words[:-4], "--at", "9") == 2
    assert "between 0 and 4" in capsys.readouterr().err


def test_precision_and_cache(tmp_path):
    """The command line works in float64, keeps what it compiled where XDG says, and starts with little loaded."""
    code = (
        "import sys, jax\nfrom natgrad.cli import setup, main\nfrom natgrad.backend.programs import disk\n"
        "assert not jax.config.jax_enable_x64\nsetup(cache=True)\n"
        "print(jax.config.jax_enable_x64, disk.folder(), jax.config.jax_compilation_cache_dir)\n"
        "print(*[m for m in ('matplotlib', 'rich', 'optax') if m in sys.modules])\n"
        "setup(cache=False)\nprint(disk.folder())\n"
    )
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path), "NATGRAD_CACHE": ""}
    environment.pop("JAX_COMPILATION_CACHE_DIR", None)
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert out.stdout.splitlines() == [f"True {tmp_path / 'natgrad' / 'programs'} None", "", "None"]
