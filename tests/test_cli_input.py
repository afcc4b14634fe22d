"""Wrong command lines and run folders: exit code 2, one line on stderr, and nothing written or overwritten."""

import json
import re

import pytest

from natgrad.cli import main
from tests.experiment.made_up import made_up


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A folder with some runs, whole and damaged, and things that are not runs."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", "")
    made_up(tmp_path / "run")
    made_up(tmp_path / "spare", seed=1)
    for name, file, content in (
        ("no-json", "config.json", "{"),
        ("a-list", "config.json", "[1]"),
        ("no-keys", "config.json", "{}"),
        ("bad-history", "history.jsonl", '{"step": 1}\n'),
        ("bad-line", "history.jsonl", "nonsense\n"),
        ("bad-result", "result.json", "nonsense"),
    ):
        (made_up(tmp_path / name) / file).write_text(content)
    (tmp_path / "empty").mkdir()
    (tmp_path / "a-file").write_text("mine")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.tex").write_text("mine")
    (tmp_path / "half.tar.xz").write_bytes(b"\xfd7zXZ\x00")
    for name in ("plots/thesis.png", "checkpoint/x", "history.jsonl", "result.json", "config.json", "table.md"):
        (tmp_path / "thesis" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "thesis" / name).write_text("mine")
    for name, kind, version, files in (
        ("edited", "run", 1, ["../a-file", "config.json"]),
        ("newer", "run", 99, []),
        ("spectra", "spectrum", 1, []),
    ):
        (tmp_path / name).mkdir()
        content = {"natgrad": "0", "format": version, "kind": kind, "files": files}
        (tmp_path / name / "natgrad.json").write_text(json.dumps(content))
    return tmp_path


