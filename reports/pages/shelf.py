"""Shelf: which folder a report goes to, so that no finished report is replaced by another study's.

    STUDY                 the newest finished report; while there is none, the newest
    STUDY@SETTINGS        an unfinished one beside a finished one, or one of other settings
    STUDY@SETTINGS.1      the same, where a finished report has that name and would lose by it
    STUDY@earlier         one of an earlier version, or of which nobody knows the settings any more

A report belongs to the study as resolved, which `provenance.json` names. One that has every
finished run of another and its predictions, and is finished if that is, takes its place. Where the
provenance of a report is lost, or another study's lies there, the report counts as finished, with
the runs that `runs.csv` lists.
"""

import csv
import os
import shutil
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from io import StringIO
from itertools import count
from pathlib import Path
from typing import Any

from mixup_core.store.errors import UnreadableError
from mixup_core.store.local_files import read_regular
from mixup_core.store.notes import LARGEST, filled, read_note
from reports.numbers.provenance import SETTLED
from sweeps.state.ledger import spell_differences
from sweeps.state.results import RunResult
from sweeps.study.search import CONFIRM
from sweeps.study.study import Study

_JOINED = (CONFIRM, "point ")
"""Begin the names of arms that joined a search while it ran."""
_DIGITS = 8
"""Digits of the settings' digest in the name of a folder."""
_PROVENANCE, _RUNS = "provenance.json", "runs.csv"
_TELLING = ("table.csv", "report.html", _RUNS)
"""Files of which one at least is there where a report was."""
_UNKNOWN = frozenset({""})
"""Placeholder for unknown runs: no report has all of them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Standing:
    """An earlier report, as described by its provenance."""

    folder: Path
    settings: str
    """`Study.settings`; empty in a report of an earlier version."""
    is_finished: bool
    complete: frozenset[str]
    """Keys of its complete runs."""
    predicted: frozenset[str] = frozenset()
    """Keys of those whose predictions it was made from."""
    num_runs: int = 0
    seeds: tuple[int, ...] = ()
    arms: Mapping[str, Mapping[str, Any]]
    """Arm of the study file to its configuration, flattened, without the seed."""
    is_known: bool = True
    """False where the provenance cannot be read, or is another study's."""

    def is_within(self, complete: frozenset[str], predicted: frozenset[str]) -> bool:
        """Return whether these are all of its complete runs and all of its predictions."""
        is_known = self.complete.isdisjoint(_UNKNOWN)
        return is_known and self.complete <= complete and self.predicted <= predicted


@dataclass(frozen=True, kw_only=True, slots=True)
class ReportPlace:
    """The folder of a report."""

    folder: Path
    stays: Standing | None = None
    """The finished report that keeps the study's own folder; None if this one gets it."""
    num_lacking: int = 0
    """Runs whose predictions that has and this one lacks, though it has the same runs."""
    moved: Standing | None = None
    """A finished report of other runs in the folder, which is moved away first."""
    moves: Path | None = None
    """Folder to which that report is moved."""
    outdated: tuple[Path, ...] = ()
    """Folders of reports of the same settings beside it, which have nothing that this lacks."""

    def clear(self) -> None:
        """Move out of the way what goes elsewhere.

        Raises:
            OSError: If a folder cannot be moved.
        """
        for folder in self.outdated:
            shutil.rmtree(folder)
        if self.moves is not None:
            if self.moves.exists():
                shutil.rmtree(self.moves)
            self.folder.rename(self.moves)


def place_of(
    folder: Path,
    study: Study,
    results: Iterable[RunResult],
    *,
    is_finished: bool,
    predicted: Collection[str] = frozenset(),
) -> ReportPlace:
    """Return where a report goes; nothing is moved yet.

    Args:
        folder: The study's own.
        study: With the arms that it has by now.
        results: Of its runs.
        is_finished: Whether nothing is left to train (`reports.numbers.provenance.is_finished`).
        predicted: Keys of the runs whose predictions it is made from.
    """
    complete = frozenset(r.run.key for r in results if r.outcome == "complete")
    known = frozenset(predicted)

    def may_replace(other: Standing) -> bool:
        return not other.is_finished or (is_finished and other.is_within(complete, known))

    here = standing(folder, study.name)
    outdated = tuple(
        other.folder
        for other in standings(folder, study.name)
        if other.folder != folder and other.settings == study.settings
        if is_finished and other.is_within(complete, known)
    )
    if here is None or may_replace(here):
        return ReportPlace(folder=folder, outdated=outdated)
    if not is_finished or complete <= here.complete:
        lacking = here.predicted - known if complete == here.complete else ()
        place = _beside(folder, study.name, study.settings, may_replace)
        return ReportPlace(folder=place, stays=here, num_lacking=len(lacking))
    moves = _beside(
        folder,
        study.name,
        here.settings,
        lambda other: other.is_within(here.complete, here.predicted),
    )
    return ReportPlace(folder=folder, moved=here, moves=moves, outdated=outdated)


