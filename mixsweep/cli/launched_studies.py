"""Launched studies: a table of the studies that were launched in a home or store."""

import json
import os
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import click
from click.core import ParameterSource

from mixup_core.store.checkpoints import Store
from sweeps.leasing.lease import Lease
from sweeps.machine.home import Home
from sweeps.machine.terminal_text import padded, screen, shortened, width_of, wrapped
from sweeps.state.ledger import Launch, launches
from sweeps.state.statements import spell_statements, stated_in


def tell_studies(place: Home, *, as_json: bool) -> None:
    """Print the studies that were launched in a home or store, with progress and reports."""
    source = click.get_current_context().get_parameter_source("home")
    is_alone = place.store_url is not None and source is ParameterSource.DEFAULT
    rows = _rows(place, with_reports=not is_alone)
    if as_json:
        click.echo(json.dumps({"studies": rows}, indent=2))
        return
    if not rows:
        why = (
            "this store does not exist"
            if Store(place.store).is_absent
            else "no study was launched here"
        )
        click.echo(f"{place.shown_store}: {why}", err=True)
        return
    header = {
        "study": "study", "settings": "settings", "done": "done", "state": "state",
        "launched": "launched", "told": "", "stated": "claims stated", "report": "report",
    }  # fmt: skip
    click.echo(_table([header, *map(_spelled, rows)], screen()))


def _table(lines: Sequence[dict[str, str]], size: os.terminal_size | None) -> str:
    """Return the studies as a text table; on a narrow terminal, with several lines for each study.

    Args:
        lines: The header, then one line per study; each is the text of every column, by name.
        size: Size of the terminal; None for no limit.
    """
    widths = {name: max(width_of(line[name]) for line in lines) for name in lines[0]}
    texts = ["  ".join(padded(line[name], widths[name]) for name in widths) for line in lines]
    if size is None or max(width_of(text.rstrip()) for text in texts) < size.columns:
        return "\n".join(text.rstrip() for text in texts)
    above = ("settings", "done", "state", "launched")
    room = max(12, size.columns - 1 - sum(2 + widths[name] for name in above))
    wide = min(room, widths["study"])
    found = []
    for line in lines:
        name = padded(shortened(line["study"], wide), wide)
        found.append("  ".join((name, *(padded(line[own], widths[own]) for own in above))))
        found += [f"  {line[own]}" for own in ("told", "stated", "report") if line[own]]
    return "\n".join(wrapped(text.rstrip(), size.columns - 1) for text in found)


def _rows(place: Home, *, with_reports: bool) -> list[dict[str, Any]]:
    """Return one row per study and version of its settings, sorted by study, then newest first."""
    from reports.pages.report_folders import standing

    store = Store(place.store)
    found = launches(store)
    stored = store.keys() if found else {}
    rows = []
    newest = {launch.study: launch for launch in found}
    # Later ones win: for equal settings the report in the study's main folder is shown.
    shelf = (place.folder / "reports").glob("[!.]*") if with_reports else ()
    folders = sorted(shelf, reverse=True)
    studies = [folder.name.partition("@")[0] for folder in folders]
    standings = map(standing, folders, studies)
    reports = {
        (study, report.settings): report
        for study, report in zip(studies, standings, strict=True)
        if report is not None and report.is_known
    }
    for launch in sorted(found, key=lambda launch: (launch.study, -launch.at_ms)):
        holder = Lease.current(store, launch.study) if launch == newest[launch.study] else None
        report = reports.pop((launch.study, launch.settings), None)
        rows.append(
            {
                "study": launch.study,
                "settings": launch.settings,
                "told": _told(launch, found),
                "stated": spell_statements(stated_in(launch.study, store).values()),
                "seeds": list(launch.seeds),
                "finished": launch.num_finished(stored),
                "runs": len(launch.ends),
                "driver": None if holder is None else {"pid": holder.pid, "host": holder.host},
                "launched_at_ms": launch.at_ms,
                "command": launch.command,
                "report": None if report is None else str(report.folder / "report.html"),
            }
        )
    rows += [
        {
            "study": study,
            "settings": settings,
            "told": "",
            "stated": "",
            "seeds": list(report.seeds),
            "finished": len(report.complete),
            "runs": report.num_runs,
            "driver": None,
            "launched_at_ms": None,
            "command": None,
            "report": str(report.folder / "report.html"),
        }
        for (study, settings), report in reports.items()
    ]
    return rows


def _told(launch: Launch, others: tuple[Launch, ...]) -> str:
    """Return, as text, at most three settings in which launches of the same study differ."""
    same = [other for other in others if other.study == launch.study]
    flats = [
        {
            f"{arm}.{path}": value
            for arm, of_arm in other.arms.items()
            for path, value in of_arm.items()
        }
        for other in same
    ]
    own = flats[same.index(launch)]
    paths = [path for path in own if len({json.dumps(flat.get(path)) for flat in flats}) > 1]
    by_leaf: dict[str, set[str]] = {}
    for path in paths:
        leaf = path.partition(".")[2]
        by_leaf.setdefault(leaf, set()).add(json.dumps(own[path]))
    parts = [f"{leaf}={next(iter(v))}" for leaf, v in by_leaf.items() if len(v) == 1]
    return " ".join(parts[:3])


def _spelled(row: dict[str, Any]) -> dict[str, str]:
    driver, at_ms = row["driver"], row["launched_at_ms"]
    done = row["finished"] == row["runs"]
    return {
        "study": row["study"],
        "settings": row["settings"][:8],
        "done": f"{row['finished']}/{row['runs']}",
        "state": f"training, pid {driver['pid']} on {driver['host']}" if driver
        else "finished" if done else "not run" if at_ms is None else "stopped",
        "launched": "" if at_ms is None
        else datetime.fromtimestamp(at_ms / 1000).astimezone().strftime("%Y-%m-%d %H:%M"),
        "told": row["told"],
        "stated": row["stated"],
        "report": row["report"] or "",
    }  # fmt: skip
