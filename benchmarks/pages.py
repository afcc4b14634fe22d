"""The tables of the docs that come from results/: what the build of the docs shows, whatever the page says.

    python -m benchmarks.pages                     # writes them into docs/ and the README
    python -m benchmarks.pages --into out/pages    # what the build of the docs does: whole pages, docs/ as it was

A table stands between two lines, `<!-- NAME: made by MODULE -->` and `<!-- NAME: end -->`, or is found by its head.
"""

import argparse
from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path

from benchmarks import examples, presets, records, summaries, tables
from benchmarks.keep import RESULTS
from benchmarks.markers import filled
from benchmarks.peers import case, dsgnar_runs
from benchmarks.peers.run import HEAD, PEERS, markdown, rows
from benchmarks.peers.table import load
from benchmarks.published import default_table, published_table
from natgrad.experiment.runs import find
from natgrad.storage.files import write

ROOT = Path(__file__).parents[1]


@cache
def of_published() -> Mapping[str, str]:
    """The tables of docs/performance.md."""
    return {
        "default": default_table(find([RESULTS / "paper.tar.xz"])),
        "published": published_table(find([RESULTS / "published.tar.xz"])),
    }


@cache
def of_packages() -> Mapping[str, str]:
    """The table of docs/peers.md."""
    names = [(peer, method) for peer in PEERS for method in PEERS[peer][1]]
    order = lambda run: (case.PROBLEMS.index(run["problem"]), names.index((run["peer"], run["setting"])))
    return {"packages": markdown(HEAD, rows(sorted(load(RESULTS / "packages.tar.xz"), key=order)))}


OTHERS: Mapping[str, Callable[[str], str]] = {
    **{f"docs/{name}": made for name, made in presets.PAGES.items()},
    "docs/records.md": lambda text: dsgnar_runs.page(records.page(text)),
    "docs/geometry.md": examples.page("plate", "stl", "parametric"),
    "docs/inverse.md": examples.page("noise", "coverage"),
    "docs/performance.md": lambda text: filled(text, "benchmarks.published", of_published()),
    "docs/peers.md": lambda text: filled(text, "benchmarks.peers.run", of_packages()),
}


def page(name: str, text: str) -> str:
    """A page with all of its tables."""
    text = OTHERS[name](text) if name in OTHERS else text
    return tables.filled_page(name, summaries.filled_page(name, text))


#: What makes a page of its text, by its path in the repository.
PAGES: Mapping[str, Callable[[str], str]] = {
    name: partial(page, name) for name in sorted({*OTHERS, *summaries.PAGES, *tables.pages()})
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--into", type=Path, default=ROOT, metavar="DIR")
    into = parser.parse_args().into
    (into / "docs").mkdir(parents=True, exist_ok=True)
    for name, made in PAGES.items():
        write(into / name, made((ROOT / name).read_text()))


if __name__ == "__main__":
    main()
