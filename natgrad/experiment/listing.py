"""`natgrad list`."""

from natgrad import zoo
from natgrad.experiment.optimizers import BASELINES, NATURAL


def listing() -> str:
    """Problems with their presets and options, then the optimizers."""
    lines, width = ["Problems"], 2 + max(map(len, zoo.names()))
    for name in zoo.names():
        benchmark = zoo.get(name)
        lines.append(f"  {name:<{width}}{benchmark.title}: {benchmark.equation}")
        for preset_name, preset in benchmark.presets.items():
            options = {key: parameter.default for key, parameter in benchmark.options.items()} | dict(preset.options)
            sizes = " ".join(f"{key}={value}" for key, value in options.items())
            lines.append(f"    {preset_name:<{width - 2}}{sizes}; {preset.steps['ngd']} steps of NGD")
            if preset.as_published:
                other = " ".join(f"{key}={value}" for key, value in preset.as_published.items())
                lines.append(f"    {'':<{width - 2}}as in the paper with --recipe published: {other}")
    lines += [
        "",
        "Optimizers",
        f"  natural gradient  {', '.join(NATURAL)}",
        f"  baselines         {', '.join(BASELINES)}",
    ]
    return "\n".join(lines)
