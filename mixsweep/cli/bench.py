"""bench: measure the training speed of this machine with PyTorch alone, without Ray or MLflow."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from mixsweep.cli.options import LocalPath
from mixsweep.cli.request import DONE

_REHEARSED = (
    "this machine has no GPU, so the same steps ran on its CPU at a small size; "
    "these figures say nothing about a GPU"
)


@click.group()
def bench() -> None:
    """Measure the training speed of this machine."""


@bench.command()
@click.option(
    "--out",
    type=LocalPath(file_okay=False),
    default=Path(),
    help="Folder for bench-gpu.json and bench-gpu.md; default: the working directory.",
)
def gpu(out: Path) -> int:
    """Measure how fast this GPU trains the bundled studies table1*; takes about ten minutes."""
    from mixup_core.bench.device import PREDICTED, measure

    out.mkdir(parents=True, exist_ok=True)
    file = out / "bench-gpu.json"

    def write(found: dict[str, Any]) -> None:
        file.write_text(json.dumps(found, indent=2) + "\n")
        click.echo(f"measured  {list(found)[-1]}", err=True)

    found = measure(write)
    page = _page(found, PREDICTED)
    (out / "bench-gpu.md").write_text(page)
    click.echo(page)
    if found["rehearsal"]:
        click.echo(_REHEARSED, err=True)
    click.echo(f"written   {file}", err=True)
    return DONE


def _page(found: dict[str, Any], predicted: Mapping[tuple[str, str], str]) -> str:
    """Return the benchmark's results as a page of Markdown.

    If the benchmark ran on a CPU, the page starts with a warning.

    Args:
        found: The measured results.
        predicted: Values predicted for one H100, by section and name of the figure.
    """
    made_with = ", ".join(f"{name} {value}" for name, value in found["made_with"].items())
    head = ["# Measured by `mixsweep bench gpu`", "", f"Made with {made_with}."]
    head += ["", f"**REHEARSAL ON A CPU**: {_REHEARSED}."] if found["rehearsal"] else []
    lines = ["| figure | value | predicted for one H100 |", "|---|---|---|"]
    page = [*head, "", *lines]
    for part, figures in found.items():
        if not isinstance(figures, dict):
            page.append(f"| {part} | {figures} | |")
        elif part != "made_with":
            page += ["", f"## {part}", "", *lines]
            for name, value in figures.items():
                shown = f"{value:.4g}" if isinstance(value, float) else value
                page.append(f"| {name} | {shown} | {predicted.get((part, name), '')} |")
    return "\n".join(page) + "\n"
