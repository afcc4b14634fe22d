"""The pages under docs/: their Python runs as it stands, and what they point to exists."""

import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from natgrad import zoo
from natgrad.experiment.optimizers import NAMES, NATURAL

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = sorted(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md"))
QUICK = ("extend.md", "strategies.md", "zoo.md")  # pages that take seconds; the others are slow tests
# Compiles in a fifth of the time, and the numbers are the same to round-off.
FLAGS = "--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false"


def text(page):
    return (DOCS / page).read_text()


def blocks(page):
    return re.findall(r"^```python\n(.*?)^```", text(page), flags=re.DOTALL | re.MULTILINE)


def with_code():
    slow = lambda page: () if page in QUICK else (pytest.mark.slow,)
    return [pytest.param(page, marks=slow(page)) for page in PAGES if blocks(page)]


@pytest.mark.parametrize("page", with_code())
def test_the_code_of_a_page_runs(page, tmp_path):
    """All blocks in order, in one namespace, in an empty folder, as a reader would."""
    script = tmp_path / "page.py"
    script.write_text("\n".join(blocks(page)))
    environment = {
        **os.environ,
        "JAX_PLATFORMS": "cpu",
        "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, sys.path)]),
        "XLA_FLAGS": " ".join([os.environ.get("XLA_FLAGS", ""), FLAGS]).strip(),
    }
    done = subprocess.run(
        [sys.executable, script.name], capture_output=True, text=True, cwd=tmp_path, env=environment, timeout=900
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]


@pytest.mark.parametrize("page", PAGES)
def test_the_code_of_a_page_is_python(page):
    for code in blocks(page):
        compile(code, page, "exec")


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page):
    """To a file of the docs, and, on an API page, to an object that exists and is shown there."""
    for target in re.findall(r"\]\((?!https?:)([^)\s]*)\)", text(page)):
        path, _, anchor = target.partition("#")
        found = (DOCS / page).parent / path if path else DOCS / page
        assert found.is_file(), f"{page}: there is no {target}"
        if anchor.startswith("natgrad."):
            assert resolves(anchor), f"{page}: there is no {anchor}"
            shown = re.findall(r"^::: (\S+)", found.read_text(), flags=re.MULTILINE)
            assert any(anchor == module or anchor.startswith(module + ".") for module in shown), f"{page}: {target}"


@pytest.mark.parametrize("page", PAGES)
def test_no_number_is_left_out(page):
    """`@ROWS@` and its like stand where a number is to come, until it is there."""
    assert not re.findall(r"@[A-Z][A-Z0-9]*@", text(page))


def test_the_readme_counts_what_there_is():
    readme = (ROOT / "README.md").read_text()
    said = re.search(r"There are (\d+) problems .* and (\d+) optimizers: (\d+) natural", readme)
    assert [int(number) for number in said.groups()] == [len(zoo.names()), len(NAMES), len(NATURAL)]


def test_every_page_is_in_the_navigation():
    named = re.findall(r": (\S+\.md)$", (ROOT / "mkdocs.yml").read_text(), flags=re.MULTILINE)
    assert sorted(named) == PAGES, "docs/ and the navigation of mkdocs.yml differ"


def test_every_module_of_the_api_exists():
    for page in PAGES:
        for name in re.findall(r"^::: (\S+)", text(page), flags=re.MULTILINE):
            assert resolves(name), f"{page}: there is no {name}"


def resolves(name):
    """Whether a dotted name is a module, or an attribute (of an attribute …) of one."""
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for part in parts[cut:]:
            if not hasattr(found, part) and part not in getattr(found, "__annotations__", {}):
                break
            found = getattr(found, part, None)
        else:
            return True
    return False
