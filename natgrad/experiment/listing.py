"""`natgrad list`: all problems in two lines each, or one with the sizes of its presets."""

from collections.abc import Mapping
from typing import Any

from natgrad import zoo
from natgrad.experiment.optimizers import BASELINES, NATURAL


def listing(name: str | None = None) -> str:
    """The problems and the optimizers; of one problem, its presets and their options."""
    return everything() if name is None else presets(name)


def everything() -> str:
    """Problems with the names of their presets, then the optimizers."""
    lines, width = ["Problems"], 2 + max(map(len, zoo.names()))
    for name in zoo.names():
        benchmark = zoo.get(name)
        lines.append(f"  {name:<{width}}{benchmark.title} ({', '.join(benchmark.presets)})")
        lines.append(f"  {'':<{width}}{benchmark.equation}")
    lines += [
        "",
        "In brackets are the presets. `natgrad list PROBLEM` shows their sizes.",
        "",
        "Optimizers",
        f"  natural gradient  {', '.join(NATURAL)}",
        f"  baselines         {', '.join(BASELINES)}",
    ]
    return "\n".join(lines)


def presets(name: str) -> str:
    """The presets of a problem, with every option and the steps of the natural-gradient optimizers."""
    benchmark = zoo.get(name)
    lines, width = [f"{name}  {benchmark.title}", f"  {benchmark.equation}", "", "Presets"], 2
    width += max(map(len, benchmark.presets))
    for preset_name, preset in benchmark.presets.items():
        options = {key: parameter.default for key, parameter in benchmark.options.items()} | dict(preset.options)
        lines.append(f"  {preset_name:<{width}}{sizes(options)}")
        if preset.as_published:
            lines.append(f"  {'':<{width}}as in the paper with --recipe published: {sizes(preset.as_published)}")
        lines.append(f"  {'':<{width}}{steps(preset)}")
    return "\n".join([*lines, "", f"`natgrad run {name} --set KEY=VALUE` sets any of these options."])


def sizes(options: Mapping[str, Any]) -> str:
    """key=value, numbers in six digits."""
    return " ".join(f"{key}={f'{value:.6g}' if isinstance(value, float) else value}" for key, value in options.items())


def steps(preset: zoo.Preset) -> str:
    """How long a natural-gradient optimizer works on it."""
    number = f"{preset.steps['ngd']} steps of natural gradient descent"
    if preset.windows is None:
        return number
    if preset.windows == "auto":
        return f"windows of time that choose their length, {number} in each"
    windows = preset.windows if isinstance(preset.windows, int) else len(preset.windows) - 1
    return f"{windows} {'window' if windows == 1 else 'windows'} of time, {number} in each"
