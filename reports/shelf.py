"""Shelf: which folder a report goes to, so that no finished report is replaced by another study's.

    STUDY               the newest finished report; while there is none, the newest
    STUDY@SETTINGS      an unfinished one beside a finished one, or one of other settings

A report belongs to the study as resolved, which `provenance.json` names. One that has every
finished run of another, and is finished if that is, takes its place.
"""

import json
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reports.provenance import SETTLED
from sweeps.ledger import spell_differences
from sweeps.results import RunResult
from sweeps.search import CONFIRM
from sweeps.study import Study

_JOINED = (CONFIRM, "point ")
"""Begin the names of arms that joined a search while it ran."""
_DIGITS = 8
"""Of the settings in the name of a folder."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Standing:
    """A report that was written before, as its provenance says."""

    folder: Path
    settings: str
    """`Study.settings`; empty in a report of an earlier version."""
    is_finished: bool
    complete: frozenset[str]
    """Keys of its complete runs."""
    num_runs: int
    seeds: tuple[int, ...]
    arms: Mapping[str, Mapping[str, Any]]
    """Arm of the study file to its configuration, flattened, without the seed."""
    last_stored_at_ms: int | None
    """Unix time in ms of its last epoch."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """Where a report goes."""

    folder: Path
    stays: Standing | None = None
    """The finished report that keeps the study's own folder; None if this one gets it."""
    moves: Path | None = None
    """Where a finished report of other settings that stands in the folder goes first."""
    outdated: Path | None = None
    """The folder of a report of the same settings beside it, which has no run that this lacks."""

    def clear(self) -> None:
        """Move out of the way what goes elsewhere.

        Raises:
            OSError: If a folder cannot be moved.
        """
        if self.outdated is not None:
            shutil.rmtree(self.outdated)
        if self.moves is not None:
            if self.moves.exists():
                shutil.rmtree(self.moves)
            self.folder.rename(self.moves)


def place_of(
    folder: Path, study: Study, results: Iterable[RunResult], *, is_finished: bool
) -> Place:
    """Return where a report goes; nothing is moved yet.

    Args:
        folder: The study's own.
        study: With the arms that it has by now.
        results: Of its runs.
        is_finished: Whether nothing is left to train (`reports.provenance.is_finished`).
    """
    here, own = standing(folder), _beside(folder, study.settings)
    complete = frozenset(r.run.key for r in results if r.outcome == "complete")
    former = standing(own)
    outdated = own if is_finished and former and former.complete <= complete else None
    if here is None or not here.is_finished:
        return Place(folder=folder, outdated=outdated)
    if not is_finished or complete < here.complete:
        return Place(folder=own, stays=here)
    if here.complete <= complete:
        return Place(folder=folder, outdated=outdated)
    return Place(folder=folder, moves=_beside(folder, here.settings), outdated=outdated)


def standing(folder: Path) -> Standing | None:
    """Return the report in a folder; None if there is none whose provenance can be read."""
    try:
        provenance = json.loads((folder / "provenance.json").read_bytes())
        runs = provenance["runs"]
        return Standing(
            folder=folder,
            settings=provenance.get("settings", ""),
            is_finished=provenance.get("finished", all(run["outcome"] in SETTLED for run in runs)),
            complete=frozenset(run["run_key"] for run in runs if run["outcome"] == "complete"),
            num_runs=len(runs),
            seeds=tuple(provenance["seeds"]),
            arms={
                arm: settings
                for arm, settings in provenance["arms"].items()
                if not arm.startswith(_JOINED)
            },
            last_stored_at_ms=provenance["last_epoch_stored_at_ms"],
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def standings(folder: Path) -> tuple[Standing, ...]:
    """Return the reports of a study: the one in its own folder, then those beside it."""
    beside = sorted(folder.parent.glob(f"{folder.name}@*"))
    return tuple(found for path in (folder, *beside) if (found := standing(path)) is not None)


def spell_place(place: Place, study: Study) -> str | None:
    """Return which report stays or was moved, and where this one is; None if it had no rival."""
    if place.moves is not None:
        return f"the report of other settings that stood in {place.folder} is in {place.moves}"
    if place.stays is None:
        return None
    here = place.stays
    told = spell_differences(here.arms, study, here.seeds)
    made = f"stored here with {told}" if told else "it was finished with the same settings"
    return f"{here.folder} stays: {made}; this report is in {place.folder}"


def _beside(folder: Path, settings: str) -> Path:
    return folder.with_name(f"{folder.name}@{settings[:_DIGITS] or 'earlier'}")
