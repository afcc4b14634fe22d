"""The tables of the docs are those of results/, and the build of the docs shows no others."""

import re
from types import SimpleNamespace

import pytest

from benchmarks import tables
from benchmarks.markers import filled
from benchmarks.pages import PAGES, ROOT

PATHS = [path.relative_to(ROOT).as_posix() for path in sorted((ROOT / "docs").rglob("*.md"))]
#: Notes stay as they were written, docs/api/ is made of the code.
ALL = ["README.md", *(path for path in PATHS if not path.startswith(("docs/notes/", "docs/api/")))]
#: What a measured number looks like in the cell of a table: 4.2e-7, 0.67 s, 22 MB, or nothing but 0.67.
NUMBER = re.compile(r"\d(\.\d+)?e-\d+|\b\d[\d.,]* (s|ms|GB|MB)\b|(?<=\| )\d[\d,]*\.\d+(?= \|)")
#: Tables whose numbers nobody measured, by their heads.
GIVEN = {
    "| launcher | what it sends | how long it waits |": "limits",
    "| | measures | Monte Carlo, Sobol | Gauss |": "tolerances",
    "| you see | it means | change |": "a threshold to look out for",
    "| rule | μ is the larger of γ·eps·λ̂₁ and | |": "defaults of the options",
    "| problem | c | d |": "defaults of the options",
    "| p, q | J | G | a preconditioner of rank 500, at its peak | `batched`, B = 1,000 |": "by formulas",
}


def struck(text: str) -> str:
    """The page without the measured numbers of its tables."""
    table = re.compile(r"^(\|.*\n)(\|[-|: ]+\n)((?:\|.*\n)+)", flags=re.MULTILINE)
    strike = lambda found: found[1] + found[2] + NUMBER.sub("?", found[3])
    return table.sub(lambda found: found[0] if found[1].strip() in GIVEN else strike(found), text)


@pytest.mark.parametrize("name", PAGES)
def test_a_page_has_what_is_in_results(name):
    text = (ROOT / name).read_text()
    assert PAGES[name](text) == text, "python -m benchmarks.pages"


def lost(name, text):
    """The lines that results/ do not bring back where the numbers of all tables are struck out."""
    made = PAGES.get(name, lambda page: page)(struck(text))
    return [line for line, was in zip(made.splitlines(), text.splitlines(), strict=True) if line != was]


@pytest.mark.parametrize("name", ALL)
def test_no_measured_number_of_a_table_is_typed(name):
    assert not lost(name, (ROOT / name).read_text()), "put the table into results/tables/"


def test_a_typed_table_is_found():
    text = (ROOT / "docs/units.md").read_text()
    assert lost("docs/units.md", text + "\n| | error |\n|---|---|\n| mine | 4.2e-7 |\n") == ["| mine | ? |"]


def test_what_counts_as_a_measured_number():
    table = "| a | b |\n|---|---|\n| 1e-3 of it | 12 |\n| 1.5 | 3.4 s, 2,000 points |\n\n4.2e-7 | 3.4 s\n"
    assert struck(table) == "| a | b |\n|---|---|\n| ? of it | 12 |\n| ? | ?, 2,000 points |\n\n4.2e-7 | 3.4 s\n"


@pytest.mark.parametrize("name", PAGES)
def test_a_table_typed_by_hand_is_replaced(name):
    text = (ROOT / name).read_text()
    typed = re.sub(r"(<!-- \w+: made by [\w.]+ -->\n).*?(\n<!-- )", r"\1mine\2", text, flags=re.DOTALL)
    assert typed.count("mine") > text.count("mine") or name == "docs/zoo.md"
    assert PAGES[name](typed) == text


def test_the_folder_has_the_tables_of_the_index_and_no_others():
    index = tables.index()
    assert {path.stem for path in tables.FOLDER.glob("*.csv")} == {*index, "index"}
    assert all(row["by"] in ("command", "hand") for row in index.values())
    assert all((ROOT / row["page"]).is_file() and row["on"] for row in index.values())


@pytest.mark.parametrize("name", [name for name, row in tables.index().items() if row["by"] == "command"])
def test_a_command_that_makes_a_table_can_keep_it(name):
    """It is one, of a benchmark with `--keep`."""
    command = tables.index()[name]["command"]
    module = re.search(r"-m benchmarks\.(\w+)", command)
    assert module is not None
    assert "\n" not in command
    assert "tables.option(" in (ROOT / "benchmarks" / f"{module[1]}.py").read_text()


def test_a_benchmark_keeps_its_table(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(tables, "FOLDER", tmp_path)
    row = ("a", "docs/a.md", "command", "A=1 python -m benchmarks.made --steps 5", "not recorded", "A note.")
    tables.save(tmp_path / "index.csv", [tables.COLUMNS, row])
    tables.save(tmp_path / "a.csv", [["", "s"], ["x", "1"]])
    monkeypatch.setattr("sys.argv", ["/somewhere/made.py", "--steps", "6", "--keep", "a"])
    tables.show(("", "s"), iter([("x", "2"), ("y", "")]), "a")
    assert capsys.readouterr().out == "| | s |\n|---|---|\n| x | 2 |\n| y | |\n"
    assert tables.read(tmp_path / "a.csv") == [["", "s"], ["x", "2"], ["y", ""]]
    kept = tables.index()["a"]
    assert kept["command"] == "A=1 python -m benchmarks.made --steps 6"
    assert "jax" in kept["on"]
    page = tables.filled_page("docs/a.md", "<!-- a: made by benchmarks.tables -->\n<!-- a: end -->")
    assert f"| x | 2 |\n| y | |\n\n(`A=1 python -m benchmarks.made --steps 6`: {kept['on']}. A note.)" in page


def test_a_table_put_together_by_hand_is_not_run():
    name = next(name for name, row in tables.index().items() if row["by"] == "hand")
    with pytest.raises(ValueError, match=f"{name} is put together by hand, from "):
        tables.run(name)


def test_a_page_without_its_markers_is_refused():
    assert filled("<!-- a: made by b -->\n1\n<!-- a: end -->", "b", {"a": r"\1"}).splitlines()[2] == r"\1"
    with pytest.raises(ValueError, match="must have the line <!-- a: made by b --> and then <!-- a: end -->, once"):
        filled("<!-- a: made by b -->", "b", {"a": ""})


def test_the_build_shows_what_was_made(tmp_path, monkeypatch):
    pytest.importorskip("mkdocs")
    from benchmarks import docs_hook

    monkeypatch.setattr(docs_hook, "TABLES", tmp_path)
    (tmp_path / "zoo.md").write_text("made")
    page = lambda name: SimpleNamespace(file=SimpleNamespace(src_uri=name))
    assert docs_hook.on_page_markdown("written", page=page("zoo.md")) == "made"
    assert docs_hook.on_page_markdown("written", page=page("save.md")) == "written"
