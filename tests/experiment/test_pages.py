"""The report of made-up runs: it stands alone, and works in a browser and on a phone."""

import html.parser
import json
import re

import pytest

from natgrad.experiment.report import page
from natgrad.experiment.runs import find
from tests.experiment.browser import CHROMIUM, visit
from tests.experiment.made_up import made_up


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


def seen(text, tmp_path):
    """What a page says of itself between SEEN and NEES, once a browser has run it."""
    (tmp_path / "page.html").write_text(text)
    return visit(f"file://{tmp_path / 'page.html'}", tmp_path)


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium")
def test_the_page_works_in_a_browser(home, tmp_path):
    """Curves are drawn; the legend, the axes, the scales and the pointer do what they should."""
    text = page(find([home]), fields=False).replace("</body>", PROBE)
    assert seen(text, tmp_path) == [3, 2, 3, "loss", 3, "block", 3, "none"]


AXES = """<script>
const root = document.getElementById("chart0"), box = root.querySelector("input"), seen = [box.checked];
const numbers = () => Array.from(root.querySelectorAll("svg text[text-anchor=middle]"), text => text.textContent);
seen.push(numbers().includes("1000"));
const axis = root.querySelectorAll("select")[1];
axis.value = "time"; axis.dispatchEvent(new Event("change")); seen.push(box.checked);
document.body.innerHTML = "<pre>SEEN" + JSON.stringify(seen) + "NEES</pre>";
</script></body>"""


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium")
def test_an_axis_is_logarithmic_where_budgets_are_far_apart(tmp_path):
    """In steps, but not in seconds, where the steps of the one take ten times as long."""
    made_up(tmp_path / "quick", second=0.3)
    made_up(tmp_path / "slow", "adam", steps=3000, rate=1e-3, second=0.01)
    text = page(find([tmp_path]), fields=False).replace("</body>", AXES)
    assert seen(text, tmp_path) == [True, True, False]


EMPTY = """<script>
const looks = () => [!!document.querySelector("svg g path[fill=none]"), document.querySelectorAll("input")[1].checked];
const choose = document.querySelector("select"), seen = [document.getElementById("chart1").textContent, ...looks()];
choose.value = "loss"; choose.dispatchEvent(new Event("change")); seen.push(...looks());
choose.value = "h1"; choose.dispatchEvent(new Event("change")); seen.push(...looks());
document.body.innerHTML = "<pre>SEEN" + JSON.stringify(seen) + "NEES</pre>";
</script></body>"""


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium")
def test_no_plot_is_empty(tmp_path):
    """An energy is below 0, where no logarithm is; a run that has just begun is no plot."""
    history = made_up(tmp_path / "energy", problem="lshape2d") / "history.jsonl"
    records = [json.loads(line) for line in history.read_text().splitlines()]
    history.write_text("".join(json.dumps(r | {"loss": r["loss"] - 1}) + "\n" for r in records))
    begun = made_up(tmp_path / "run", problem="poisson3d", steps=1)
    (begun / "result.json").unlink()
    (begun / "history.jsonl").write_text("")
    text = page(find([tmp_path]), fields=False).replace("</body>", EMPTY)
    assert seen(text, tmp_path) == ["No step of these runs is known.", True, True, True, False, True, True]


FRAME = """<!DOCTYPE html><html><body><iframe style="width:360px;height:700px;border:0"></iframe><script>
const frame = document.querySelector("iframe");
frame.onload = () => {
  const page = frame.contentDocument, font = Array.from(page.querySelectorAll("svg text"), t => t.getBBox().height);
  const chart = page.querySelector(".plot svg").getBoundingClientRect();
  const edges = Array.from(page.querySelectorAll("table, svg, code"), e => e.getBoundingClientRect().right);
  const shrunk = chart.width / page.querySelector(".plot svg").viewBox.baseVal.width;
  const told = [page.documentElement.scrollWidth, Math.max(...edges), Math.min(...font) * shrunk];
  document.body.innerHTML = "<pre>SEEN" + JSON.stringify(told) + "NEES</pre>";
};
frame.srcdoc = PAGE;
</script></body></html>"""


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium")
def test_the_page_fits_a_phone(home, tmp_path):
    """Nothing reaches over the edge of 360 pixels, and the numbers at the axes can be read."""
    text = json.dumps(page(find([home]), fields=False)).replace("</", "<\\/")
    scroll, widest, height = seen(FRAME.replace("PAGE", text), tmp_path)
    assert scroll <= 360
    assert widest <= 360
    assert height > 10
