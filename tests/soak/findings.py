"""Findings: measurements of benches and soak tests, with commit, machine and date."""

import json
import os
import platform
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from reports.numbers.code_origin import describe_code
from reports.numbers.provenance import installed_versions
from sweeps.machine.resources import processor

MEASUREMENTS = Path("reports") / "published" / "measurements"
_MOST_ENTRIES = 12
"""Largest number of entries of a list that are all in the table."""
_OF_LONG_LISTS = 3
"""Number of entries in the table of a longer list."""
Kind = Literal["soak", "bench", "bench-search", "mutants", "clusters"]


def publish(
    name: str,
    title: str,
    figures: Mapping[str, Any],
    *,
    kind: Kind = "soak",
    out: Path | None = None,
) -> Path:
    """Append a measurement to the file of its kind, and write the table of that kind again.

    Args:
        name: Name of the module of `tests.soak` or `tests.bench` that measured.
        title: One sentence on what was done, and how often.
        figures: Measured values, with units in their names.
        kind: Make target that repeats the measurement.
        out: The folder; None: `reports/published/measurements`.

    Returns:
        The folder. It has `KIND.jsonl`, one measurement per line, the newest last, and `KIND.md`.
    """
    folder = MEASUREMENTS if out is None else out
    folder.mkdir(parents=True, exist_ok=True)
    content = {
        "name": name,
        "title": title,
        "figures": dict(figures),
        "made_with": {
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
            "code": describe_code(),
            "device": processor(),
            "cpus": os.cpu_count(),
            "load_average": os.getloadavg()[2],
            "versions": {
                "python": platform.python_version(),
                **installed_versions(),
            },
        },
    }
    with (folder / f"{kind}.jsonl").open("a", encoding="utf-8") as lines:
        lines.write(json.dumps(content) + "\n")
    write_table(folder, kind)
    return folder


def write_table(folder: Path, kind: str) -> None:
    """Write `KIND.md`: the newest measurement of each name, with its commit and machine."""
    lines = (folder / f"{kind}.jsonl").read_text(encoding="utf-8").splitlines()
    newest = {found["name"]: found for found in map(json.loads, lines)}
    rows = [f"# Measured by `make {kind}`", ""]
    rows += ["| measurement | commit, machine, date | figure | value |", "|---|---|---|---|"]
    for name, found in sorted(newest.items()):
        rows.append(f"| **{name}** | {origin(found)} | {found['title']} | |")
        rows += [f"| | | {figure} | {value} |" for figure, value in _rows(found["figures"])]
    rows += [
        "",
        f"Long lists and older findings are in `{kind}.jsonl`. Wall times include what else ran.",
    ]
    (folder / f"{kind}.md").write_text("\n".join(rows) + "\n", encoding="utf-8")


def _rows(figures: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    for name, value in figures.items():
        match value:
            case {"median": median, "min": least, "max": most, "n": n, **others}:
                asked = "".join(f", {k} {v:g}" for k, v in others.items() if v is not None)
                spread = f"{median:.4g} [{least:.4g} to {most:.4g}], n={n}{asked}"
                yield f"{prefix}{name}", spread
            case Mapping():
                yield from _rows(value, f"{prefix}{name}: ")
            case list():
                yield f"{prefix}{name}", _listed(value)
            case float():
                yield f"{prefix}{name}", f"{value:.4g}"
            case _:
                yield f"{prefix}{name}", str(value)


def _listed(entries: Sequence[object]) -> str:
    """Return the entries of a list in one line, or the first ones and the number of others."""
    is_long = len(entries) > _MOST_ENTRIES
    shown = entries[:_OF_LONG_LISTS] if is_long else entries
    others = [f"and {len(entries) - len(shown)} more"] if is_long else []
    return " ".join(", ".join([*map(str, shown), *others]).split()) or "none"


def origin(found: Mapping[str, Any]) -> str:
    """Return commit, machine and date of a measurement."""
    made = found["made_with"]
    code, versions = made["code"], made["versions"]
    commit = "no commit" if code is None else code["commit"][:7]
    if code is not None and code["dirty"]:
        commit += " with changes"
    return (
        f"{commit}, {made['cpus']} CPUs ({made['device']}), mean load {made['load_average']:.0f}, "
        f"torch {versions['torch']}, {made['date'][:10]}"
    )
