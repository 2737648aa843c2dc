"""bench: measure the training speed of this machine, with `mixup_core` alone."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from sweeps.commands.request import DONE

_REHEARSED = (
    "no GPU here: the same steps ran at a small size on the CPU, to rehearse them; "
    "these figures say nothing of any GPU"
)


@click.group()
def bench() -> None:
    """Measure the training speed of this machine."""


@bench.command()
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder to write to; default: reports/published/DATE-bench-gpu.",
)
def gpu(out: Path | None) -> int:
    """Measure how fast this GPU trains the runs of table 1; takes about ten minutes."""
    from mixup_core.bench.device import measure

    folder = out or Path("reports/published") / f"{datetime.now(UTC):%Y-%m-%d}-bench-gpu"
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "device.json"

    def write(found: dict[str, Any]) -> None:
        file.write_text(json.dumps(found, indent=2) + "\n")
        click.echo(f"measured  {list(found)[-1]}", err=True)

    found = measure(write)
    table = _table(found)
    (folder / "table.md").write_text(table)
    click.echo(table)
    if found["rehearsal"]:
        click.echo(_REHEARSED, err=True)
    click.echo(f"written   {file}", err=True)
    return DONE


def _table(found: dict[str, Any]) -> str:
    """Return the measurements as a Markdown table; a rehearsal on a CPU is marked in its header."""
    title = "figure (REHEARSAL ON A CPU)" if found["rehearsal"] else "figure"
    lines = [f"| part | {title} | value |", "|---|---|---|"]
    for part, figures in found.items():
        if not isinstance(figures, dict):
            lines.append(f"| | {part} | {figures} |")
            continue
        for name, value in figures.items():
            shown = f"{value:.4g}" if isinstance(value, float) else value
            lines.append(f"| {part} | {name} | {shown} |")
    return "\n".join(lines) + "\n"
