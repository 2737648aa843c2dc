"""Ratios: one table of the cost of mixsweep, compared with other ways and with required limits.

`python -m tests.bench` writes it to `bench-ratios.md`, from the newest measurement of each bench.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any

from reports.numbers.spelling import markdown_grid
from tests.soak.findings import origin

Figures = Mapping[str, Any]
_SLOTS_OF_SHORT_RUNS, _SHORT_RUN = 130, 5.0
"""Slots and seconds of the runs that a driver is to keep up with."""


def _trained(figures: Figures) -> Figures:
    wall = figures["wall_seconds_per_run"]["mixsweep"]
    training = figures["training_seconds_per_run"]["mixsweep"]
    return {"median": training["median"] / wall["median"] / figures["slots"], "n": wall["n"]}


def _ends(figures: Figures) -> Figures:
    sizes = {int(name.split()[0]): f for name, f in figures.items() if name.endswith(" runs")}
    ends = sizes[max(sizes)]["runs_per_second"]
    return {"median": ends / (_SLOTS_OF_SHORT_RUNS / _SHORT_RUN), "n": 1}


ROWS: Sequence[tuple[str, str, Callable[[Figures], Figures]]] = (
    ("wall time of runs of 0.3 s: plain Ray Tune with MLflow callback / mixsweep",
     "overhead", itemgetter("wall_ratio_plain_to_mixsweep")),
    ("slot time beyond training: plain Ray Tune with MLflow callback / mixsweep",
     "overhead", itemgetter("overhead_ratio_plain_to_mixsweep")),
    ("epochs of mixup, narrow ResNet, float32: reference loop / ours",
     "training", itemgetter("narrow, B=125, float32: reference / ours")),
    ("epochs of mixup, ResNet-18, bfloat16: reference loop / ours",
     "training", itemgetter("resnet18, B=750, bfloat16: reference / ours")),
    ("limit: time of slots that is training, runs of 0.3 s / all time of slots",
     "overhead", _trained),
    ("limit: runs ended per second / those of 130 slots with runs of 5 s",
     "scale", _ends),
)  # fmt: skip
"""Rows of the table: name of the measurement, and a function of its numbers that returns the median
ratio and the number of pairs, and if there are several, the smallest and the largest ratio.
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
            ratio = read(found["figures"])
            span = f"{ratio['min']:.3g} to {ratio['max']:.3g}" if "min" in ratio else "—"
            rows.append([what, f"{ratio['median']:.3g}", span, f"{ratio['n']:g}", origin(found)])
    text = (
        "# Measured by `make bench`: ratios\n\n"
        f"{markdown_grid(rows)}\n\n"
        "Above 1, another way takes longer than mixsweep. A limit is met at 1; below 1, the rest "
        "is lost. Both ways of a pair ran in turn on one machine.\n"
    )
    out = folder / "bench-ratios.md"
    out.write_text(text, encoding="utf-8")
    return out
