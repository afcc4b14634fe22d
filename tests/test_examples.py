"""The examples run and reach the accuracy they assert; the README's code runs as it stands, with smaller numbers."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SCRIPTS = (
    "custom_loop",
    "export",
    "feinn_mesh",
    "hard_boundary",
    "inverse",
    "march",
    "inverse_noise",
    "own_metric",
    "own_pde",
    "parametric",
    "perforated_plate",
    "resume",
    "save_load",
    "several_devices",
    "stl",
    "trackers",
    "units",
    "vector_problem",
)
NOTEBOOKS = sorted((ROOT / "examples" / "notebooks").glob("*.ipynb"))
SMALLER = {
    "interior(10_000": "interior(200",
    "boundary(1_000": "boundary(60",
    "width=64, depth=3": "width=10, depth=2",
    "steps=300": "steps=3",
}


def readme_blocks():
    return re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), flags=re.DOTALL)


def smaller(code):
    for large, small in SMALLER.items():
        assert large in code, f"README's first example no longer says {large!r}"
        code = code.replace(large, small)
    return code


def run(*arguments):
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(
        [sys.executable, *map(str, arguments)], capture_output=True, text=True, cwd=ROOT, env=environment, timeout=600
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return done.stdout


def test_first_example_of_the_readme():
    code = smaller(readme_blocks()[0]) + "\nprint(solution.steps, *sorted(solution.errors))"
    assert run("-c", code).split() == ["3", "h1", "l2"]


@pytest.mark.slow
def test_all_code_of_the_readme():
    """In order, in one namespace, as a reader would go through it."""
    first, *rest = readme_blocks()
    assert "'h1'" in run("-c", "\n".join([smaller(first), *rest]))


@pytest.mark.slow
@pytest.mark.parametrize("name", SCRIPTS)
def test_example(name, tmp_path):
    if name in ("feinn_mesh", "stl", "export"):
        pytest.importorskip("meshio")
    if name == "perforated_plate":
        pytest.importorskip("skfem")
    if name == "trackers":
        pytest.importorskip("tensorboardX")
    out = ("--out", tmp_path / "run") if name in ("resume", "save_load", "export", "trackers") else ()
    assert "relative H¹ error" in run(ROOT / "examples" / f"{name}.py", *out)


def cells(notebook):
    """The code cells of a notebook, as text."""
    found = json.loads(notebook.read_text())["cells"]
    return [cell for cell in found if cell["cell_type"] == "code"]


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_is_python_without_outputs(notebook):
    for cell in cells(notebook):
        compile("".join(cell["source"]), notebook.name, "exec")
        assert not cell["outputs"], "store notebooks without their outputs"


@pytest.mark.slow
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_runs_from_top_to_bottom(notebook, tmp_path, monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "Agg")
    script = tmp_path / "notebook.py"
    script.write_text("\n".join("".join(cell["source"]) for cell in cells(notebook)))
    run(script)


@pytest.mark.parametrize("name", [*SCRIPTS, "demo"])
def test_example_has_help(name):
    """Each script compiles, imports and says what it is."""
    assert "--steps" in run(ROOT / "examples" / f"{name}.py", "--help")


@pytest.mark.slow
def test_demo_writes_a_picture_and_its_facts(tmp_path):
    out = run(ROOT / "examples" / "demo.py", "--out", tmp_path, "--steps", "3", "--no-adam")
    assert "relative L² error" in out
    assert sorted(path.name for path in tmp_path.iterdir()) == ["demo.png", "result.json"]
