"""Findings: figures of a soak run, written with what made them."""

import json
import os
import platform
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from reports.provenance import PACKAGES, describe_code

PUBLISHED = Path("reports") / "published"


def publish(name: str, title: str, figures: Mapping[str, Any]) -> Path:
    """Write figures as JSON and as a short page, in a folder named by date and commit.

    Args:
        name: Names both files.
        title: One sentence: what was done, how often.
        figures: What was measured; plain values, units in the names.

    Returns:
        The folder.
    """
    now = datetime.now(UTC)
    code = describe_code()
    commit = "no-commit" if code is None else code["commit"][:7]
    folder = PUBLISHED / f"{now:%Y-%m-%d}-{commit}"
    folder.mkdir(parents=True, exist_ok=True)
    made_with = {
        "date": now.isoformat(timespec="seconds"),
        "code": code,
        "cpus": os.cpu_count(),
        "machine": platform.machine(),
        "python": platform.python_version(),
        "versions": {package: version(package) for package in PACKAGES},
    }
    content = {"title": title, "figures": dict(figures), "made_with": made_with}
    (folder / f"soak-{name}.json").write_text(json.dumps(content, indent=2) + "\n")
    rows = "".join(f"| {figure} | {_spelled(value)} |\n" for figure, value in figures.items())
    dirty = " with changes" if code is not None and code["dirty"] else ""
    (folder / f"soak-{name}.md").write_text(
        f"# {title}\n\n| figure | value |\n|---|---|\n{rows}\n"
        f"{now:%Y-%m-%d}, commit {commit}{dirty}, {made_with['cpus']} CPUs, "
        f"Python {made_with['python']}, torch {made_with['versions']['torch']}, "
        f"ray {made_with['versions']['ray']}, mlflow {made_with['versions']['mlflow']}.\n"
        f"`python -m tests.soak.{name}` makes these figures again.\n"
    )
    return folder


def _spelled(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_spelled(part)}" for name, part in value.items())
    if isinstance(value, list):
        return ", ".join(map(_spelled, value)) or "none"
    return str(value)
