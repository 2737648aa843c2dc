"""Growth table: CPU time and memory of the commands that read, by number of stored runs.

`python -m tests.bench.growth` writes it to `bench-growth.md` from its newest finding.
"""

import json
import re
from pathlib import Path

from reports.numbers.spelling import markdown_grid
from tests.soak.findings import origin

_FIGURE = re.compile(r"(\d+) runs (on disk|in a bucket): (\w+)_(cpu_seconds|peak_mb)")


def write_growth(folder: Path) -> Path:
    """Write the table of the newest finding of `growth` in a folder; return its file."""
    lines = (folder / "bench.jsonl").read_text(encoding="utf-8").splitlines()
    found = [f for f in map(json.loads, lines) if f["name"] == "growth"][-1]
    figures = {
        (command, place, int(runs), unit): value
        for name, value in found["figures"].items()
        if (match := _FIGURE.fullmatch(name))
        for runs, place, command, unit in [match.groups()]
    }
    sizes = sorted({runs for _, _, runs, _ in figures})
    rows = [["command", "runs"]]
    rows[0] += ["disk: CPU s", "disk: ms per further run", "disk: MB", "disk: kB per further run"]
    rows[0] += ["bucket: CPU s", "bucket: ms per further run", "bucket: MB"]
    rows[0] += ["bucket: kB per further run"]
    for command in dict.fromkeys(command for command, *_ in figures):
        for before, runs in zip([None, *sizes], sizes, strict=False):
            row = [command, f"{runs:,}"]
            for place in ("on disk", "in a bucket"):
                for unit in ("cpu_seconds", "peak_mb"):
                    value = figures.get((command, place, runs, unit))
                    less = figures.get((command, place, before or 0, unit))
                    slope = "—"
                    if value is not None and less is not None and before is not None:
                        slope = f"{1000 * (value - less) / (runs - before):.2g}"
                    row += ["—" if value is None else f"{value:.3g}", slope]
            rows.append(row)
    text = (
        "# Measured by `python -m tests.bench.growth`: stores that grow\n\n"
        f"{markdown_grid(rows)}\n\n"
        f"{origin(found)}; one measurement each. The bucket is moto's, on the same machine; the "
        "time of its server is not counted. Per further run: the difference from the row above, "
        "divided by the number of runs between them.\n"
    )
    out = folder / "bench-growth.md"
    out.write_text(text, encoding="utf-8")
    return out
