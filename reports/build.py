"""build_report: a study and its results in, a folder of tables, figures and provenance out."""

import json
import math
import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from reports.figures import draw_figures
from reports.page import render_page
from reports.provenance import describe, spell_origin
from reports.tables import SELECTION_RULE, Table, arrange, run_records, runs_csv, tabulate
from sweeps.results import RunResult
from sweeps.search import SearchHistory
from sweeps.study import Study


@dataclass(frozen=True, kw_only=True, slots=True)
class Report:
    """A written report."""

    table: Table
    markdown: str
    """What a reader of the console wants of it."""
    folder: Path
    files: tuple[Path, ...]
    """Every file written, below `folder`, sorted."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Frames:
    """The same tables for a notebook; metrics as fractions, NaN where there is no number."""

    arms: pd.DataFrame
    """The columns of `table.csv`, one row per arm."""
    runs: pd.DataFrame
    """The columns of `runs.csv`, one row per run."""


def build_report(
    study: Study,
    results: Sequence[RunResult],
    out: Path,
    *,
    data_checksums: Mapping[str, Mapping[str, str]],
    command: str,
    history: SearchHistory | None = None,
) -> Report:
    """Write a study's report from whatever results there are, down to none.

    Times appear in `report.html` and `provenance.json` alone: the other files have the same bytes
    for the same results, device, versions and commit. Each file appears whole; one of an earlier
    report stays until it is replaced.

    Args:
        study: Decides arms, seeds and their order.
        results: Results of its runs, in any order.
        out: Folder to write to, made if it is not there.
        data_checksums: Data set to file to checksum, for the provenance.
        command: The command line, for the provenance.
        history: Points of the study's search, if it is one.

    Raises:
        ValueError: If a result belongs to no run of the study.
        OSError: If the folder cannot be written.
    """
    ordered = [
        result for by_seed in arrange(study, results).values() for result in by_seed.values()
    ]
    provenance = describe(
        study,
        ordered,
        selection_rule=SELECTION_RULE,
        data_checksums=data_checksums,
        command=command,
    )
    table = tabulate(study, ordered, made_with=spell_origin(provenance))
    figures = draw_figures(study, ordered, table)
    contents: dict[str, str | bytes] = {
        "table.md": table.markdown(),
        "table.csv": table.csv(),
        "table.tex": table.latex(),
        "runs.csv": runs_csv(study, ordered),
        "provenance.json": json.dumps(provenance, indent=2, ensure_ascii=False) + "\n",
        "report.html": render_page(study, table, figures, provenance),
    }
    for figure in figures:
        contents |= {
            f"figures/{figure.name}.svg": figure.svg,
            f"figures/{figure.name}.png": figure.png,
            f"figures/{figure.name}.csv": figure.numbers,
            f"figures/{figure.name}.txt": figure.caption + "\n",
        }
    _replace_files(out, contents)
    return Report(
        table=table,
        markdown=table.markdown(),
        folder=out,
        files=tuple(out / name for name in sorted(contents)),
    )


def load(study: Study, results: Iterable[RunResult]) -> Frames:
    """Return the tables of a report as DataFrames, without writing anything."""
    results = tuple(results)
    return Frames(
        arms=_frame(tabulate(study, results).records()), runs=_frame(run_records(study, results))
    )


def _frame(records: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    return pd.DataFrame(records).map(lambda value: math.nan if value is None else value)


def _replace_files(out: Path, contents: Mapping[str, str | bytes]) -> None:
    """Write all files beside the folder, then move each into place; old figures go."""
    out.mkdir(parents=True, exist_ok=True)
    staged = Path(tempfile.mkdtemp(prefix=f".{out.name}.", dir=out.parent))
    try:
        for name, content in contents.items():
            path = staged / name
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(content.encode() if isinstance(content, str) else content)
        (out / "figures").mkdir(exist_ok=True)
        for name in contents:
            (staged / name).replace(out / name)
    finally:
        shutil.rmtree(staged)
    for path in (out / "figures").iterdir():
        if f"figures/{path.name}" not in contents:
            path.unlink()
