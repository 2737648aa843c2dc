"""Damage matrix: every kind of file, with every damage, before every command.

A command may repair the damage, exit with 0 and leave the report unchanged; or name the file in one
line, and leave the report unchanged. It must never print a traceback, hang, or overwrite a good
report. `mixsweep run` has to repair everything that can be made again.

For each cell, a finished home is copied to the same path. Results of cells are kept under `build/`
for the same code, so an interrupted soak continues with the remaining cells.
"""

import argparse
import fcntl
import hashlib
import json
import math
import os
import random
import re
import shutil
import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from reports.numbers.code_origin import describe_code
from tests.soak.findings import publish
from tests.soak.kinds import GRID, KINDS, NEWER, OTHER, REPORTED, SEARCH, TIMED, Home, Kind
from tests.soak.place import Place
from tests.soak.warm import Ended, Warm

PATIENCE = 30.0
"""Seconds after which a command counts as hanging."""
_FRAME = re.compile(r'^  File "(.+)", (line .+)$', re.MULTILINE)
"""Regular expression of a stack frame of a thread."""
PATIENCE_OF_LAUNCHES = 150.0
"""The same limit for a command that may start Ray on a busy machine."""
STUDY = "STUDY"
"""Placeholder for the study file in a command."""
RAYS = "truncated"
"""Damage after which launches train with Ray; after the others they train in their own process,
which takes a third of the time."""
ON_RAY = ("--slots", "1")
INLINE = ("--engine", "inline")
COMMANDS: Mapping[str, tuple[str, ...]] = {
    "plan": ("plan", STUDY),
    "status": ("status", STUDY),
    "run": ("run", STUDY, "--keep-final-states"),
    "report": ("report", STUDY),
    "report of fewer": ("report", STUDY, "--set", "seeds=1"),
    "sync": ("sync", STUDY),
    "verify": ("store", "verify"),
    "prune": ("store", "prune", STUDY, "--yes"),
    "list": ("status",),
    "ui": ("ui", "--port", "5999"),
}
REWRITES = frozenset({"run", "report"})
"""Commands that write the report of the whole study."""
MAY_LACK = frozenset({"verify", "report", "report of fewer"})
"""Commands that exit with 1 if a stored file is damaged, and say what is missing."""
CACHE = Path("build") / "damage"
"""Folder of finished homes and of results of cells, by the code that made them."""
_PUBLISHED_EVERY = 25
_MODES = ("setpriv", "--bounding-set=-dac_override,-dac_read_search")
"""Prefix of a command that makes file modes bind root."""
_MOST_LINES: Mapping[str, int] = {"image": 2}
"""Largest number of lines of a message by kind of file; others have one. Of several images, each is
one line, and the last line says what to do."""
_PROGRESS = re.compile(
    rf"({GRID}|{SEARCH})(: |  )|(loading|opening|starting|looking|writing|bringing) |report    "
    rf"|tracking  |.*  \[({GRID}|{SEARCH})  "
)
"""Beginning of a progress message."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Cell:
    """A kind of file, a damage and a command."""

    kind: str
    damage: str
    command: str

    def __str__(self) -> str:
        return f"{self.kind}, {self.damage}, {self.command}"

    @property
    def of(self) -> Kind:
        """The kind of file."""
        return KINDS[self.kind]


@dataclass(frozen=True, kw_only=True, slots=True)
class Ending:
    """Ending of a command: exit code, output and files left."""

    ended: Ended
    file: Path
    """The damaged file."""
    reports: Mapping[str, Mapping[str, str]]
    """Reports of the study after the command: sha256 of each file, by folder."""


def cells() -> Iterator[Cell]:
    """Yield every cell."""
    for name, kind in KINDS.items():
        for damage in [*kind.damages(), *([OTHER] if kind.other else [])]:
            for command in COMMANDS:
                yield Cell(kind=name, damage=damage, command=command)


def judge(cell: Cell, ending: Ending, sound: Mapping[str, str]) -> str | None:
    """Return what is wrong with the end of a cell; None if nothing is.

    Args:
        cell: The cell.
        ending: How it ended.
        sound: Report of the study before: sha256 of each file.
    """
    code, said = ending.ended.code, ending.ended.out + ending.ended.err
    if code is None:
        # What is published names no folder of the machine.
        where = [f"{Path(file).name}, {line}" for file, line in _FRAME.findall(said)]
        return f"hangs: {' < '.join(where[:6]) or 'nobody knows where'}"
    if "Traceback" in said:
        return f"traceback: {said.strip().splitlines()[-1]}"
    if code not in {0, 2, *([1] if cell.command in MAY_LACK else [])}:
        return f"exit {code}: {said[-300:]}"
    if changed := _changed(cell, ending, sound):
        return f"exit {code}, and other bytes in {', '.join(sorted(changed))}"
    if code != 0 and (unclear := _unclear(cell, ending)):
        return f"exit {code}, {unclear}"
    if code != 0 and cell.command == "run" and cell.damage in cell.of.healed:
        return f"exit {code}, and what is damaged can be made again: {said[-300:]}"
    is_told = cell.damage not in {"missing", NEWER} and cell.of.is_verified
    if code == 0 and cell.command == "verify" and is_told:
        return "all is well to `verify`"
    return None


def _changed(cell: Cell, ending: Ending, sound: Mapping[str, str]) -> Collection[str]:
    """Return the files of a good report that were changed in every report folder of the study."""
    folder = ending.file.parent
    while folder.name != cell.of.study and folder != folder.parent:
        folder = folder.parent
    is_reported = ending.file.is_relative_to(folder) and "reports" in folder.parts
    damaged = str(ending.file.relative_to(folder)) if is_reported else ""
    is_rewritten = cell.command in REWRITES
    kept = {name: sha256 for name, sha256 in sound.items() if name != damaged}
    if is_rewritten:
        is_healed = ending.ended.code == 0
        kept = {n: s for n, s in (sound if is_healed else kept).items() if n not in TIMED}
    here = ending.reports.get(cell.of.study, {})
    others = ending.reports.values() if cell.of.stands_for else []
    if any(kept.items() <= report.items() for report in others):
        return set()
    changed = {name for name in kept if here.get(name) != kept[name]}
    if is_rewritten and ending.ended.code == 0:
        whole = any(sound.keys() <= report.keys() for report in ending.reports.values())
        changed |= set() if whole else sound.keys() - here.keys()
    return changed


def _unclear(cell: Cell, ending: Ending) -> str | None:
    """Return what is wrong with the message of a command that exits with another code than 0."""
    lines = [line for line in ending.ended.err.splitlines() if not _PROGRESS.match(line)]
    told = " / ".join(lines)[-300:]
    if ending.ended.code != 1 and not 1 <= len(lines) <= _MOST_LINES.get(cell.kind, 1):
        return f"{len(lines)} lines: {told}"
    names = {ending.file.name, ending.file.stem, ending.file.stem.split("-")[0]}
    names |= {"digest=other files"} if cell.of.stands_for else set()
    # What is not there has no name that the program could know; it names the run instead. A report
    # of a run that is not stored lacks it anyway, as that of other images lacks all.
    lacks = ending.ended.code == 1 and (cell.of.stands_for or cell.of.lacks_a_run)
    if not (lacks or cell.damage == "missing") and not any(
        name in " ".join(lines) for name in names
    ):
        return f"and the file is not named: {told}"
    return None


@dataclass(frozen=True, kw_only=True, slots=True)
class Seen:
    """A cell with its result."""

    cell: Cell
    code: int | None
    """Exit code; None if the command hung."""
    wrong: str | None
    seconds: float


@dataclass(kw_only=True)
class Found:
    """Results of the cells so far."""

    cells: int = 0
    endings: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @classmethod
    def of(cls, seen: Iterable[Seen]) -> "Found":
        """Return the combined results of some cells."""
        found = cls()
        for one in seen:
            found.add(one)
        return found

    def add(self, seen: Seen) -> None:
        """Add the result of a cell."""
        self.cells += 1
        self.seconds += seen.seconds
        self.endings[f"{seen.cell.command}: {seen.code}"] += 1
        if seen.wrong is not None:
            self.violations.append(f"{seen.cell}: {seen.wrong}")

    def figures(self, *, of: int) -> dict[str, Any]:
        """Return the measurements to publish, for the given total number of cells."""
        return {
            "cells": self.cells,
            "cells_in_all": of,
            "exit_codes": dict(sorted(self.endings.items())),
            "violations_in_all": len(self.violations),
            "violations": self.violations,
            "minutes": self.seconds / 60,
        }


def main() -> None:
    """Run the cells and publish the results; exit with 1 if one is wrong or was not run."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name, known in (("kind", KINDS), ("command", COMMANDS)):
        parser.add_argument(f"--{name}", choices=list(known), action="append")
    parser.add_argument("--damage", action="append")
    parser.add_argument("--half", type=int, choices=(1, 2), help="of the cells; two run together")
    parser.add_argument("--cells", type=int, help="that many, drawn at random")
    parser.add_argument("--seed", type=int, default=0, help="of that")
    parser.add_argument("--minutes", type=float, default=math.inf, help="no cell begins after")
    options = parser.parse_args()
    chosen = [
        cell
        for cell in cells()
        if cell.kind in (options.kind or KINDS)
        and cell.command in (options.command or COMMANDS)
        and (not options.damage or cell.damage in options.damage)
    ]
    if options.cells is not None:
        chosen = random.Random(options.seed).sample(chosen, min(options.cells, len(chosen)))
    mine = chosen if options.half is None else chosen[options.half - 1 :: 2]
    seen = _seen(mine)
    if left := [cell for cell in mine if cell not in seen]:
        _go_through(left, 60 * options.minutes, chosen)
    _publish(chosen)
    found = Found.of(_seen(mine).values())
    print("\n".join(found.violations))  # noqa: T201
    print(f"{found.cells} of {len(mine)} cells seen, {len(found.violations)} are wrong")  # noqa: T201
    raise SystemExit(1 if found.violations or found.cells < len(mine) else 0)


