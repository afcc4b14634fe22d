"""Tables, pictures and the page, from made-up runs whose numbers are known."""

import csv
import gzip
import html.parser
import io
import json
import re
import shutil
import struct
import subprocess

import numpy as np
import pytest

from natgrad.experiment import plots
from natgrad.experiment.report import page
from natgrad.experiment.runs import find, group
from natgrad.experiment.tables import document, table
from tests.experiment.made_up import made_up

FLOOR = {"nystrom-gaussian": 1e-4, "ngd-full": 2e-4, "adam": 1e-1}
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """Three optimizers, three seeds each, on one problem; one of them on another."""
    home = tmp_path_factory.mktemp("runs")
    for name, floor in FLOOR.items():
        for seed in range(3):
            made_up(home / f"{name}-{seed}", name, seed, floor=floor * (1 + seed), second=0.01 * (1 + seed))
    made_up(home / "heat", "ngd-full", problem="heat3d", floor=3e-3)
    return home


def test_runs_are_found_once(home):
    runs = find([home, home / "heat"])
    assert len(runs) == 10
    assert len(find([home / "heat"])) == 1


def test_compressed_histories_are_read(tmp_path):
    plain, packed = made_up(tmp_path / "plain"), made_up(tmp_path / "packed")
    history = packed / "history.jsonl"
    (packed / "history.jsonl.gz").write_bytes(gzip.compress(history.read_bytes()))
    history.unlink()
    first, second = find([plain])[0], find([packed])[0]
    assert first.records == second.records
    assert len(first.records) == 100


def test_seeds_go_together(home):
    groups = group(find([home]))
    assert [(g.problem, g.label, len(g.runs)) for g in groups] == [
        ("heat3d", "ngd-full", 1),
        ("poisson3d", "ngd-full", 3),
        ("poisson3d", "nystrom-gaussian", 3),
        ("poisson3d", "adam", 3),
    ]


def test_labels_say_what_differs(tmp_path):
    for gamma in (1.0, 10.0):
        made_up(tmp_path / f"g{gamma}", solver={"damping.gamma": gamma})
    made_up(tmp_path / "published", recipe="published")
    labels = [g.label for g in group(find([tmp_path]))]
    assert labels == [
        "nystrom-gaussian (default, gamma=1.0)",
        "nystrom-gaussian (default, gamma=10.0)",
        "nystrom-gaussian (published, gamma=10.0)",
    ]


def test_presets_are_different_columns(tmp_path):
    made_up(tmp_path / "small")
    made_up(tmp_path / "paper", preset="paper")
    assert [g.problem for g in group(find([tmp_path]))] == ["poisson3d (paper)", "poisson3d (small)"]


def medians(home, name):
    runs = [run for run in find([home]) if run.optimizer == name and run.problem == "poisson3d"]
    return [np.percentile([run.plateau[key] for run in runs], [50, 25, 75]) for key in ("error", "time")]


def test_markdown(home):
    lines = table(find([home])).splitlines()
    assert [cell.strip() for cell in lines[0].strip("|").split("|")] == ["optimizer", "heat3d", "poisson3d"]
    assert set(lines[1]) == {"|", "-"}
    assert [line.split("|")[1].strip() for line in lines[2:]] == ["ngd-full", "nystrom-gaussian", "adam"]
    error, time = medians(home, "adam")
    expected = f"{error[0]:.2e} [{error[1]:.2e}, {error[2]:.2e}] ({time[0]:.3g} s [{time[1]:.3g}, {time[2]:.3g}])"
    assert expected in lines[4]
    assert len({len(line) for line in lines}) == 1
    assert lines[3].split("|")[2].strip() == "–"  # not run on that problem


def test_csv_has_the_exact_numbers(home):
    rows = list(csv.DictReader(io.StringIO(table(find([home]), "csv"))))
    error, time = medians(home, "nystrom-gaussian")
    row = next(row for row in rows if row["optimizer"] == "nystrom-gaussian")
    assert [float(row[f"poisson3d error{part}"]) for part in ("", " q1", " q3")] == list(error)
    assert [float(row[f"poisson3d time{part}"]) for part in ("", " q1", " q3")] == list(time)
    assert row["poisson3d runs"] == "3"
    assert row["heat3d error"] == ""


def test_latex(home, tmp_path):
    text = table(find([home]), "latex")
    assert text.count(r"\\") == 4
    assert text.startswith(r"\begin{tabular}{lcc}")
    assert re.search(r"\$\d\.\d\d\\times10\^\{-\d+\}\$", text)
    made_up(tmp_path / "run", problem="inverse_poisson")
    assert r"inverse\_poisson" in table(find([tmp_path]), "latex")