RUN = [
    ("--steps", "missing|requires"),
    ("--steps ten", "valid int"),
    ("--steps 0", "positive integer, got 0"),
    ("--steps -5", "positive integer, got -5"),
    ("--steps 2.5", "valid int"),
    ("--seed x", "valid int"),
    ("--seed -1", "--seed must be between 0 and"),
    ("--seed 99999999999999999999", "--seed must be between 0 and"),
    ("--seeds a:b", "0:10"),
    ("--seeds 3:3", "empty"),
    ("--seeds 5:2", "empty"),
    ("--seeds 0,0", "twice"),
    ("--seeds 0,,1", "0:10"),
    ("--seed 1 --seeds 0:2", "exclude each other"),
    ("--seeds -2:0", "--seed must be between 0 and"),
    ("--seeds 0:1000000000000", "is 1000000000000 runs: at most 10000 at a time"),
    ("--memory 1e400GB", "--memory takes a size such as 8GB or 500MB"),
    ("--memory 1e300TB", "--memory takes a size such as 8GB or 500MB"),
    ("--memory -1GB", "--memory takes a size such as 8GB or 500MB"),
    ("--memory nan", "--memory takes a size such as 8GB or 500MB"),
    ("--memory 10kB", r"--memory 10kB is less than the problem's own arrays, 1\.12 MB"),
    ("--set interior=1e12", r"cannot be built with interior=1e12: 1000000000000 points in 3 dimensions would take"),
    ("--set width=1e7", "layers of width 10000000 would take"),
    ("--set depth=1e9", "1000000000 layers of width 32 would take"),
    ("--set width=400 --optimizer bfgs", "the 162401×162401 matrix of this method takes 633 GB"),
    ("--set width=4 --set width=8", "--set gives width twice, 4 and 8"),
    ("--set width=4 --set problem.width=4", "--set gives problem.width twice"),
    ("--set gamma=1 --set solver.damping.rule.gamma=2", "--set gives solver.damping.rule.gamma twice, 1 and 2"),
    ("--optimizer sgd", "unknown optimizer 'sgd'"),
    ("--optimizer nystrom-gausian", "did you mean nystrom-gaussian"),
    ("--preset huge", "unknown preset 'huge'"),
    ("--recipe fancy", "unknown recipe 'fancy'"),
    ("--set width", "key=value"),
    ("--set =3", "key=value"),
    ("--set width=", "key=value"),
    ("--set width=abc", "problem.width is an integer, got 'abc'"),
    ("--set width=2.5", "an integer, got '2.5'"),
    ("--set width=nan", "an integer, got 'nan'"),
    ("--set width=-3", "width must be a positive integer, got -3"),
    ("--set width=0", "width must be a positive integer, got 0"),
    ("--set interior=0", "poisson3d cannot be built"),
    ("--set wdth=8", "did you mean width"),
    ("--set problem.wdth=8", "did you mean width"),
    ("--set network.wdth=8", "did you mean width"),
    ("--set problem.gamma=8", "unknown option 'gamma' of poisson3d"),
    ("--set solver.width=8", "unknown solver option 'width'"),
    ("--optimizer nystrom --set solver.max_rnk=8", "did you mean max_rank"),
    ("--set gamma=big", "a number, got 'big'"),
    ("--set gamma=nan", "a number, got 'nan'"),
    ("--set gamma=-1", "gamma must be a positive finite number( or None)?, got -1"),
    ("--set gamma=0", "gamma must be a positive finite number( or None)?, got 0"),
    ("--set gamma=inf", "gamma must be a positive finite number( or None)?, got inf"),
    ("--set shrink=2", r"shrink must be a number in \(0, 1\), got 2"),
    ("--optimizer nystrom --set max_rank=0", "max_rank must be a positive integer"),
    ("--optimizer nystrom --set maxiter=0", "maxiter must be a positive integer"),
    ("--recipe published", "auto has no published recipe: name one that has, --optimizer nystrom"),
    ("--optimizer nystrom --set ratio=3", "'ratio' would do nothing .* one of Nystrom, as in NystromNGD"),
    ("--optimizer nystrom --set gama=3", "did you mean gamma"),
    ("--set max_rank=10", "'max_rank' would do nothing with this optimizer"),
    ("--set gamma=3 --set damping=Spectral", "gamma is an option of the damping: write Spectral"),
    ("--optimizer nystrom --set gramian=dense", "gramian is one of auto, assembled"),
    ("--optimizer nystrom --set batch=0", "batch must be a positive integer"),
    ("--optimizer nystrom --set warm_start=maybe", "true or false, got 'maybe'"),
    ("--optimizer nystrom --set test=cauchy", "test is one of signs"),
    ("--optimizer nystrom --set momentum=1", "momentum must be a number in"),
    ("--set acceleration=-1", "acceleration"),
    ("--set search=Newton", "unknown search 'Newton'"),
    ("--set damping=Spectrum", "did you mean Spectral"),
    ("--optimizer nystrom --set direction=Direct", "cannot be exchanged"),
    ("--optimizer ngd-full --set max_rank=10", "'max_rank' would do nothing with this optimizer"),
    ("--optimizer adam --set gamma=1", "unknown option 'gamma'"),
    ("--optimizer adam --set peak=-1", "peak"),
    ("--optimizer lbfgs --set search=Armijo", "cannot be exchanged"),
    ("--target-error 0", "--target-error must be positive"),
    ("--target-error -1", "--target-error must be positive"),
    ("--target-error nan", "--target-error must be positive"),
    ("--target-error abc", "valid (number|float)"),
    ("--time-limit 0", "--time-limit must be positive"),
    ("--time-limit inf", "--time-limit must be positive"),
    ("--evaluate-every 0", "--evaluate-every must be a positive integer"),
    ("--evaluate-every x", "valid int"),
    ("--resume --force --out run", "give one of the two"),
    ("--resume", "no run in runs/poisson3d/auto-small-seed0 to resume"),
    ("--resume --out empty", "no run in empty to resume"),
    ("--resume --out other", "other has other things in it, and natgrad did not make it"),
    ("--resume --out no-json", "cannot read no-json/config.json"),
    ("--resume --out a-list", "not a JSON object"),
    ("--resume --out run", "another one"),
    ("--out a-file", "a-file is a file"),
    ("--out a-file/deep", "a-file"),
    ("--out other", "other things in it"),
    ("--out other --force", "other things in it"),
    ("--out thesis", "other things in it"),
    ("--out thesis --force", "other things in it"),
    ("--out thesis --resume", "other things in it"),
    ("--out edited --resume", "not a file of this folder"),
    ("--out edited --force", "not a file of this folder"),
    ("--out newer --resume", "is of format 99, this natgrad reads format 1"),
    ("--out spectra", "holds spectra, not a run"),
    ("--out run", "holds a run already: --resume goes on with it, --force starts it over"),
    ("--frobnicate", "--frobnicate"),
    ("heat3d", "heat3d"),
]
COMMANDS = [
    ("frobnicate", "frobnicate"),
    ("list poisson", "poisson3d"),
    ("run poisson3d --devices 99999", r"--devices must be at most \d+ a process, got 99999"),
    ("run", "PROBLEM"),
    ("run poison3d", "did you mean poisson3d"),
    ("run burgers --preset paper", "unknown preset 'paper' of burgers"),
    ("run burgers --set nu=0", r"nu must be a number in \[.*\], got 0\.0"),
    ("run allen_cahn --set reaction=1e6", r"reaction must be a number in \[.*\], got 1000000\.0"),
    ("run poisson_nd --set problem.dim=1e6", "dim must be an integer from 2 to 1000, got 1000000"),
    ("run poisson_nd --set dim=1000 --set interior=1e8", "100000000 points in 1000 dimensions would take"),
    ("run drt2d --set cells=1000000", "1000000 × 1000000 cells of degree 4 would take"),
    ("run lshape2d --set uniform=30", "a mesh that is cut 30 times would take"),
    *[(f"run poisson3d {words}", message) for words, message in RUN],
    ("compare poisson3d", "--optimizers"),
    ("compare poisson3d --optimizers adam,,bfgs", "separated by commas"),
    ("compare poisson3d --optimizers adam,adam", "different values"),
    ("compare poisson3d --optimizers adamm", "did you mean adam"),
    ("compare poison3d --optimizers adam", "did you mean poisson3d"),
    ("compare poisson3d --optimizers adam --steps 0", "positive integer"),
    ("sweep poisson3d", "--param"),
    ("sweep poisson3d --param gamma", "--values"),
    ("sweep poisson3d --param gamma --values 1,,2", "separated by commas"),
    ("sweep poisson3d --param gama --values 1,2", "did you mean gamma"),
    ("sweep poisson3d --param gamma --values big", "a number, got 'big'"),
    ("sweep poisson3d --param gamma --values 1,2 --set gamma=3", "--set gives gamma twice, 3 and 1"),
    ("compare poisson3d --optimizers adam --out other", "other things in it"),
    ("compare poisson3d --optimizers adam --out other --force", "other things in it"),
    ("compare poisson3d --optimizers adam --out run", "run holds a run, not a comparison or a sweep"),
    ("sweep poisson3d --param gamma --values 1 --out other --force", "other things in it"),
    ("spectrum poisson3d --out other --force", "other things in it"),
    ("spectrum poisson3d --at x", "0,10,100"),
    ("spectrum poisson3d --at 5 --optimizer sgd", "unknown optimizer"),
    ("table", "RUNS"),
    ("table nowhere", "no folder nowhere"),
    ("table a-file", "no folder a-file"),
    ("table empty", "no run in empty"),
    ("table half.tar.xz", "cannot read half.tar.xz: it is not a whole archive"),
    ("table no.tar.xz", "no folder no.tar.xz, nor an archive"),
    ("table run --format html", "unknown format 'html'"),
    ("table run -o empty", "empty is a folder"),
    ("table run -o a-file", "a-file exists: choose another --output, or --force to replace it"),
    ("report run -o a-file", "a-file exists: choose another --output, or --force to replace it"),
    ("plot run --out other", "other things in it"),
    ("plot run --out run", "run holds a run, not pictures"),
    ("table run -o no/where.md", "does not exist"),
    ("table no-json", "not valid JSON"),
    ("table no-keys", "it lacks"),
    ("table bad-history", "not a record of a step"),
    ("table bad-line", "not a record of a step"),
    ("table bad-result", "cannot read bad-result/result.json"),
    ("plot nowhere", "no folder nowhere"),
    ("plot run --out a-file", "a-file"),
    ("plot run --movie u.gif", "poisson3d has no time: a movie is that of an evolution problem"),
    ("plot run --movie a-file", "a-file exists: choose another --movie, or --force to replace it"),
    ("plot run --movie empty", "empty is a folder"),
    ("plot run no-json --movie u.gif", "not valid JSON"),
    ("plot run spare --movie u.gif", "--movie is that of one run, and there are 2"),
    ("plot run --movie u.gif --out p", "leave --out out"),
    ("plot run --movie u.gif --no-fields", "leave --no-fields out"),
    ("plot run --times 3", "--times and --force are those of a --movie"),
    ("plot run --force", "--times and --force are those of a --movie"),
    ("plot run --movie u.gif --times x", "--times takes a number of times or a list"),
    ("export", "RUN"),
    ("export run", "--output"),
    ("export nowhere -o u.vtu", "no folder nowhere"),
    ("export empty -o u.vtu", "no run in empty"),
    ("export no-json -o u.vtu", "not valid JSON"),
    ("export run -o u.vtu", "run has no checkpoint to draw from"),
    ("export run -o a-file", "a-file exists: choose another --output, or --force to replace it"),
    ("export run -o empty", "empty is a folder"),
    ("export run -o no/where.vtu", "does not exist"),
    ("export run -o u.vtk", "u.vtk must end with one of .vtu, .pvd, .npz, .csv"),
    ("export run -o u.vtu --resolution 0", "--resolution must be a positive integer, got 0"),
    ("export run -o u.vtu --resolution x", "valid int"),
    ("export run -o u.vtu --times a,b", "--times takes a number of times or a list"),
    ("export run -o u.vtu --mesh no.msh", "there is no mesh no.msh"),
    ("export run -o u.vtu --mesh a-file", "cannot read the mesh a-file"),
    ("export run -o u.vtu --mesh a-file --resolution 3", "--mesh has its own cells: leave --resolution out"),
    ("report nowhere", "no folder nowhere"),
    ("report run -o empty", "empty is a folder"),
    ("report run -o no/where.html", "does not exist"),
]


def contents(folder):
    return {path: path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


@pytest.mark.parametrize(("words", "message"), COMMANDS, ids=[words for words, _ in COMMANDS])
def test_wrong_input_is_one_line(home, capsys, words, message):
    before = contents(home)
    with pytest.raises(SystemExit) as stop:
        main(words.split())
    captured = capsys.readouterr()
    assert stop.value.code == 2
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert captured.err.startswith("natgrad: ")
    assert re.search(message, captured.err, re.IGNORECASE), captured.err
    assert "Traceback" not in captured.err
    assert contents(home) == before


def test_help_is_help(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["run", "--help"])
    assert stop.value.code == 0
    out = capsys.readouterr().out
    assert "--target-error" in out
    assert "--set" in out
