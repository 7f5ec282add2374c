#!/usr/bin/env python3
"""Draw what `make bench BENCH_ARGS="--json ..."` has printed: rate and CPU against the number of Pods.

    python tests/bench/plot.py runs.jsonl docs/performance.svg

Each point is the median of a shape's runs; whole lives, whose CPU pays for more, are left out. SVG is written as text,
so that nothing has to be installed for it.
"""

import argparse
import json
import math
import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

WIDTH, HEIGHT, LEFT, TOP, GAP = 420, 260, 60, 50, 90
COLOURS = ("#1f6feb", "#d1242f", "#2da44e", "#8250df")


@dataclass(frozen=True)
class Panel:
    """One of the two diagrams."""

    title: str
    field: str
    left: float
    ticks: tuple[float, ...]

    def y(self, value: float) -> float:
        """Return the place of a value; the axis is linear and ends with the last tick."""
        return TOP + HEIGHT * (1 - min(value, self.ticks[-1]) / self.ticks[-1])


def medians(runs: list[dict[str, Any]]) -> dict[str, dict[int, dict[str, float]]]:
    """Return by kind of Job, then by number of Pods, the medians of the figures."""
    found: dict[str, dict[int, list[dict[str, Any]]]] = {}
    for run in runs:
        if run["life"]:
            continue
        jobs, pods = (int(part) for part in run["shape"].split("x"))
        kind = "one Job" if jobs == 1 else f"Jobs of {pods} Pod{'s' if pods > 1 else ''}"
        found.setdefault(kind, {}).setdefault(jobs * pods, []).append(run)
    return {
        kind: {
            size: {name: statistics.median(run[name] for run in mine) for name in ("ratio", "cpu_per_1000")}
            for size, mine in sorted(sizes.items())
        }
        for kind, sizes in found.items()
    }


def place_sizes(sizes: list[int]) -> Callable[[int, float], float]:
    """Return where a number of Pods stands in a panel that begins at `left`; the axis is logarithmic."""
    low, high = math.log10(min(sizes)), math.log10(max(sizes))
    return lambda size, left: left + WIDTH * (math.log10(size) - low) / ((high - low) or 1)


def draw(series: dict[str, dict[int, dict[str, float]]]) -> Iterator[str]:
    """Yield the lines of the SVG."""
    sizes = sorted({size for points in series.values() for size in points})
    top_cpu = max(point["cpu_per_1000"] for points in series.values() for point in points.values())
    step = next(s for s in (0.25, 0.5, 1, 2, 5, 10) if top_cpu / s <= 6)
    panels = (
        Panel("Pods/s, as a share of what the API server can do", "ratio", LEFT, (0, 0.25, 0.5, 0.75, 1)),
        Panel(
            "CPU seconds of the operator per 1000 Pods",
            "cpu_per_1000",
            LEFT + WIDTH + GAP,
            tuple(step * n for n in range(math.ceil(top_cpu / step) + 1)),
        ),
    )
    x = place_sizes(sizes)
    width, height = 2 * (LEFT + WIDTH) + GAP - LEFT + 20, TOP + HEIGHT + 80
    style = 'font-family="sans-serif" font-size="12"'
    yield f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" {style}>'
    yield '<rect width="100%" height="100%" fill="white"/>'
    for panel in panels:
        yield f'<text x="{panel.left}" y="{TOP - 20}" font-size="14">{panel.title}</text>'
        for tick in panel.ticks:
            y = panel.y(tick)
            yield f'<path d="M{panel.left} {y:.1f}h{WIDTH}" stroke="#ddd"/>'
            yield f'<text x="{panel.left - 8}" y="{y + 4:.1f}" text-anchor="end">{tick:g}</text>'
        for power in range(math.ceil(math.log10(sizes[0])), math.floor(math.log10(sizes[-1])) + 1):
            place = x(10**power, panel.left)
            yield f'<path d="M{place:.1f} {TOP}v{HEIGHT}" stroke="#ddd"/>'
            yield f'<text x="{place:.1f}" y="{TOP + HEIGHT + 18}" text-anchor="middle">{10**power}</text>'
        middle = panel.left + WIDTH / 2
        yield f'<text x="{middle}" y="{TOP + HEIGHT + 36}" text-anchor="middle">Pods in all</text>'
        for colour, points in zip(COLOURS, series.values(), strict=False):
            places = [(x(size, panel.left), panel.y(point[panel.field])) for size, point in points.items()]
            line = " ".join(f"{a:.1f},{b:.1f}" for a, b in places)
            yield f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>'
            for a, b in places:
                yield f'<circle cx="{a:.1f}" cy="{b:.1f}" r="3.5" fill="{colour}"/>'
    for number, (colour, kind) in enumerate(zip(COLOURS, series, strict=False)):
        left = LEFT + 150 * number
        yield f'<path d="M{left} {height - 16}h24" stroke="{colour}" stroke-width="2"/>'
        yield f'<text x="{left + 30}" y="{height - 12}">{kind}</text>'
    yield "</svg>"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path, help="JSON lines of make bench")
    parser.add_argument("svg", type=Path)
    given = parser.parse_args()
    runs = [json.loads(line) for line in given.runs.read_text().splitlines() if line.startswith("{")]
    given.svg.write_text("\n".join(draw(medians([run for run in runs if not run["life"]]))) + "\n")


if __name__ == "__main__":
    main()