def test_breakdowns_are_in_the_table(tmp_path):
    made_up(tmp_path / "run", status="not finite")
    assert "1 of 1 broke down" in table(find([tmp_path]))


def cells(runs, **options):
    """{label: cell} of a table with one problem."""
    lines = table(runs, **options).splitlines()[2:]
    return {name.strip(): text.strip() for _, name, text, _ in (line.split("|") for line in lines)}


def test_the_default_is_a_row_of_its_own_beside_a_sweep(tmp_path):
    """`compare`, then `sweep --param gamma --values 0.1,1` where γ is 0.1 anyway: the default's runs stay in the plain
    row, and no seed counts twice."""
    for seed in range(2):
        made_up(tmp_path / f"compare{seed}", seed=seed, floor=1e-4 * (1 + seed), solver={"damping.gamma": 0.1})
    for gamma in (0.1, 1.0):
        made_up(tmp_path / f"sweep{gamma}", solver={"damping.gamma": gamma}, more=[f"gamma={gamma}"])
    runs = find([tmp_path])
    assert [(g.label, [run.config["seed"] for run in g.runs], g.repeats) for g in group(runs)] == [
        ("nystrom-gaussian", [0, 1], 1),
        ("nystrom-gaussian (gamma=1.0)", [0], 0),
    ]
    assert "Left out: 1 of the same options and seed" in document(runs)
    assert "Left out: 1 of the same options and seed" in page(runs, fields=False)
    assert "Left out" not in document(runs[:2])


def test_a_sweep_alone_names_every_value(tmp_path):
    for gamma in (0.1, 1.0):
        made_up(tmp_path / f"sweep{gamma}", solver={"damping.gamma": gamma}, more=[f"gamma={gamma}"])
    assert [g.label for g in group(find([tmp_path]))] == [
        "nystrom-gaussian (gamma=0.1)",
        "nystrom-gaussian (gamma=1.0)",
    ]


def test_the_number_of_steps_is_no_row(tmp_path):
    """Of a seed the run that went furthest counts; the cell says that its runs are not equally long."""
    for name, seed, steps in (("short", 0, 50), ("long", 0, 100), ("other", 1, 80)):
        made_up(tmp_path / name, seed=seed, steps=steps)
    (found,) = group(find([tmp_path]))
    assert (found.label, found.repeats) == ("nystrom-gaussian", 1)
    assert {(run.config["seed"], run.steps) for run in found.runs} == {(0, 100), (1, 80)}
    assert cells(find([tmp_path]))["nystrom-gaussian"].endswith(", of 80 to 100 steps")


def test_a_budget_is_a_row(tmp_path):
    made_up(tmp_path / "one")
    made_up(tmp_path / "four", devices=4)
    made_up(tmp_path / "little", memory="1GB")
    assert [g.label for g in group(find([tmp_path]))] == [
        "nystrom-gaussian (devices=4)",
        "nystrom-gaussian (memory=1GB)",
        "nystrom-gaussian",
    ]


@pytest.mark.parametrize(("form", "arrow"), [("markdown", "→"), ("latex", r"$\to$")])
def test_the_last_error_stands_beside_the_plateau(tmp_path, form, arrow):
    """A schedule that comes down late: the plateau in its middle is not where it ended."""
    for seed in range(2):
        made_up(tmp_path / f"run{seed}", "adam", seed, floor=1e-1, late=1e-3 * (1 + seed))
    middle = "$1.50\\times10^{-3}$" if form == "latex" else "1.50e-03"
    line = next(line for line in table(find([tmp_path]), form).splitlines() if "adam" in line)
    plateau, _, end = line.partition(arrow)
    assert ("1.1" in plateau, "1.50" in plateau) == (True, False)
    assert end.strip().startswith(middle)
    row = next(csv.DictReader(io.StringIO(table(find([tmp_path]), "csv"))))
    assert float(row["poisson3d end"]) == pytest.approx(1.5e-3)
    assert float(row["poisson3d error"]) > 0.1


def test_runs_that_did_not_end_are_marked(tmp_path):
    made_up(tmp_path / "stopped", "adam", status="interrupted")
    made_up(tmp_path / "whole", "adam", seed=1)
    (made_up(tmp_path / "running", "bfgs") / "result.json").unlink()
    found = cells(find([tmp_path]))
    assert found["adam"].endswith(", 1 of 2 interrupted")
    assert found["bfgs"].endswith(", 1 of 1 unfinished")
    rows = {row["optimizer"]: row for row in csv.DictReader(io.StringIO(table(find([tmp_path]), "csv")))}
    marks = [[rows[name][f"poisson3d {word}"] for word in ("interrupted", "unfinished")] for name in ("adam", "bfgs")]
    assert marks == [["1", "0"], ["0", "1"]]


