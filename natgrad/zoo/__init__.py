"""Benchmark problems, one file each, with their presets: `zoo.names()`, `zoo.get("poisson3d")`.

See `natgrad.zoo.registry` for what a problem is made of.
"""

from natgrad.zoo.registry import Benchmark as Benchmark
from natgrad.zoo.registry import Picture as Picture
from natgrad.zoo.registry import Preset as Preset
from natgrad.zoo.registry import get as get
from natgrad.zoo.registry import names as names
from natgrad.zoo.registry import register as register
