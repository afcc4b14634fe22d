"""The tables of the docs are those of results/, and the build of the docs shows no others."""

import re
from types import SimpleNamespace

import pytest

from benchmarks.markers import filled
from benchmarks.pages import DOCS, PAGES


@pytest.mark.parametrize("name", PAGES)
def test_a_page_has_what_is_in_results(name):
    text = (DOCS / name).read_text()
    assert PAGES[name](text) == text, "python -m benchmarks.pages"


@pytest.mark.parametrize("name", ["performance.md", "peers.md", "records.md", "geometry.md", "inverse.md"])
def test_a_table_typed_by_hand_is_replaced(name):
    text = (DOCS / name).read_text()
    typed = re.sub(r"(<!-- \w+: made by [\w.]+ -->\n).*?(\n<!-- )", r"\1mine\2", text, flags=re.DOTALL)
    assert typed.count("mine") > text.count("mine")
    assert PAGES[name](typed) == text


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
