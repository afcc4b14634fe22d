"""The page that follows runs: what it reads, what it says of each, and how it works in a browser."""

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from contextlib import contextmanager

import pytest

from natgrad.experiment import live
from natgrad.experiment.folder import LOCK, held
from natgrad.experiment.live import Follower
from natgrad.experiment.watch import PAUSE, Server, Watch
from tests.experiment.browser import CHROMIUM, visit
from tests.experiment.made_up import made_up


def going(folder, steps, **options):
    """A run that has taken so many of its steps, and the lines of the others."""
    made_up(folder, **options)
    (folder / "result.json").unlink()
    lines = (folder / "history.jsonl").read_text().splitlines(keepends=True)
    (folder / "history.jsonl").write_text("".join(lines[:steps]))
    return lines[steps:]


def content(folder):
    return {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.rglob("*") if path.is_file()}


def test_a_history_is_read_on(tmp_path, monkeypatch):
    """Only what is new is parsed, and half a line waits for its end."""
    rest = going(tmp_path / "run", 40)
    follower, parsed, parse = Follower(tmp_path / "run"), [], live.parse
    monkeypatch.setattr(live, "parse", lambda data, path: parsed.append(data.count(b"\n")) or parse(data, path))
    assert follower.refresh()
    assert not follower.refresh()
    with open(tmp_path / "run" / "history.jsonl", "a") as file:
        file.write(rest[0] + rest[1] + rest[2][:30])
        file.flush()
        assert follower.refresh()
        assert follower.run.steps == 42
        file.write(rest[2][30:])
    assert follower.refresh()
    assert parsed == [40, 0, 2, 1]
    assert follower.run.column("step").tolist() == list(range(1, 44))
    assert follower.run.series("h1")[0].tolist() == list(range(5, 44, 5))


def test_a_run_that_went_back_is_read_anew(tmp_path):
    """A resumed run cuts its history back to a checkpoint and writes other times, maybe past the old end."""
    rest = going(tmp_path / "run", 40)
    follower = Follower(tmp_path / "run")
    follower.refresh()
    path = tmp_path / "run" / "history.jsonl"
    records = [json.loads(line) for line in [*path.read_text().splitlines()[:30], *rest[:20]]]
    again = [{**record, "step": index + 1, "time": 2.0 * index} for index, record in enumerate(records)]
    path.write_text("".join(json.dumps(record) + "\n" for record in again))
    assert follower.refresh()
    assert follower.run.column("step").tolist() == list(range(1, 51))
    assert follower.run.column("time")[-1] == 98.0
    path.unlink()
    assert follower.refresh()
    assert follower.run.steps == 0


def test_who_still_writes(tmp_path, monkeypatch):
    """Nobody without a lock, or where its process is gone; of another machine only silence is known."""
    folder = tmp_path / "run"
    going(folder, 40)
    follower = Follower(folder)
    say = lambda: follower.refresh() and follower.standing
    assert say() == "dead"
    with held(folder, "run"):
        assert say() == "running"
        assert (folder / LOCK).read_text() == f"{socket.gethostname()} {os.getpid()}\n"
    assert say() == "dead"
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    (folder / LOCK).write_text("elsewhere 1\n")
    assert say() == "running"
    os.utime(folder / "history.jsonl", (1e9, 1e9))
    os.utime(folder / "config.json", (1e9, 1e9))
    assert say() == "silent"
    (folder / LOCK).write_text(f"{socket.gethostname()} {gone.pid}\n")
    assert say() == "dead"


def test_what_is_shown(tmp_path):
    """Runs of a problem over each other, new ones as they come, damaged ones in a line; nothing is written."""
    home = tmp_path / "runs"
    made_up(home / "a", gap=2.0, status="no descent", diagnosis=["stalled: a sentence"])
    going(home / "deep" / "b", 40, optimizer="adam")
    going(home / "c", 0, problem="heat3d")
    made_up(home / "d")
    (home / "d" / "config.json").write_text("{")
    (home / "a" / "checkpoint").mkdir()
    before = content(home)
    watch = Watch([home])
    shown = json.loads(watch.answer(""))
    assert content(home) == before
    poisson, heat = shown["problems"]
    assert (poisson["name"], heat["name"]) == ("poisson3d", "heat3d")
    assert [row["label"] for row in poisson["rows"]] == ["a", "deep/b"]
    assert [row["status"] for row in poisson["rows"]] == ["no descent", "dead"]
    a, b = poisson["rows"]
    assert (a["step"], a["time"], a["notes"]) == ("100 / 100", 1.0, ["stalled: a sentence"])
    assert a["values"]["validation"] == pytest.approx(2 * a["values"]["loss"])
    assert (b["step"], b["values"]["mu"]) == ("40 / 100", None)
    assert [s["dead"] for s in poisson["chart"]["series"]] == [True, True]
    assert heat["rows"][0]["step"] == "0 / 100"
    assert heat["chart"]["quantities"] == {}
    assert len(shown["unreadable"]) == 1
    assert "config.json" in shown["unreadable"][0]
    assert json.loads(watch.answer(shown["version"])) == {"version": shown["version"]}
    made_up(home / "e")
    watch.refreshed -= PAUSE
    again = json.loads(watch.answer(shown["version"]))
    assert again["version"] != shown["version"]
    assert [row["label"] for row in again["problems"][0]["rows"]] == ["a", "deep/b", "e"]