def _publish(chosen: Collection[Cell]) -> None:
    """Publish the results of all chosen cells, including those of the other half."""
    found = Found.of(_seen(chosen).values())
    title = f"{found.cells} cells of kind of file x damage x command"
    publish("damage", title, found.figures(of=len(list(cells()))))


def _go_through(left: Sequence[Cell], seconds: float, chosen: Collection[Cell]) -> None:
    place = Place()
    home = Home(folder=place.folder.with_name("damage"))
    os.environ["MIXSWEEP_DATA"] = str(home.data)
    with Warm.started(_prefix(), first="tests.soak.warm:rehearse") as warm:
        kept = _finished(home, warm)
        until = time.monotonic() + seconds
        sound = {study: home.reports(study)[study] for study in (GRID, SEARCH)}
        assert set(REPORTED) <= sound[GRID].keys() & _with_figures(sound[GRID])
        for number, cell in enumerate(left, 1):
            if time.monotonic() > until:
                break
            started = time.monotonic()
            shutil.rmtree(home.folder)
            shutil.copytree(kept, home.folder)
            ending = _end(cell, home, warm)
            wrong = judge(cell, ending, sound[cell.of.study])
            took = time.monotonic() - started
            seen = Seen(cell=cell, code=ending.ended.code, wrong=wrong, seconds=took)
            _keep(seen)
            told = "" if wrong is None else f"  {wrong[:400]}"
            print(f"{number}: {cell}: {seen.code}, {took:.1f} s{told}", flush=True)  # noqa: T201
            if number % _PUBLISHED_EVERY == 0:
                _publish(chosen)


