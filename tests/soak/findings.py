"""Findings: figures of a soak run, written with what made them."""

import json
import os
import platform
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

from reports.numbers.provenance import PACKAGES, describe_code
from sweeps.machine.processor import processor

PUBLISHED = Path("reports") / "published"
Kind = Literal["soak", "bench", "bench-search", "mutants"]


def publish(
    name: str,
    title: str,
    figures: Mapping[str, Any],
    *,
    kind: Kind = "soak",
    out: Path | None = None,
) -> Path:
    """Write figures as JSON, and the table of all that the folder of this day and commit holds.

    Args:
        name: Names the file: the module of `tests.soak` or `tests.bench` that measured.
        title: One sentence: what was done, how often.
        figures: What was measured; plain values, units in the names.
        kind: Make target that measures it again.
        out: The folder; None: that of this day, commit and kind.

    Returns:
        The folder.
    """
    folder = folder_of(kind) if out is None else out
    folder.mkdir(parents=True, exist_ok=True)
    content = {
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
                **{package: version(package) for package in PACKAGES},
            },
        },
    }
    (folder / f"{name}.json").write_text(json.dumps(content, indent=2) + "\n")
    write_table(folder, kind)
    return folder


def folder_of(kind: Kind) -> Path:
    """Return where findings of this day and commit are published."""
    code = describe_code()
    commit = "no-commit" if code is None else code["commit"][:7]
    return PUBLISHED / f"{datetime.now(UTC):%Y-%m-%d}-{commit}-{kind}"


def write_table(folder: Path, kind: str) -> None:
    """Write `table.md` from the JSON files of a folder."""
    found = {path.stem: json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))}
    lines = [f"| {kind} | figure | value |", "|---|---|---|"]
    for name, content in found.items():
        lines += [f"| {name} | {figure} | {value} |" for figure, value in _rows(content["figures"])]
    lines.append("")
    lines += [f"- {name}: {_origin(content)}" for name, content in found.items()]
    lines += ["", f"`make {kind}` makes these figures again. Wall times include what else ran."]
    (folder / "table.md").write_text("\n".join(lines) + "\n")


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
                yield f"{prefix}{name}", " ".join(", ".join(map(str, value)).split()) or "none"
            case float():
                yield f"{prefix}{name}", f"{value:.4g}"
            case _:
                yield f"{prefix}{name}", str(value)


def _origin(content: Mapping[str, Any]) -> str:
    made = content["made_with"]
    code, versions = made["code"], made["versions"]
    commit = "no commit" if code is None else f"commit {code['commit'][:7]}"
    if code is not None and code["dirty"]:
        commit += " with changes"
    return (
        f"{content['title']}; {made['date']}, {commit}, {made['cpus']} CPUs ({made['device']}), "
        f"mean load {made['load_average']:.0f}, Python {versions['python']}, "
        f"torch {versions['torch']}, ray {versions['ray']}, mlflow {versions['mlflow']}"
    )
