"""`natgrad watch`: a page that follows runs while they go on, served on this machine to this machine.

/ is the page (watch.html), which asks for /data, what it shows, and gets it where that has changed: once a second, or
less often where an answer takes long.
"""

import json
import sys
import threading
import time
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import numpy as np

from natgrad.experiment.live import Follower, Live, below, names
from natgrad.experiment.records import is_archive
from natgrad.experiment.report import QUANTITIES, chart, curves, template
from natgrad.experiment.runs import Group, Run
from natgrad.experiment.staged import staged
from natgrad.experiment.statuses import BROKEN
from natgrad.storage.files import dumps

HOST = "127.0.0.1"
PAUSE = 0.3  # seconds between two looks at least, however many pages ask
POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; connect-src 'self'; img-src data:"


class Watch:
    """All runs in some folders, also those that come later."""

    def __init__(self, places: Sequence[Path]):
        for place in places:
            if is_archive(place):
                raise ValueError(f"{place} is an archive, in which nothing goes on: `natgrad report` shows it")
            if not place.is_dir():
                raise ValueError(f"there is no folder {place} to watch")
        self.places = list(dict.fromkeys(places))
        self.followers: dict[Path, Follower] = {}
        self.drawn: dict[Path, tuple[Run, dict[str, Any]]] = {}
        self.lock = threading.Lock()
        self.version, self.refreshed, self.text = 0, -PAUSE, ""
        self.born = str(time.time_ns())  # a page that is older than this process knows nothing

    def answer(self, seen: str) -> str:
        """JSON: what is shown, or its version alone where that is the one that was seen."""
        with self.lock:
            if time.monotonic() - self.refreshed >= PAUSE:
                self.refresh()
                self.refreshed = time.monotonic()
            version = f"{self.born}-{self.version}"
            return dumps({"version": version}) if seen == version else f'{{"version": "{version}", {self.text[1:]}'

    def refresh(self) -> None:
        """Looks at all folders, and for new ones."""
        found = list(dict.fromkeys(folder for place in self.places for folder in below(place)))
        gone = [folder for folder in self.followers if folder not in found]
        for folder in gone:
            del self.followers[folder]
        for folder in found:
            self.followers.setdefault(folder, Follower(folder))
        changed = [follower.refresh() for follower in self.followers.values()]
        if gone or any(changed) or not self.text:
            self.version += 1
            self.text = json.dumps({"problems": self.problems(), "unreadable": self.unreadable()}, allow_nan=False)

    def draw(self, g: Group) -> dict[str, Any]:
        """The curves of a run, made once as long as nothing changes."""
        run = g.runs[0]
        if self.drawn.get(run.folder, (None,))[0] is not run:
            self.drawn[run.folder] = run, curves(g)
        return dict(self.drawn[run.folder][1])

    def problems(self) -> list[dict[str, Any]]:
        """The runs of each problem, as rows and as curves over each other."""
        called = names(list(self.followers), self.places)
        runs = [(follower, follower.run) for follower in self.followers.values() if follower.run is not None]
        shown = []
        for problem in dict.fromkeys(run.problem for _, run in runs):
            members = [(follower, run) for follower, run in runs if run.problem == problem]
            drawn = chart([Group(problem, called[run.folder], (run,)) for _, run in members], self.draw)
            rows = [
                {"label": s["label"], "color": s["color"], "dash": s["dash"], **row(run, follower.standing)}
                for (follower, run), s in zip(members, drawn["series"], strict=True)
            ]
            for s, entry in zip(drawn["series"], rows, strict=True):
                s["dead"] = entry["mood"] == "bad"
            shown.append({"name": problem, "rows": rows, "chart": drawn})
        return shown

    def unreadable(self) -> list[str]:
        """Why some are not shown."""
        return [follower.why_unreadable for follower in self.followers.values() if follower.why_unreadable]


def row(run: Live, status: str) -> dict[str, Any]:
    """A run as it stands: the last known of each quantity."""
    return {
        "status": {"steps": "finished"}.get(status, status),
        "mood": "live" if status == "running" else "bad" if status in (*BROKEN, "dead", "silent") else "over",
        "step": position(run),
        "time": last(run.column("time")),
        "values": {name: last(run.column(name)) for name in QUANTITIES},
        "notes": list(run.diagnosis),
    }


def position(run: Live) -> str:
    """How many of its steps a run has taken; for a run in stages, also the stage it is in."""
    if not staged(run.config):
        return f"{run.steps} / {run.config['steps']}"
    if not run.records:
        return str(run.steps)
    if "windows" in run.config:
        return f"{run.steps} in window {run.records[-1]['window']}"
    return f"{run.steps} at {next(iter(run.config['via']))} = {run.records[-1]['value']:g}"


def last(values: np.ndarray) -> float | None:
    """The last that is known."""
    known = np.flatnonzero(np.isfinite(values))
    return float(values[known[-1]]) if len(known) else None


class Handler(BaseHTTPRequestHandler):
    """Answers this machine's browsers."""

    server: "Server"

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        if self.headers.get("Host", "").partition(":")[0] not in (HOST, "localhost"):
            self.send_error(403)  # a page from elsewhere whose name was made to mean this machine
        elif url.path == "/":
            self.give(self.server.page, "text/html")
        elif url.path == "/data":
            self.give(self.server.watch.answer(parse_qs(url.query).get("seen", [""])[0]), "application/json")
        else:
            self.send_error(404)

    def give(self, text: str, kind: str) -> None:
        data = text.encode()
        self.send_response(200)
        headers = {"Content-Type": f"{kind}; charset=utf-8", "Content-Length": str(len(data))}
        for name, value in {**headers, "Cache-Control": "no-store", "Content-Security-Policy": POLICY}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *words: Any) -> None:
        """Nothing: one line per second is not worth reading."""


class Server(ThreadingHTTPServer):
    """Answers each request in a thread of its own."""

    def __init__(self, watch: Watch, port: int):
        self.watch = watch
        self.page = template("watch.html", quantities=json.dumps(QUANTITIES, ensure_ascii=False))
        if not 0 <= port < 2**16:
            raise ValueError(f"--port must be from 0 to {2**16 - 1}, got {port}")
        try:
            super().__init__((HOST, port), Handler)
        except OSError as error:
            raise ValueError(f"cannot listen at port {port} ({error.strerror}): choose another --port") from None

    @property
    def address(self) -> str:
        return f"http://{HOST}:{self.server_port}/"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that has gone is no error."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


def serve(places: Sequence[Path], port: int) -> None:
    """Serves the page until Ctrl-C."""
    with Server(Watch(places), port) as server:
        try:
            print(f"{server.address} follows {', '.join(map(str, places))}; Ctrl-C ends it", flush=True)
            server.serve_forever()
        except KeyboardInterrupt:
            print("\nnatgrad: watched no longer; the runs go on", flush=True)
