"""The build of the docs (`hooks` of mkdocs.yml): draws the gallery, and puts it where its page has a marker.

The pictures are made in out/gallery, which git ignores, and go from there into the site.
"""

import subprocess
import sys
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

ROOT = Path(__file__).parents[1]
MADE = ROOT / "out" / "gallery"
MARKER = "<!-- gallery -->"


def on_pre_build(config: Any) -> None:
    """In a process of its own, in double precision."""
    subprocess.run([sys.executable, "-m", "benchmarks.gallery", "--draw", str(MADE)], check=True, cwd=ROOT)


def on_files(files: Any, config: Any) -> Any:
    for picture in sorted(MADE.glob("*.png")):
        files.append(File.generated(config, f"img/gallery/{picture.name}", abs_src_path=str(picture)))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    return markdown.replace(MARKER, (MADE / "gallery.md").read_text()) if MARKER in markdown else markdown