def _with_figures(report: Mapping[str, str]) -> set[str]:
    """Return the files that need a kind: all but further figures."""
    others = {name for name in report if "/" not in name} - set(REPORTED)
    assert not others, f"of no kind: {others}"
    return set(report)


def _seen(chosen: Collection[Cell]) -> dict[Cell, Seen]:
    """Return the results of some cells with this code, from now or before."""
    lines = _seen_cells().read_text().splitlines() if _seen_cells().exists() else []
    every = [
        Seen(cell=Cell(**cell), code=code, wrong=wrong, seconds=seconds)
        for cell, code, wrong, seconds in map(json.loads, lines)
    ]
    among = set(chosen)
    return {seen.cell: seen for seen in every if seen.cell in among}


def _keep(seen: Seen) -> None:
    with _seen_cells().open("a") as file:
        file.write(json.dumps([asdict(seen.cell), seen.code, seen.wrong, seen.seconds]) + "\n")


def _seen_cells() -> Path:
    own = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()[:8]
    return CACHE / f"{_code()}-{own}.jsonl"


@cache
def _code() -> str:
    """Return a hash of the tested code and its inputs."""
    digest = hashlib.sha256(json.dumps(describe_code()).encode())
    looked_at = [
        path
        for package in ("mixup_core", "sweeps", "reports")
        for path in Path(package).rglob("*")
        if path.suffix in {".py", ".yaml", ".html"} and "published" not in path.parts
    ]
    given = [*Path(__file__).parent.glob("damage-*.yaml"), Path(__file__).with_name("kinds.py")]
    for path in sorted([*looked_at, *given, Path("tests/damages.py")]):
        digest.update(str(path.name).encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def _finished(home: Home, warm: Warm) -> Path:
    """Return a copy of a home with finished studies."""
    kept = CACHE / _code()
    with _alone():
        if not kept.exists():
            home.begin()
            for study in (GRID, SEARCH):
                ended = _run(home, study, "run", warm, is_on_ray=True)
                assert ended.code == 0, ended
            home.complete()
            shutil.rmtree(CACHE, ignore_errors=True)  # other code's
            partial = kept.with_name(f"{kept.name}.partial")
            shutil.copytree(home.folder, partial)
            partial.rename(kept)
    if not home.folder.exists():
        shutil.copytree(kept, home.folder)
    return kept


@contextmanager
def _alone() -> Iterator[None]:
    """Wait for the other half, which needs the same finished home."""
    CACHE.parent.mkdir(exist_ok=True)
    with CACHE.with_suffix(".lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _end(cell: Cell, home: Home, warm: Warm) -> Ending:
    """Damage a file and run a command on it."""
    kind = cell.of
    kind.before(home)
    file = kind.find(home)
    if cell.damage == OTHER:
        assert kind.other is not None
        shutil.copy(kind.other(home), file)
    else:
        kind.damages()[cell.damage](file)
    ended = _run(home, kind.study, cell.command, warm, is_on_ray=cell.damage == RAYS)
    return Ending(ended=ended, file=file, reports=home.reports(kind.study))


def _run(home: Home, study: str, command: str, warm: Warm, *, is_on_ray: bool) -> Ended:
    words = [str(home.file_of(study)) if part == STUDY else part for part in COMMANDS[command]]
    if command != "run":
        return warm(home.mixsweep(), *words, patience=PATIENCE)
    words += ON_RAY if is_on_ray else INLINE
    return warm(home.mixsweep(), *words, patience=PATIENCE_OF_LAUNCHES)


def _prefix() -> Sequence[str]:
    return _MODES if os.geteuid() == 0 else ()


if __name__ == "__main__":
    main()
