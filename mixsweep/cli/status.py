"""status: launched studies, the progress of one, or where results of its runs come from."""

import json
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from mixsweep.cli.options import StudyCommand, json_option, on_study
from mixsweep.cli.run_story import tell_runs
from mixsweep.launching.costs import seconds_to_train
from mixsweep.request import DONE, RefusedError, Request
from mixup_core.rules import spell_time
from mixup_core.store.checkpoints import Store
from sweeps.leasing.lease import Lease, read_progress
from sweeps.machine.home import Home
from sweeps.machine.terminal_text import (
    arm_table,
    fitted_text,
    padded,
    screen,
    shortened,
    width_of,
    wrapped,
)
from sweeps.running.progress import spell_duration, spell_within
from sweeps.state.ledger import Launch, launches, was_last
from sweeps.state.results import added_runs, ended_on_budget, read_results, sound_stages
from sweeps.state.stages import plan_study
from sweeps.state.statements import spell_statements, stated_in
from sweeps.study.study import Study

if TYPE_CHECKING:
    from reports.pages.report_folders import Standing

_HEADER = {
    "study": "study", "settings": "settings", "done": "done", "state": "state",
    "launched": "launched", "told": "", "stated": "claims stated", "report": "report",
}  # fmt: skip
_COUNTS = ("expected", "finished", "running", "failed")


@click.command(cls=StudyCommand)
@json_option
@on_study("one or none", reads_only=True)
@click.argument("arm", required=False)
@click.argument("seed", type=int, required=False)
def status(
    request: Request | None, home: Home, arm: str | None, seed: int | None, as_json: bool
) -> int:
    """Show the progress of a study, whether it is running or not.

    Without STUDY: the studies that were launched in the home or store, with their reports. With
    ARM, or ARM and SEED: for each run its key, its stored epochs with the run that trained them,
    the epochs that the next launch would train, and its error; with SEED also every stored epoch.
    """
    if request is None:
        _tell_studies(home, as_json=as_json)
        return DONE
    if arm is not None:
        if as_json:
            raise RefusedError("--json shows whole studies; remove it, or remove ARM")
        tell_runs(request, arm, seed)
        return DONE
    summary = status_summary(request.grown, request.store)
    click.echo(
        json.dumps(summary, indent=2) if as_json else fitted_text(spell_status(summary, screen()))
    )
    if request.store.is_absent and not as_json:
        click.echo(f"{request.home.shown_store}: this store does not exist", err=True)
    elif not any(row["finished"] for row in summary["arms"].values()):
        request.say_elsewhere()
    return DONE


def status_summary(study: Study, store: Store) -> dict[str, Any]:
    """Return the progress of a study as a dict, which `mixsweep status --json` prints."""
    results = read_results(study.runs(), store)
    is_own = was_last(study, store)
    progress = read_progress(store, study.name) if is_own else None
    running = {(run.arm, run.seed): run for run in progress.running} if progress else {}
    arms: dict[str, dict[str, int]] = {}
    for result in results:
        row = arms.setdefault(result.run.arm, dict.fromkeys(_COUNTS, 0))
        row["expected"] += 1
        row["finished"] += result.outcome == "complete"
        row["running"] += (result.run.arm, result.run.seed) in running
        row["failed"] += result.outcome in {"failed", "diverged"}
    holder = Lease.current(store, study.name)
    cut = Lease.cut_off(store, study.name) if holder is None and is_own else None
    seconds_left = None if progress is None else progress.seconds_left
    if seconds_left is None:  # not measured yet: estimated from stored epochs
        planned = plan_study(study, store, sound=sound_stages(results))
        seconds_left = seconds_to_train(planned, results, max(1, len(running)))
    points = [arms[arm] for arm in study.points()]
    searched = {} if study.search is None else {
        "points": {
            "expected": max(study.search.points, len(points)),
            "asked": len(points),
            "finished": sum(point["finished"] == point["expected"] for point in points),
        }
    }  # fmt: skip
    return {
        "study": study.name,
        **searched,
        "driver": None if holder is None else {"pid": holder.pid, "host": holder.host},
        "trains_other_settings": holder is not None and not is_own,
        "arms": arms,
        "epochs": {
            "done": sum(len(result.records) for result in results),
            "expected": sum(result.run.config.epochs for result in results),
        },
        "running": [
            {"arm": run.arm, "seed": run.seed, "epoch": run.epoch, "within": run.within}
            for run in running.values()
        ],
        "failures": [
            {"arm": result.run.arm, "seed": result.run.seed, "message": result.failure.message}
            for result in results
            if result.failure is not None and result.outcome != "complete"
        ],
        "added": added_runs(results),
        "ended": ended_on_budget(study, results),
        "seconds_left": seconds_left,
        "cut_off": None if cut is None else cut.spell_death(),
    }