@pytest.mark.parametrize("status", ["converged", "steps", "target error", "target loss", "time", "stagnation"])
def test_runs_that_ended_well_are_not_marked(tmp_path, status):
    made_up(tmp_path / "run", status=status)
    assert cells(find([tmp_path]))["nystrom-gaussian"].endswith("e-04")


def test_medians_and_bands(home):
    (_, _, nystrom, _) = group(find([home]))
    x, low, middle, high = plots.curve(nystrom, "h1", "step")
    np.testing.assert_array_equal(x, np.arange(5, 101, 5))
    expected = np.median([run.column("h1")[4::5] for run in nystrom.runs], axis=0)
    np.testing.assert_allclose(middle, expected, rtol=1e-12)
    assert np.all(low <= middle)
    assert np.all(middle <= high)
    x, low, middle, high = plots.curve(nystrom, "h1", "time")
    assert x[0] == pytest.approx(0.15)
    assert x[-1] == pytest.approx(3.0)
    assert np.all(np.diff(middle) <= 1e-15)


def size(path):
    data = path.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    return struct.unpack(">II", data[16:24])


def test_pictures(home, tmp_path):
    written = plots.plot(find([home]), tmp_path, fields=False)
    assert {path.name for path in written} == {
        "poisson3d-convergence.png", "poisson3d-solver.png", "heat3d-convergence.png", "heat3d-solver.png",
    }  # fmt: skip
    for path in written:
        width, height = size(path)
        assert width > 1000
        assert height > 500


def test_the_loss_at_other_points_is_drawn_beside_that_of_training(tmp_path, monkeypatch):
    """Dashed, in the colour of its run, and on the page to choose."""
    made_up(tmp_path / "one", gap=7.0)
    made_up(tmp_path / "other", "adam", gap=3.0)
    drawn = []
    monkeypatch.setattr(plots, "_finish", lambda figure, axis, groups, path: drawn.append(axis) or path)
    plots.losses(group(find([tmp_path])), tmp_path / "loss.png")
    curves = {line.get_label(): line for line in drawn[0].get_lines()}
    assert len(curves) == 4
    for name, gap in (("nystrom-gaussian", 7.0), ("adam", 3.0)):
        loss, validation = curves[name], curves[f"{name}, at independent points"]
        assert (loss.get_linestyle(), validation.get_linestyle()) == ("-", "--")
        assert loss.get_color() == validation.get_color()
        assert len(validation.get_xdata()) == 20 < len(loss.get_xdata()) == 100
        np.testing.assert_allclose(validation.get_ydata()[-1], gap * loss.get_ydata()[-1])
    monkeypatch.undo()
    assert tmp_path / "pictures" / "loss.png" in plots.plot(find([tmp_path]), tmp_path / "pictures", fields=False)
    data = json.loads(re.search(r'id="data">(.*?)</script>', page(find([tmp_path]), fields=False), re.DOTALL)[1])
    assert all("validation" in series["curves"] for series in data["chart0"]["series"])


@pytest.mark.parametrize("form", ["markdown", "latex"])
def test_tables_and_pages_mark_runs_that_fit_their_points_alone(tmp_path, form):
    wrong = "points exhausted: the loss at other points is 2, 1e+09 times the 2e-09 at those of training; take more"
    for seed in range(3):
        made_up(tmp_path / f"bad{seed}", "adam", seed, diagnosis=[wrong] if seed else [])
        made_up(tmp_path / f"good{seed}", "ngd-full", seed, diagnosis=["the rank is at its cap of 50: raise max_rank"])
    lines = table(find([tmp_path]), form).splitlines()
    assert ["2 of 3 with points exhausted" in line for line in lines if "adam" in line] == [True]
    assert ["exhausted" in line for line in lines if "ngd-full" in line] == [False]
    text = page(find([tmp_path]), fields=False)
    assert text.count(wrong) == 2
    assert text.count("the rank is at its cap") == 3


def test_optimizers_keep_their_colours(home):
    groups = [g for g in group(find([home])) if g.problem == "poisson3d"]
    colours = {g.label: s["color"] for g, s in zip(groups, plots.styles(groups), strict=True)}
    assert len(set(colours.values())) == 3
    assert [s["color"] for s in plots.styles(groups[1:])] == [colours[g.label] for g in groups[1:]]


