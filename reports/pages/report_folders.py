"""Report folders: the newest report of a study is in STUDY; an older one with more is renamed.

    STUDY                 the newest report
    STUDY@SETTINGS        an older, finished report with runs or predictions that the newest lacks
    STUDY@SETTINGS.1      the same, if STUDY@SETTINGS has results that this one lacks
    STUDY@earlier         an older report without a readable `provenance.json`; it is always kept

SETTINGS is a hash of the settings of the study's arms. A report belongs to the study that its
`provenance.json` names.
"""

import glob
import os
import re
import shutil
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Annotated, Any

from mixup_core.store.errors import naming
from mixup_core.store.json_records import Line, Lines, Time, filled, matching, read_note
from mixup_core.store.local_files import share, sync
from mixup_core.temporary import require_places, temporary_folder
from sweeps.state.ledger import plugin_settings, spell_differences
from sweeps.state.results import RunResult
from sweeps.study.search import added_among
from sweeps.study.study import Study, spell_seeds

_DIGITS = 8
_SUFFIX = re.compile(rf"@([0-9a-f]{{{_DIGITS}}}|earlier)(\.[1-9][0-9]*)?")
"""End of the names of folders beside `STUDY` that this module makes."""
_PROVENANCE = "provenance.json"
_TELLING = ("table.csv", "report.html", "runs.csv")
"""Files that identify the folder of a report; every report has at least one of them."""
_UNKNOWN = frozenset({""})
"""Placeholder for unknown run keys. No other report has this key, so none may replace a report that
has it.
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Code:
    commit: Line


@dataclass(frozen=True, kw_only=True, slots=True)
class _Run:
    run_key: str
    seed: int
    outcome: str
    has_predictions: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class _Plugin:
    plugin: str
    sha256: str
    arms: tuple[str, ...]
    """The arms that use it."""


_FileName = Annotated[
    str, matching(r"([a-zA-Z0-9_-][a-zA-Z0-9._-]{0,200}/){0,2}[a-zA-Z0-9_-][a-zA-Z0-9._-]{0,200}",
                  "the name of a file of a report")
]  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class Provenance:
    """The entries of `provenance.json` that are read again: by a later report, and by a site."""

    study: str
    description: Lines
    seeds: tuple[int, ...]
    arms: Mapping[str, Mapping[str, Any]]
    runs: tuple[_Run, ...]
    settings: Annotated[str, matching("[0-9a-f]{32}", "32 hexadecimal digits")]
    finished: bool
    code: _Code | None
    last_epoch_stored_at_ms: Time | None
    conclusion: tuple[Lines, ...] = ()
    main_figure: str = ""
    files: tuple[_FileName, ...] = ()
    plugins: tuple[_Plugin, ...] = ()

    def plugins_of(self, arm: str) -> dict[str, str]:
        return {p.plugin: p.sha256 for p in self.plugins if arm in p.arms}


def read_provenance(folder: Path) -> Provenance | None:
    """Read the provenance of a report; None if the folder has none that can be read."""
    return filled(Provenance, read_note(folder / _PROVENANCE))


@dataclass(frozen=True, kw_only=True, slots=True)
class Standing:
    """An earlier report in the folder of a study, as its `provenance.json` describes it."""

    folder: Path
    settings: str
    """Hash of the settings (`Study.settings`); empty if unknown."""
    is_finished: bool
    complete: frozenset[str]
    predicted: frozenset[str] = frozenset()
    num_runs: int = 0
    seeds: tuple[int, ...] = ()
    arms: Mapping[str, Mapping[str, Any]]
    """Configuration of each arm as the ledger records it: flattened, without the seed, with the
    digests of its plugins."""
    is_known: bool = True
    """True if `provenance.json` can be read and names this study."""

    def is_within(self, complete: frozenset[str], predicted: frozenset[str]) -> bool:
        """Return whether another report has all results of this one; False if unknown."""
        is_known = self.complete.isdisjoint(_UNKNOWN)
        return is_known and self.complete <= complete and self.predicted <= predicted


@dataclass(frozen=True, kw_only=True, slots=True)
class Room:
    """Changes to earlier reports of a study that a new one in its folder needs."""

    folder: Path
    moved: Standing | None = None
    moves: Path | None = None
    outdated: tuple[Path, ...] = ()
    """Folders to delete: reports with the same settings whose results the new report has."""

    def make(self) -> None:
        """Rename the earlier report, so that the new one can be written."""
        if self.moves is not None:
            if self.moves.exists():
                shutil.rmtree(self.moves)
            shutil.move(self.folder, self.moves)  # some file systems cannot rename a folder

    def clear(self) -> None:
        """Delete outdated reports; call this once the new report has been written."""
        for folder in self.outdated:
            shutil.rmtree(folder)


def room_for(
    folder: Path,
    study: Study,
    results: Iterable[RunResult],
    *,
    is_finished: bool,
    predicted: Collection[str] = frozenset(),
) -> Room:
    """Return what must happen for a new report in a folder; nothing is moved or deleted yet."""
    complete = frozenset(r.run.key for r in results if r.outcome == "complete")
    known = frozenset(predicted)
    here = standing(folder, study.name)
    outdated = tuple(
        other.folder
        for other in standings(folder, study.name)
        if other.folder != folder and other.is_known and other.settings == study.settings
        if is_finished and other.is_within(complete, known)
    )
    if here is None or not here.is_finished or (is_finished and here.is_within(complete, known)):
        return Room(folder=folder, outdated=outdated)
    moves = _beside(folder, study.name, here)
    kept = tuple(folder for folder in outdated if folder != moves)
    return Room(folder=folder, moved=here, moves=moves, outdated=kept)


def standing(folder: Path, study: str) -> Standing | None:
    """Return the report of a study in a folder; None if the folder has no report."""
    found = read_provenance(folder)
    if found is None:
        if not any((folder / name).exists() for name in _TELLING):
            return None
        return Standing(
            folder=folder, settings="", is_finished=True, complete=_UNKNOWN, arms={}, is_known=False
        )
    added = added_among(found.arms)
    return Standing(
        folder=folder,
        settings=found.settings,
        is_finished=found.finished,
        complete=frozenset(run.run_key for run in found.runs if run.outcome == "complete"),
        predicted=frozenset(run.run_key for run in found.runs if run.has_predictions),
        num_runs=len(found.runs),
        seeds=found.seeds,
        arms={
            arm: {**of_arm, **plugin_settings(found.plugins_of(arm))}
            for arm, of_arm in found.arms.items()
            if arm not in added
        },
        is_known=found.study == study,
    )


def holds_report(folder: Path) -> bool:
    """Return whether a folder contains the provenance of a report."""
    return read_provenance(folder) is not None


def listed_files(folder: Path) -> tuple[str, ...]:
    """Return the paths of a report's files below its folder, as its provenance lists them."""
    found = read_provenance(folder)
    return () if found is None else found.files


