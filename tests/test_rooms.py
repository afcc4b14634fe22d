"""The plan of the house: which room may import which, and what importing the library costs."""

import ast
import inspect
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import natgrad as ng

ROOT = Path(ng.__file__).parent
NEEDS_NOTHING = {"extras", "options", "indices", "backend"}
ABOVE_PROBLEM = NEEDS_NOTHING | {"linalg", "calculus", "networks", "unknowns", "domains", "fem"}
ABOVE_SOLVE = ABOVE_PROBLEM | {"problem", "gramian", "precondition"}
MAY_IMPORT = {
    "extras": set(),
    "options": set(),
    "indices": set(),
    "backend": set(),
    "linalg": {"backend"},
    "calculus": {"options"},
    "networks": {"options", "backend"},
    "unknowns": {"options", "backend"},
    "domains": {"extras", "options", "backend"},
    "fem": {"extras", "options", "indices", "backend", "linalg"},
    "problem": {"options", "indices", "backend", "calculus", "networks", "unknowns", "domains", "fem"},
    "gramian": {"options", "linalg", "backend", "problem"},
    "precondition": {"options", "backend", "linalg", "gramian", "problem"},
    "plan": {"options", "gramian", "problem"},
    "optim": ABOVE_SOLVE | {"plan"},
    "progress": {"problem"},
    "diagnosis": {"problem"},
    "stepping": {"problem", "backend"},
    "resuming": {"problem"},
    "storage": set(),
    "history": {"resuming", "storage", "interop"},
    "stopping": {"options", "problem"},
    "callbacks": {"problem"},
    "training": {"callbacks", "history", "resuming", "stopping", "stepping", "diagnosis"}
    | {"optim", "backend", "problem"},
    "batch": {"backend", "problem", "stepping"},
    "many": {"callbacks", "history", "stopping", "stepping", "batch", "training", "progress", "solve"}
    | {"options", "backend", "gramian", "problem"},
    "solve": {"callbacks", "history", "resuming", "stopping", "stepping", "training", "progress"}
    | {"options", "backend", "plan", "optim", "problem"},
    "stages": {"history", "resuming", "stopping", "training", "progress", "solve", "diagnosis"}
    | {"options", "backend", "problem", "callbacks"},
    "uncertainty": {"history", "optim", "gramian", "backend", "problem", "domains", "unknowns"},
    "interop": ABOVE_SOLVE | {"callbacks", "plan", "optim", "storage"},
    "zoo": {
        "extras",
        "options",
        "storage",
        "backend",
        "problem",
        "calculus",
        "networks",
        "unknowns",
        "domains",
        "fem",
        "optim",
    },
    "experiment": ABOVE_SOLVE
    | {
        "callbacks",
        "diagnosis",
        "plan",
        "optim",
        "progress",
        "stopping",
        "solve",
        "many",
        "stages",
        "zoo",
        "storage",
        "interop",
    },
    "saving": {"backend", "problem", "history", "solve", "storage", "experiment"},
    "cli": ABOVE_SOLVE | {"diagnosis", "plan", "optim", "progress", "solve", "zoo", "experiment", "storage"},
    "__main__": {"extras", "cli"},
}
FILES = sorted(path for path in ROOT.rglob("*.py") if path != ROOT / "__init__.py")
PUBLIC = [name for name in vars(ng) if not name.startswith("_")]


def imported_rooms(source: str, room: str) -> set[str]:
    """The rooms of natgrad that a file in `room` imports, wherever in the file it does."""
    rooms = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module == "natgrad":
            modules = [f"natgrad.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            modules = [node.module or ""]
        elif isinstance(node, ast.ImportFrom):
            raise AssertionError(f"{room}: relative imports hide the room, line {node.lineno}")
        else:
            continue
        for module in modules:
            top, *rest = module.split(".")
            if top == "natgrad":
                rooms.add(rest[0] if rest else "natgrad")
    return rooms - {room, "__version__"}  # the version is no room


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_rooms_import_only_what_the_plan_allows(path):
    room = path.relative_to(ROOT).parts[0].removesuffix(".py")
    assert room in MAY_IMPORT, f"{room} is not in the table of rooms"
    forbidden = imported_rooms(path.read_text(), room) - MAY_IMPORT[room]
    assert not forbidden, f"{room} must not import {', '.join(sorted(forbidden))}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_only_the_backend_knows_of_devices_and_of_the_compiler(path):
    rooms = path.relative_to(ROOT).parts
    words = re.findall("default_backend|pure_callback|optimization_barrier|psum|all_gather", path.read_text())
    assert rooms[0] == "backend" or not words
    if rooms[0] == "linalg":  # matrices alone: what several devices need is handed to it
        assert not re.search("backend.parallel|on_cpu", path.read_text())


def test_the_reader_of_imports_sees_them():
    source = "import natgrad.optim.ngd as a\nfrom natgrad import solve\ndef f():\n    from natgrad.linalg import pcg\n"
    assert imported_rooms(source, "gramian") == {"optim", "solve", "linalg"}
    assert imported_rooms("import natgrad as ng\nimport jax", "gramian") == {"natgrad"}


def test_no_room_imports_one_below_it():
    """The table itself has no cycle."""
    done: set[str] = set()
    while len(done) < len(MAY_IMPORT):
        ready = {room for room, above in MAY_IMPORT.items() if room not in done and above <= done}
        assert ready, "the table of rooms has a cycle"
        done |= ready


def test_contributors_are_told_of_every_room():
    text = (ROOT.parent / "CONTRIBUTING.md").read_text()
    first = " ".join(re.findall(r"^\| (`.*?) \|", text, re.MULTILINE))  # the first column of the table
    told = {name.strip("/").removesuffix(".py") for name in re.findall(r"`(.*?)`", first)}
    assert told == MAY_IMPORT.keys() - {"__main__"}


def test_files_and_functions_are_short():
    """A file has 400 lines at most, a function 60."""
    for path in ROOT.rglob("*.py"):
        source = path.read_text()
        assert source.count("\n") <= 400, path
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.FunctionDef):
                assert node.end_lineno - node.lineno < 60, f"{path}: {node.name}"


def test_versions_agree():
    root = ROOT.parent
    assert tomllib.loads((root / "pyproject.toml").read_text())["project"]["version"] == ng.__version__
    assert f"\nversion: {ng.__version__}\n" in (root / "CITATION.cff").read_text()


def test_import_leaves_the_precision_alone_and_draws_nothing():
    """Importing natgrad neither switches x64 on nor loads what only some uses need."""
    code = (
        "import sys, jax\n"
        "before = jax.config.jax_enable_x64\n"
        "import natgrad\n"
        "LAZY = 'matplotlib meshio rich typer optax optimistix lineax skfem tensorboardX'.split()\n"
        "LAZY += 'scipy.stats scipy.sparse scipy.linalg'.split()\n"
        "print(before, jax.config.jax_enable_x64, *[m for m in LAZY if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT.parent)
    assert out.stdout.split() == ["False", "False"]
    assert out.stderr == ""


@pytest.mark.parametrize("name", PUBLIC)
def test_public_names_are_explained(name):
    doc = vars(getattr(ng, name)).get("__doc__") if inspect.isclass(getattr(ng, name)) else getattr(ng, name).__doc__
    assert doc
    assert doc.strip()
    # What a generated constructor says of itself explains nothing.
    assert not doc.startswith(f"{name}(")


def test_the_public_list_is_not_empty():
    assert {"LeastSquares", "NystromNGD", "solve", "gramian"} <= set(PUBLIC)