def spell_status(summary: dict[str, Any], size: os.terminal_size | None = None) -> str:
    """Return the progress of a study (from `status_summary`) as text for the console."""
    driver, epochs, seconds_left = summary["driver"], summary["epochs"], summary["seconds_left"]
    points, others = summary.get("points"), summary["trains_other_settings"]
    is_own = driver and not others
    return "\n".join([
        f"{summary['study']}: "
        + (f"training{' other settings' * others}, process {driver['pid']} on {driver['host']}"
           if driver else _idle(summary)),
        *arm_table(
            "done   running  waiting  failed",
            {
                arm: f"{row['finished']}/{row['expected']:<4} {row['running']:>7} "
                f"{_waiting(row):>8} {row['failed']:>7}"
                for arm, row in summary["arms"].items()
            },
            size,
            [arm for arm, row in summary["arms"].items() if row["running"] or row["failed"]],
        ),
        f"epochs    {epochs['done']} of {epochs['expected']} stored",
        *([f"added     {summary['added']}"] if summary["added"] else []),
        *([f"points    {points['asked']} of {points['expected']} proposed, "
           f"{points['finished']} trained"] if points else []),
        *(f"running   {run['arm']} seed {run['seed']}, epoch {run['epoch']}"
          f"{spell_within(run['within'])}" for run in summary["running"]),
        *(f"failed    {failure['arm']} seed {failure['seed']}: {failure['message']}"
          for failure in summary["failures"]),
        *([f"killed    {summary['cut_off']}"] if summary["cut_off"] else []),
        *([f"ETA       {spell_duration(seconds_left)}"] if is_own and seconds_left else []),
    ])  # fmt: skip


def _waiting(row: dict[str, int]) -> int:
    return max(0, row["expected"] - row["finished"] - row["running"] - row["failed"])


def _idle(summary: dict[str, Any]) -> str:
    rows = summary["arms"].values()
    if summary["ended"] is not None:
        return f"not running; the study {summary['ended']}"
    if num_waiting := sum(map(_waiting, rows)):
        return f"not running; left to train: {num_waiting} (`mixsweep run`)"
    is_done = all(row["finished"] == row["expected"] for row in rows)
    return "not running; all runs are finished" if is_done else "not running; some runs failed"


def _tell_studies(place: Home, *, as_json: bool) -> None:
    """Print the studies that were launched in a home or store, with progress and reports."""
    source = click.get_current_context().get_parameter_source("home")
    is_alone = place.store_url is not None and source is ParameterSource.DEFAULT
    rows = _rows(place, with_reports=not is_alone)
    if as_json:
        click.echo(json.dumps({"studies": rows}, indent=2))
    elif rows:
        click.echo(_table([_HEADER, *map(_cells, rows)], screen()))
    else:
        is_absent = Store(place.store).is_absent
        why = "this store does not exist" if is_absent else "no study was launched here"
        click.echo(f"{place.shown_store}: {why}", err=True)


