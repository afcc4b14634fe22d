"""The build of the docs (`hooks` of mkdocs.yml): what it shows of results/ is made from there, whatever a page says.

Tables of runs are made by `benchmarks.pages`, the gallery by `benchmarks.gallery`, in out/, which git ignores, and go
from there into the site.
"""

import subprocess
import sys
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

ROOT = Path(__file__).parents[1]
MADE = ROOT / "out" / "gallery"
TABLES = ROOT / "out" / "pages" / "docs"
MARKER = "<!-- gallery -->"


def on_pre_build(config: Any) -> None:
    """In processes of their own: the gallery needs double precision."""
    for words in (["benchmarks.gallery", "--draw", str(MADE)], ["benchmarks.pages", "--into", str(TABLES.parent)]):
        subprocess.run([sys.executable, "-m", *words], check=True, cwd=ROOT)


def on_files(files: Any, config: Any) -> Any:
    for picture in sorted(MADE.glob("*.png")):
        files.append(File.generated(config, f"img/gallery/{picture.name}", abs_src_path=str(picture)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    made = TABLES / page.file.src_uri
    markdown = made.read_text() if made.is_file() else markdown
    return markdown.replace(MARKER, (MADE / "gallery.md").read_text()) if MARKER in markdown else markdown
