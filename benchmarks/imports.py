"""How long `import natgrad` takes, beside the import of JAX and Equinox, which it cannot do without.

    python -m benchmarks.imports [--repeats 9]

Each repeat is a fresh interpreter; the two take turns. Times are medians, less that of an interpreter that imports
nothing.
"""

import argparse
import statistics
import subprocess
import sys
import time

LIMIT = 1.5
PROGRAMS = {"nothing": "pass", "jax and equinox": "import jax, equinox", "natgrad": "import natgrad"}


def seconds(code: str) -> float:
    """The time of a fresh interpreter that runs the code."""
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True)
    return time.perf_counter() - start


def measure(repeats: int) -> dict[str, list[float]]:
    """{program: its times}, the programs taking turns after one round that fills the disk's cache."""
    for code in PROGRAMS.values():
        seconds(code)
    times: dict[str, list[float]] = {name: [] for name in PROGRAMS}
    for _ in range(repeats):
        for name, code in PROGRAMS.items():
            times[name].append(seconds(code))
    return times


def ratio(times: dict[str, list[float]]) -> float:
    """natgrad over JAX and Equinox, without the start of the interpreter."""
    start, base, ours = (statistics.median(times[name]) for name in PROGRAMS)
    return (ours - start) / (base - start)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=9)
    times = measure(parser.parse_args().repeats)
    print("program            median     min     max   (seconds)")
    for name, found in times.items():
        print(f"{name:<16} {statistics.median(found):8.3f}{min(found):8.3f}{max(found):8.3f}")
    print(f"natgrad / (jax and equinox) = {ratio(times):.2f} (at most {LIMIT})")


if __name__ == "__main__":
    main()
