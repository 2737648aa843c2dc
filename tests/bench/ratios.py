"""Ratios: one table of the cost of mixsweep, compared with other ways and with required limits.

`python -m tests.bench` writes it to `bench-ratios.md`, from the newest measurement of each bench.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from reports.numbers.spelling import markdown_grid
from tests.soak.findings import origin

Figures = Mapping[str, Any]
_SLOTS_OF_SHORT_RUNS, _SHORT_RUN = 130, 5.0
"""Slots and seconds of the runs that a driver is to keep up with."""


def _pairs(figures: Figures, found: Figures) -> float:
    return float(found.get("n", figures.get("pairs", 0)))


def _spread(name: str) -> Callable[[Figures], Sequence[float]]:
    def values(figures: Figures) -> Sequence[float]:
        found = figures[name]
        return (found["min"], found["median"], found["max"], _pairs(figures, found))

    return values


def _trained(figures: Figures) -> Sequence[float]:
    wall = figures["wall_seconds_per_run"]["mixsweep"]["median"] * figures["slots"]
    share = figures["training_seconds_per_run"]["mixsweep"]["median"] / wall
    pairs = _pairs(figures, figures["wall_seconds_per_run"]["mixsweep"])
    return (share, share, share, pairs)


def _ends(figures: Figures) -> Sequence[float]:
    sizes = {int(name.split()[0]): f for name, f in figures.items() if name.endswith(" runs")}
    most = sizes[max(sizes)]
    ratio = most["runs_per_second"] / (_SLOTS_OF_SHORT_RUNS / _SHORT_RUN)
    return (ratio, ratio, ratio, 1)


ROWS: Sequence[tuple[str, str, Callable[[Figures], Sequence[float]]]] = (
    ("wall time of runs of 0.3 s: PLAIN / mixsweep",
     "overhead", _spread("wall_ratio_plain_to_mixsweep")),
    ("slot time beyond training: PLAIN / mixsweep",
     "overhead", _spread("overhead_ratio_plain_to_mixsweep")),
    ("epochs of mixup, narrow ResNet, float32: reference loop / ours",
     "training", _spread("narrow, B=125, float32: reference / ours")),
    ("epochs of mixup, ResNet-18, bfloat16: reference loop / ours",
     "training", _spread("resnet18, B=750, bfloat16: reference / ours")),
    ("limit: time of slots that is training, runs of 0.3 s / all time of slots",
     "overhead", _trained),
    ("limit: runs ended per second / those of 130 slots with runs of 5 s",
     "scale", _ends),
)  # fmt: skip
"""Rows of the table: name of the measurement, and which of its numbers are the smallest,
median and largest ratio and the number of pairs. PLAIN is plain Ray Tune as that measurement had
it.
"""


def write_ratios(folder: Path) -> Path:
    """Write the table of all ratios whose measurements are in a folder, and return its file."""
    file = folder / "bench.jsonl"
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    findings = {found["name"]: found for found in map(json.loads, lines)}
    rows = [["ratio", "median", "range", "n", "commit, machine, date"]]
    for what, name, read in ROWS:
        if name in findings:
            found = findings[name]
            least, middle, most, number = read(found["figures"])
            writes = "MLflow's callback" in found["title"]
            plain = f"plain Ray Tune{' with MLflow callback' * writes}"
            what = what.replace("PLAIN", plain)
            span = "—" if least == most else f"{least:.3g} to {most:.3g}"
            rows.append([what, f"{middle:.3g}", span, f"{number:g}", origin(found)])
    text = (
        "# Measured by `make bench`: ratios\n\n"
        f"{markdown_grid(rows)}\n\n"
        "Above 1, another way takes longer than mixsweep. A limit is met at 1; below 1, the rest "
        "is lost. Both ways of a pair ran in turn on one machine.\n"
    )
    out = folder / "bench-ratios.md"
    out.write_text(text, encoding="utf-8")
    return out
