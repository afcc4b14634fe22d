"""The wheel: built, installed into an empty environment, and at work there without this folder."""

import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

import natgrad as ng

ROOT = Path(ng.__file__).parent.parent


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Built by the backend itself, so that nothing is fetched."""
    pytest.importorskip("hatchling")
    out = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(out)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return next(out.glob("*.whl"))


@pytest.fixture(scope="module")
def empty(wheel, tmp_path_factory):
    """bin/ of an environment that has the wheel, and behind it the dependencies of this one."""
    home = tmp_path_factory.mktemp("empty")
    subprocess.run([sys.executable, "-m", "venv", str(home)], check=True)
    pip = [home / "bin" / "python", "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", wheel]
    subprocess.run(pip, check=True)
    site = next((home / "lib").glob("python*/site-packages"))
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return home / "bin"


def run(*command, cwd):
    return subprocess.run(command, cwd=cwd, check=True, capture_output=True, text=True).stdout


@pytest.mark.slow
def test_the_wheel_has_what_it_needs_and_nothing_else(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    assert {
        "natgrad/py.typed",
        "natgrad/experiment/report.html",
        "natgrad/experiment/watch.html",
        "natgrad/experiment/chart.js",
        "natgrad/interop/optimistix.py",
    } <= set(names)
    assert {name.partition("/")[0].partition("-")[0] for name in names} == {"natgrad"}
    sources = {str(path.relative_to(ROOT)) for path in (ROOT / "natgrad").rglob("*.py")}
    assert sources == {name for name in names if name.endswith(".py")}


@pytest.mark.slow
def test_the_wheel_works_in_an_empty_environment(empty, tmp_path):
    version = f"natgrad {ng.__version__}\n"
    assert run(empty / "natgrad", "--version", cwd=tmp_path) == version
    assert run(empty / "python", "-m", "natgrad", "--version", cwd=tmp_path) == version
    assert "poisson3d" in run(empty / "natgrad", "list", cwd=tmp_path)
    where = Path(run(empty / "python", "-c", "import natgrad; print(natgrad.__file__)", cwd=tmp_path).strip())
    assert empty.parent in where.parents
    assert (where.parent / "py.typed").exists()