def test_more_groups_than_colours(tmp_path):
    for k in range(20):
        made_up(tmp_path / str(k), solver={"damping.gamma": float(k)}, steps=20)
    looks = [tuple(style.values()) for style in plots.styles(group(find([tmp_path])))]
    assert len(set(looks)) == 20


def test_spectra(tmp_path):
    path = plots.spectra([0, 5], np.array([[1.0, 1e-3, 1e-30], [2.0, 1e-2, -1e-20]]), "title", tmp_path / "s.png")
    assert size(path)[0] > 500


class Reader(html.parser.HTMLParser):
    """Every address a page refers to, and whether its tags are balanced."""

    def __init__(self):
        super().__init__()
        self.addresses, self.open = [], []

    def handle_starttag(self, tag, attributes):
        self.addresses += [value for name, value in attributes if name in ("src", "href")]
        if tag not in ("meta", "img", "br", "input"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_page_stands_alone(home):
    text = page(find([home]), fields=False)
    reader = Reader()
    reader.feed(text)
    assert reader.open == []
    assert reader.addresses == []
    assert "http" not in text.replace("http://www.w3.org/2000/svg", "")
    assert "<!--" not in text
    assert text.count("natgrad run poisson3d --optimizer") == 9
    data = json.loads(re.search(r'id="data">(.*?)</script>', text, re.DOTALL)[1])
    assert [s["label"] for s in data["chart1"]["series"]] == ["ngd-full", "nystrom-gaussian", "adam"]
    assert set(data["chart1"]["series"][2]["curves"]) == {"h1", "l2", "loss", "step_size"}
    assert len(data["chart1"]["series"][0]["curves"]["h1"]["step"]) == 4  # x, median and both quartiles


def test_labels_cannot_break_the_page(tmp_path):
    folder = made_up(tmp_path / "run")
    config = json.loads((folder / "config.json").read_text())
    config["command"] += ["--set", "</script><b>x"]
    config["problem"] = "<i>p</i>"
    (folder / "config.json").write_text(json.dumps(config))
    text = page(find([tmp_path]), fields=False)
    assert "<b>x" not in text
    assert "<i>p" not in text


def test_fields_that_cannot_be_drawn_are_excused(tmp_path):
    made_up(tmp_path / "run", optimizer="adam", steps=10)
    assert "no checkpoint to draw from" in page(find([tmp_path]))


PROBE = """<script>
const root = document.getElementById("chart1"), seen = [];
const count = () => root.querySelectorAll("svg g path[fill=none]").length;
seen.push(count());
root.querySelector(".legend button").click(); seen.push(count());
root.querySelector(".legend button").click(); seen.push(count());
const [quantity, axis] = root.querySelectorAll("select");
const label = () => root.querySelector(".plot svg").getAttribute("aria-label");
axis.value = "time"; axis.dispatchEvent(new Event("change"));
quantity.value = "loss"; quantity.dispatchEvent(new Event("change")); seen.push(label());
root.querySelectorAll("input").forEach(box => box.click()); seen.push(count());
const svg = root.querySelector(".plot svg"), box = svg.getBoundingClientRect();
svg.dispatchEvent(new PointerEvent("pointermove", {clientX: box.left + box.width / 2, clientY: box.top + 50}));
seen.push(root.querySelector(".tip").style.display, root.querySelector(".tip").children.length);
svg.dispatchEvent(new PointerEvent("pointerleave")); seen.push(root.querySelector(".tip").style.display);
document.body.innerHTML = "<pre>SEEN" + JSON.stringify(seen) + "NEES</pre>";
</script></body>"""


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium")
def test_the_page_works_in_a_browser(home, tmp_path):
    """Curves are drawn; the legend, the axes, the scales and the pointer do what they should."""
    text = page(find([home]), fields=False).replace("</body>", PROBE)
    (tmp_path / "page.html").write_text(text)
    flags = "--headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking "
    flags += "--disable-component-update --disable-sync --virtual-time-budget=2000 --dump-dom"
    words = [CHROMIUM, *flags.split(), f"--user-data-dir={tmp_path / 'profile'}", f"file://{tmp_path / 'page.html'}"]
    out = subprocess.run(words, capture_output=True, text=True, timeout=120).stdout
    found = re.search("SEEN(.*)NEES", out)
    assert found, "a script on the page failed"
    assert json.loads(found[1]) == [3, 2, 3, "loss", 3, "block", 3, "none"]