@contextmanager
def served(watch):
    """A server in a thread of its own."""
    with Server(watch, 0) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def test_only_this_machine_is_answered(tmp_path):
    """A page from elsewhere cannot read it under a name of its own, and it loads nothing from anywhere."""
    made_up(tmp_path / "run")
    with served(Watch([tmp_path])) as server:
        assert server.server_address[0] == "127.0.0.1"

        def ask(path, host):
            link = http.client.HTTPConnection("127.0.0.1", server.server_port)
            link.request("GET", path, headers={"Host": host})
            answer = link.getresponse()
            return answer.status, answer.read().decode(), answer.headers["Content-Security-Policy"]

        here = f"localhost:{server.server_port}"
        status, page, policy = ask("/", here)
        assert (status, "http" in page.replace("http://www.w3.org/2000/svg", "")) == (200, False)
        assert "default-src 'none'" in policy
        assert ask("/data", here)[0] == 200
        assert ask("/../config.json", here)[0] == 404
        assert ask("/data", "elsewhere.example")[0] == 403


PROBE = """<script>
const looks = [], cells = () => Array.from(document.querySelectorAll(".runs tbody tr"), row =>
  ["th", "[data-name=status]", "[data-name=step]"].map(name => row.querySelector(name).textContent));
const end = () => document.querySelectorAll("svg g path[fill=none]")[0].getAttribute("d").split("L").length;
const timer = setInterval(() => {
  if (!shown.size || !version) return;
  const now = cells(), choose = document.querySelector(".bar select");
  if (!looks.length) {
    choose.value = "loss"; choose.dispatchEvent(new Event("change"));
    looks.push(now, end());
  } else if (JSON.stringify(now) !== JSON.stringify(looks[0])) {
    clearInterval(timer);
    looks.push(now, end(), choose.value, document.querySelectorAll("svg g text").length);
    document.body.innerHTML = "<pre>SEEN" + JSON.stringify(looks) + "NEES</pre>";
  }
}, 100);
</script></body>"""


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium")
def test_the_page_follows_a_run_in_a_browser(tmp_path, monkeypatch):
    """Its history grows between two looks; the curve grows, the reader's choice stays, a dead run is marked."""
    home = tmp_path / "runs"
    rest = going(home / "a", 40)
    going(home / "b", 20, seed=1)
    (home / "a" / LOCK).write_text(f"{socket.gethostname()} {os.getpid()}\n")
    watch = Watch([home])
    refresh, looks = watch.refresh, []

    def grow():
        looks.append(1)
        if len(looks) == 3:
            with open(home / "a" / "history.jsonl", "a") as file:
                file.writelines(rest[:25])
        refresh()

    watch.refresh = grow
    monkeypatch.setattr("natgrad.experiment.watch.PAUSE", 0)  # the seconds of this browser are short
    with served(watch) as server:
        server.page = server.page.replace("</body>", PROBE)
        told = visit(server.address, tmp_path, budget=10_000)
    before, drawn, after, longer, chosen, marks = told
    assert before == [["a", "running", "40 / 100"], ["b", "dead", "20 / 100"]]
    assert after == [["a", "running", "65 / 100"], ["b", "dead", "20 / 100"]]
    assert (drawn, longer, chosen, marks) == (40, 65, "loss", 1)


