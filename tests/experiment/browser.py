"""A headless browser: what a page says of itself once its scripts have run."""

import json
import re
import shutil
import subprocess

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = (
    "--headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking --disable-component-update "
    "--disable-sync --enable-logging=stderr --dump-dom"
)


def visit(address, home, budget=2000):
    """What the page at an address says between SEEN and NEES, as JSON; nothing may be said on the console."""
    words = [*FLAGS.split(), f"--virtual-time-budget={budget}", f"--user-data-dir={home / 'profile'}", address]
    done = subprocess.run([CHROMIUM, *words], capture_output=True, text=True, timeout=120)
    assert "CONSOLE" not in done.stderr, [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    found = re.search("<pre>SEEN([^ ].*)NEES", done.stdout)
    assert found, "a script on the page failed"
    return json.loads(found[1])