def _table(lines: Sequence[dict[str, str]], size: os.terminal_size | None) -> str:
    """Return the studies as a text table; on a narrow terminal, with several lines for each study.

    The first line is the header; each has the text of every column, by name.
    """
    widths = {name: max(width_of(line[name]) for line in lines) for name in lines[0]}
    texts = ["  ".join(padded(line[name], widths[name]) for name in widths) for line in lines]
    if size is None or max(width_of(text.rstrip()) for text in texts) < size.columns:
        return "\n".join(text.rstrip() for text in texts)
    above = ("settings", "done", "state", "launched")
    room = max(12, size.columns - 1 - sum(2 + widths[name] for name in above))
    wide = min(room, widths["study"])
    folded = []
    for line in lines:
        name = padded(shortened(line["study"], wide), wide)
        folded.append("  ".join((name, *(padded(line[key], widths[key]) for key in above))))
        folded += [f"  {line[key]}" for key in ("told", "stated", "report") if line[key]]
    return "\n".join(wrapped(text.rstrip(), size.columns - 1) for text in folded)


def _rows(place: Home, *, with_reports: bool) -> list[dict[str, Any]]:
    """Return one row per study and version of its settings, sorted by study, then newest first."""
    from reports.pages.report_folders import standing

    store = Store(place.store)
    launched = launches(store)
    stored = store.keys() if launched else {}
    newest = {launch.study: launch for launch in launched}
    reports: dict[tuple[str, str], Standing] = {}
    # Later ones win: for equal settings the report in the study's main folder is shown.
    for folder in sorted((place.folder / "reports").glob("[!.]*"), reverse=True):
        study = folder.name.partition("@")[0]
        report = standing(folder, study) if with_reports else None
        if report is not None and report.is_known:
            reports[study, report.settings] = report
    rows = []
    for launch in sorted(launched, key=lambda launch: (launch.study, -launch.at_ms)):
        holder = Lease.current(store, launch.study) if launch == newest[launch.study] else None
        rows.append(
            _row(launch.study, launch.settings, reports.pop((launch.study, launch.settings), None))
            | {
                "told": _spell_changes(launch, launched),
                "stated": spell_statements(stated_in(launch.study, store).values()),
                "seeds": list(launch.seeds),
                "finished": launch.num_finished(stored),
                "runs": len(launch.ends),
                "driver": None if holder is None else {"pid": holder.pid, "host": holder.host},
                "launched_at_ms": launch.at_ms,
                "command": launch.command,
            }
        )
    return rows + [_row(study, settings, rest) for (study, settings), rest in reports.items()]


def _row(study: str, settings: str, report: "Standing | None") -> dict[str, Any]:
    """Return the row of a study with values from its report; a launch replaces most of them."""
    return {
        "study": study, "settings": settings, "told": "", "stated": "",
        "seeds": list(report.seeds) if report else [],
        "finished": len(report.complete) if report else 0,
        "runs": report.num_runs if report else 0,
        "driver": None, "launched_at_ms": None, "command": None,
        "report": str(report.folder / "report.html") if report else None,
    }  # fmt: skip


def _spell_changes(launch: Launch, others: Sequence[Launch]) -> str:
    """Return, as text, at most three settings in which launches of the same study differ."""
    siblings = [sibling for sibling in others if sibling.study == launch.study]
    flats = [
        {
            (arm, path): json.dumps(v)
            for arm, of_arm in sibling.arms.items()
            for path, v in of_arm.items()
        }
        for sibling in siblings
    ]
    by_path: dict[str, set[str]] = {}
    for (arm, path), value in flats[siblings.index(launch)].items():
        if any(flat.get((arm, path), "null") != value for flat in flats):
            by_path.setdefault(path, set()).add(value)
    parts = [f"{path}={next(iter(v))}" for path, v in by_path.items() if len(v) == 1]
    return " ".join(parts[:3])


def _cells(row: dict[str, Any]) -> dict[str, str]:
    driver, at_ms = row["driver"], row["launched_at_ms"]
    done = row["finished"] == row["runs"]
    return {
        "study": row["study"],
        "settings": row["settings"][:8],
        "done": f"{row['finished']}/{row['runs']}",
        "state": f"training, pid {driver['pid']} on {driver['host']}" if driver
        else "finished" if done else "not run" if at_ms is None else "stopped",
        "launched": spell_time(at_ms),
        "told": row["told"],
        "stated": row["stated"],
        "report": row["report"] or "",
    }  # fmt: skip