def standing(folder: Path, study: str) -> Standing | None:
    """Return the report in a folder for those of a study; None if there is none.

    One whose provenance cannot be read, or is another study's, counts as finished.
    """
    found = filled(_Provenance, read_note(folder / _PROVENANCE))
    if found is None or found.study != study:
        is_there = any((folder / name).exists() for name in _TELLING)
        return _remains(folder) if is_there else None
    is_over = all(run.outcome in SETTLED for run in found.runs)
    return Standing(
        folder=folder,
        settings=found.settings,
        is_finished=is_over if found.finished is None else found.finished,
        complete=frozenset(run.run_key for run in found.runs if run.outcome == "complete"),
        predicted=frozenset(run.run_key for run in found.runs if run.has_predictions),
        num_runs=len(found.runs),
        seeds=found.seeds,
        arms={arm: of_arm for arm, of_arm in found.arms.items() if not arm.startswith(_JOINED)},
    )


def holds_report(folder: Path) -> bool:
    """Return whether the provenance of a report, of whichever study, is in a folder."""
    return filled(_Provenance, read_note(folder / _PROVENANCE)) is not None


def standings(folder: Path, study: str) -> tuple[Standing, ...]:
    """Return the reports of a study: the one in its own folder, then those beside it."""
    beside = sorted(p for p in folder.parent.glob("*") if p.name.startswith(f"{folder.name}@"))
    return tuple(
        found for path in (folder, *beside) if (found := standing(path, study)) is not None
    )


def spell_place(place: ReportPlace, study: Study) -> str | None:
    """Return which report stays or was moved, and where this one is; None if it had no rival."""
    if place.moved is not None:
        why = _spell_moved(place.moved, study)
        return f"the report that stood in {place.folder} is in {place.moves}: {why}"
    if place.stays is None:
        return None
    here = place.stays
    return (
        f"{here.folder} stays: {_spell_kept(place, here, study)}; this report is in {place.folder}"
    )


def _spell_moved(moved: Standing, study: Study) -> str:
    if not moved.is_known:
        return f"its {_PROVENANCE} cannot be read or is another study's"
    if moved.settings == study.settings:
        return "it has fewer runs and more predictions"
    return "it is of other settings"


def _spell_kept(place: ReportPlace, here: Standing, study: Study) -> str:
    if not here.is_known:
        return (
            f"{here.folder / _PROVENANCE} cannot be read or is another study's, so nobody knows "
            "what this report would replace (remove the folder to have it there)"
        )
    if told := spell_differences(here.arms, study, here.seeds):
        return f"stored here with {told}"
    same = "it was finished with the same settings"
    if not place.num_lacking:
        return same
    runs = "1 run" if place.num_lacking == 1 else f"{place.num_lacking} runs"
    return f"{same} and has the predictions of {runs} more"


@dataclass(frozen=True, kw_only=True, slots=True)
class _Run:
    """A run as `provenance.json` describes it."""

    run_key: str
    outcome: str
    has_predictions: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class _Provenance:
    """Entries of `provenance.json` that a shelf reads; old files lack those with a default."""

    study: str
    seeds: tuple[int, ...]
    arms: Mapping[str, Mapping[str, Any]]
    runs: tuple[_Run, ...]
    settings: str = ""
    finished: bool | None = None


def _remains(folder: Path) -> Standing:
    """Return a report without provenance; it counts as finished unless `runs.csv` differs."""
    outcomes = _listed(folder / _RUNS) or dict.fromkeys(_UNKNOWN, "complete")
    return Standing(
        folder=folder,
        settings="",
        is_finished=all(outcome in SETTLED for outcome in outcomes.values()),
        complete=frozenset(key for key, outcome in outcomes.items() if outcome == "complete"),
        arms={},
        is_known=False,
    )


def _listed(file: Path) -> dict[str, str]:
    """Return the outcome of each run of a `runs.csv` by key; empty if the file was changed."""
    try:
        lines = list(csv.DictReader(StringIO(read_regular(file, LARGEST).decode())))
        found = {line["run_key"]: line["outcome"] for line in lines}
    except (OSError, UnreadableError, ValueError, KeyError, csv.Error):
        return {}
    is_whole = None not in {*found, *found.values()}  # of a line that was cut
    return found if is_whole else {}


def _beside(
    folder: Path, study: str, settings: str, may_replace: Callable[[Standing], bool]
) -> Path:
    """Return the first folder for reports of some settings that is free, or may be replaced."""
    name = f"{folder.name}@{settings[:_DIGITS] or 'earlier'}"
    paths = (folder.with_name(f"{name}.{number}" if number else name) for number in count())
    return next(path for path in paths if _is_free(path, study, may_replace))


def _is_free(path: Path, study: str, may_replace: Callable[[Standing], bool]) -> bool:
    found = standing(path, study)
    return not os.path.lexists(path) if found is None else may_replace(found)
