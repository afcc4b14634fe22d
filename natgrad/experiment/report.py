"""One page that holds everything about some runs: curves to play with, fields, the table, and the commands to repeat.

The page is a template (report.html, with page.css and chart.js) with the data of the curves in it; nothing is loaded
from anywhere.
"""

import base64
import html
import shlex
import tempfile
from collections.abc import Callable, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from natgrad.experiment.plots import curve, logarithmic, picture, plateau_dot, styles
from natgrad.experiment.runs import Group, Run, group
from natgrad.experiment.tables import left_out, remarks, seconds
from natgrad.storage.files import dumps

POINTS = 400  # of a curve at most
QUANTITIES = {
    "h1": "relative H¹ error", "l2": "relative L² error", "loss": "loss",
    "validation": "loss at independent points", "mu": "damping μ", "rank": "rank ℓ",
    "inner_iterations": "inner iterations", "step_size": "step size α", "gradient_norm": "norm of the gradient",
}  # fmt: skip
SEEDS = " Of several seeds the medians, with quartiles in small print."
AXES = ("step", "time")
DASHES = {"-": "", "--": "7 4", ":": "2 3", "-.": "7 3 2 3"}


def page(runs: Sequence[Run], *, fields: bool = True) -> str:
    """The HTML."""
    groups = group(runs)
    sections = []
    data = {}
    for index, problem in enumerate(dict.fromkeys(g.problem for g in groups)):
        members = [g for g in groups if g.problem == problem]
        data[f"chart{index}"] = chart(members)
        sections.append(
            f"<section><h2>{html.escape(problem)}</h2>{_table(members)}"
            f'<div class="chart" id="chart{index}"></div>{_figures(members) if fields else ""}</section>'
        )
    return template(
        "report.html",
        sections="\n".join(sections),
        seeds=SEEDS if any(len(g.runs) > 1 for g in groups) else "",
        left=html.escape(left_out(groups)),
        commands="\n".join(map(_run, runs)),
        count=str(len(runs)),
        data=dumps(data).replace("<", "\\u003c"),
    )


def template(name: str, **parts: str) -> str:
    """A page of this folder with its parts in it, its style and the script that draws."""
    files = resources.files("natgrad.experiment")
    text = files.joinpath(name).read_text()
    parts = {"style": files.joinpath("page.css").read_text(), "script": files.joinpath("chart.js").read_text(), **parts}
    for part, content in parts.items():
        text = text.replace(f"<!--{part}-->", content)
    return text


def chart(groups: Sequence[Group], draw: Callable[[Group], dict[str, Any]] | None = None) -> dict[str, Any]:
    """What chart.js draws of a problem: a series a group, by `draw` (`curves`)."""
    series: list[dict[str, Any]] = [
        {"label": g.label, "color": style["color"], "dash": DASHES[style["linestyle"]], **(draw or curves)(g)}
        for g, style in zip(groups, styles(groups), strict=True)
    ]
    names = {name: title for name, title in QUANTITIES.items() if any(name in s["curves"] for s in series)}
    wide = {against: bool(logarithmic(groups, against)) for against in AXES}
    return {"series": series, "quantities": names, "norm": groups[0].runs[0].norm, "wide": wide}


def curves(g: Group) -> dict[str, Any]:
    """The curves of a group: quartiles of each quantity against iterations and time."""
    found: dict[str, Any] = {}
    for name in QUANTITIES:
        for against in AXES:
            x, low, middle, high = (_thin(values) for values in curve(g, name, against))
            if len(x):
                band = [low, high] if len(g.runs) > 1 else []
                found.setdefault(name, {})[against] = [[_short(v) for v in line] for line in (x, middle, *band)]
    return {"curves": found, "dots": {against: plateau_dot(g, against) for against in AXES}, "seeds": len(g.runs)}


def _thin(values: np.ndarray) -> np.ndarray:
    """At most POINTS of the values, evenly spread, the last one included."""
    if len(values) <= POINTS:
        return values
    return values[np.unique(np.linspace(0, len(values) - 1, POINTS).astype(int))]


def _short(value: float) -> float | None:
    return float(f"{value:.5g}") if np.isfinite(value) else None


def _figures(groups: Sequence[Group]) -> str:
    """The fields of each group's first run, and, folded, why there are none of others."""
    shown, excuses = list[str](), list[str]()
    for g in groups:
        try:
            shown.append(_figure(g, unfolded=not shown))
        except ValueError as error:
            excuses.append(f"<li>{html.escape(g.label)}: {html.escape(str(error))}</li>")
    folded = f"<details><summary>Fields that cannot be drawn</summary><ul>{''.join(excuses)}</ul></details>"
    return "".join(shown) + (folded if excuses else "")


def _figure(g: Group, unfolded: bool) -> str:
    """The fields of a group's first run, embedded."""
    from natgrad.experiment.fields import panels

    with tempfile.TemporaryDirectory() as folder:
        path = picture(panels(g.runs[0]), "", Path(folder) / "fields.png")
        code = base64.b64encode(path.read_bytes()).decode()
    title = f"{g.label}, seed {g.runs[0].config['seed']}"
    return (
        f"<details{' open' if unfolded else ''}><summary>Fields of {html.escape(title)}</summary>"
        f'<img alt="solution, exact solution and difference: {html.escape(title)}" src="data:image/png;base64,{code}">'
        "</details>"
    )


def _table(groups: Sequence[Group]) -> str:
    """A problem's optimizers, one a row, in columns narrow enough for a phone; quartiles and remarks in small print."""
    columns = {"error": ("at the plateau", _error), "time": ("seconds to it", seconds), "end": ("at the end", _error)}
    rows = []
    for g in groups:
        cells = []
        for name, (_, form) in columns.items():
            middle, *spread = g.quartiles(name) or ("–",)
            number = middle if isinstance(middle, str) else form(middle)
            small = f"<small>{form(spread[0])} – {form(spread[1])}</small>" if len(g.runs) > 1 and spread else ""
            cells.append(f"<td>{number}{small}</td>")
        notes = "".join(f"<small>{html.escape(note)}</small>" for note in remarks(g))
        seeds = f"<small>{len(g.runs)} seeds</small>" if len(g.runs) > 1 else ""
        rows.append(f"<tr><th>{html.escape(g.label)}{seeds}{notes}</th>{''.join(cells)}</tr>")
    head = "".join(f"<th>{title}</th>" for title, _ in columns.values())
    return f"<table><thead><tr><th>optimizer</th>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


def _error(value: float) -> str:
    """Three figures, in the shortest form."""
    mantissa, exponent = f"{value:.2e}".split("e")
    return f"{mantissa}e{int(exponent)}" if int(exponent) else mantissa


def _run(run: Run) -> str:
    result = run.result
    facts = [run.status]
    if result:
        facts += [f"{result['steps']} steps in {result['time']:.4g} s", f"{result['parameters']} parameters"]
        facts += [f"{name} {value:.2e}" for name, value in result["errors"].items()]
        facts += run.diagnosis
        facts += [result["device"], result["dtype"]]
    versions = ", ".join(f"{name} {version}" for name, version in run.config.get("versions", {}).items())
    command = shlex.join(run.config.get("command", []))
    return (
        f"<li><code>{html.escape(command)}</code><br><small>{html.escape(' · '.join(facts))}"
        f"<br>{html.escape(versions)}</small></li>"
    )