def standings(folder: Path, study: str) -> tuple[Standing, ...]:
    """Return all reports of a study: that in the folder `STUDY`, then those in `STUDY@...`.

    Folders that users have named themselves, such as `STUDY@for-the-paper`, are left out.
    """
    beside = sorted(
        path
        for path in folder.parent.glob(f"{glob.escape(folder.name)}@*")
        if _SUFFIX.fullmatch(path.name.removeprefix(folder.name))
    )
    return tuple(
        found for path in (folder, *beside) if (found := standing(path, study)) is not None
    )


def spell_moved(room: Room, study: Study) -> str | None:
    """Return a message about an earlier report that was renamed; None if there was none."""
    if room.moved is None:
        return None
    moved = room.moved
    if not moved.is_known:
        why = f"its {_PROVENANCE} cannot be read or is another study's"
    elif told := spell_differences(moved.arms, study):
        why = f"it was made with {told}"
    elif not set(moved.seeds) <= set(study.seeds):
        why = f"it has other seeds ({spell_seeds(moved.seeds)})"
    else:
        why = "it has runs or predictions that the new report lacks"
    return f"the earlier report in {room.folder} was moved to {room.moves}: {why}"


def _beside(folder: Path, study: str, here: Standing) -> Path:
    """Return the first folder `STUDY@SETTINGS` that is free or has no result that `here` lacks."""
    name = f"{folder.name}@{here.settings[:_DIGITS] or 'earlier'}"
    paths = (folder.with_name(f"{name}.{number}" if number else name) for number in count())
    return next(path for path in paths if _is_free(path, study, here))


def _is_free(path: Path, study: str, here: Standing) -> bool:
    found = standing(path, study)
    if found is None:
        return not os.path.lexists(path)
    return found.is_within(here.complete, here.predicted)


Content = str | bytes | Iterable[str]
"""Content of a file: all of it, or pieces of text that are written one after the other."""


def replace_files(
    folder: Path, contents: Mapping[str, Content], *, is_own: bool, former: Collection[str] = ()
) -> None:
    """Write all files to a temporary folder, delete `former` ones, then move each into place."""
    require_places(folder, [*contents, *former], is_own=is_own)
    _make(folder.parent)
    with temporary_folder(folder.parent, f".{folder.name}.") as own:
        staged = own / "staged"  # the name of the folder `.` is empty
        staged.mkdir()
        for name, content in contents.items():
            path = staged / name
            path.parent.mkdir(exist_ok=True)
            pieces = [content] if isinstance(content, str | bytes) else content
            with naming(path), path.open("wb") as file:
                for piece in pieces:
                    file.write(piece.encode() if isinstance(piece, str) else piece)
            sync(path)
        # Order matters: replace no file before all are written. A full disk would leave a report
        # made of two; tests/reports/pages/test_report_folders.py fails.
        for path in (folder / name for name in former):
            if path.is_file():
                path.unlink()
        for name in contents:
            _make((folder / name).parent)
            (staged / name).replace(folder / name)
        for place in {(folder / name).parent for name in contents}:
            sync(place)


def _make(folder: Path) -> None:
    if not folder.is_dir():
        _make(folder.parent)
        folder.mkdir(exist_ok=True)
        share(folder)