HEADS = """<script>
const timer = setInterval(() => {
  if (!shown.size) return;
  clearInterval(timer);
  const ends = Array.from(document.querySelectorAll("table"), table => table.querySelector("th:last-child"));
  document.body.innerHTML = "<pre>SEEN" + JSON.stringify(ends.map(head => head.textContent)) + "NEES</pre>";
}, 100);
</script></body>"""


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium")
def test_an_energy_has_the_norm_of_its_gradient(tmp_path):
    """It is soon a constant to all digits shown; a loss is not, and its table has a column less."""
    for name, problem, shift in (("a", "lshape2d", 1.0), ("b", "poisson3d", 0.0)):
        history = made_up(tmp_path / "runs" / name, problem=problem) / "history.jsonl"
        records = [json.loads(line) for line in history.read_text().splitlines()]
        more = [record | {"loss": record["loss"] - shift, "gradient_norm": 0.5} for record in records]
        history.write_text("".join(json.dumps(record) + "\n" for record in more))
    with served(Watch([tmp_path / "runs"])) as server:
        server.page = server.page.replace("</body>", HEADS)
        assert visit(server.address, tmp_path, budget=10_000) == ["|∇L|", "α"]


FRAME = """<!DOCTYPE html><html><body><iframe style="width:WIDTHpx;height:900px;border:0"></iframe><script>
const frame = document.querySelector("iframe");
frame.onload = () => setTimeout(() => {
  const page = frame.contentDocument, cells = page.querySelectorAll("tbody th, td, svg, select, button");
  const edges = Array.from(cells, e => e.getBoundingClientRect().right);
  const wide = Array.from(page.querySelectorAll("td")).filter(e => e.scrollWidth > e.clientWidth);
  const crossed = wide.map(e => `${e.textContent}: ${e.scrollWidth} in ${e.clientWidth}`);
  const told = [cells.length, page.documentElement.scrollWidth, Math.max(...edges), crossed];
  document.body.innerHTML = "<pre>SEEN" + JSON.stringify(told) + "NEES</pre>";
}, 500);
frame.srcdoc = PAGE;
</script></body></html>"""


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium")
@pytest.mark.parametrize("width", [360, 900])
def test_the_page_fits_its_window(tmp_path, width):
    """On a phone a run is a block, whatever its name: nothing reaches over the edge, or over its neighbour. In a
    window the table alone scrolls."""
    going(tmp_path / "runs" / "a" / ("long-" * 20), 40, gap=2.0)
    going(tmp_path / "runs" / "b", 0)
    made_up(tmp_path / "runs" / "c", problem="burgers", status="target error")
    config = json.loads((tmp_path / "runs" / "c" / "config.json").read_text()) | {"windows": 12}
    (tmp_path / "runs" / "c" / "config.json").write_text(json.dumps(config))
    history = tmp_path / "runs" / "c" / "history.jsonl"
    records = [json.loads(line) | {"window": 12} for line in history.read_text().splitlines()]
    history.write_text("".join(json.dumps(record) + "\n" for record in records))
    watch = Watch([tmp_path / "runs"])
    assert watch.answer("").count("100 in window 12") == 1
    with Server(watch, 0) as server:
        data = f"new Response({json.dumps(watch.answer(''))})"
        page = server.page.replace('await fetch("data?seen=" + encodeURIComponent(version))', data)
    assert "await fetch" not in page
    frame = FRAME.replace("WIDTH", str(width)).replace("PAGE", json.dumps(page).replace("</", "<\\/"))
    (tmp_path / "frame.html").write_text(frame)
    cells, scroll, widest, crossed = visit(f"file://{tmp_path / 'frame.html'}", tmp_path)
    assert cells > 20
    assert scroll <= width
    assert crossed == []
    assert widest <= width or width > 800


def command(*words):
    return [sys.executable, "-m", "natgrad", "watch", *map(str, words)]


def test_ctrl_c_ends_it_in_a_line(tmp_path):
    process = subprocess.Popen(command(tmp_path), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    said = process.stdout.readline()
    assert re.match(r"http://127\.0\.0\.1:\d+/ follows ", said)
    process.send_signal(signal.SIGINT)
    out, errors = process.communicate(timeout=60)
    assert (process.returncode, out.strip(), errors) == (0, "natgrad: watched no longer; the runs go on", "")


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("nowhere",), "there is no folder nowhere"),
        (("runs.tar.xz",), "is an archive"),
        ((".", "--port", "70000"), "--port must be from 0 to 65535"),
        ((".", "--port", "{taken}"), "choose another --port"),
    ],
)
def test_wrong_input_ends_in_a_line(tmp_path, monkeypatch, capsys, words, complaint):
    from natgrad.cli import main

    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs.tar.xz").write_bytes(b"")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(SystemExit) as stop:
            main(["watch", *(word.format(taken=taken.getsockname()[1]) for word in words)])
    told = capsys.readouterr().err
    assert stop.value.code == 2
    assert complaint in told
    assert told.count("\n") == 1
