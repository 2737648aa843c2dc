"""The damage matrix: every kind of file, damaged in every way, before every command.

A command may heal the damage, exit 0 and leave the exports as they were; or say which file it is
and leave them as they were. It may never show a traceback, hang, or overwrite a good report.
"""

import argparse
import dataclasses
import hashlib
import json
import math
import os
import random
import shutil
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from mixup_core.keys import stage_keys
from mixup_core.store.checkpoints import Store
from mixup_core.store.manifests import Failure
from reports.provenance import describe_code
from tests.conftest import CommandLine
from tests.damages import DAMAGES, Damage
from tests.faults.launches import Task
from tests.soak.findings import publish
from tests.soak.place import Place
from tests.soak.warm import Warm

STUDY = Task(str(Path(__file__).with_name("damage.yaml")))
PATIENCE = 600.0
"""Seconds after which a command hangs; a launch that trains takes 60 on a busy machine."""
COMMANDS: Mapping[str, tuple[str, ...]] = {
    "plan": ("plan", *STUDY.arguments),
    "status": ("status", *STUDY.arguments),
    "run": ("run", *STUDY.arguments, "--slots", "1", "--keep-final-states"),
    "report": ("report", *STUDY.arguments),
    "sync": ("sync", *STUDY.arguments),
    "verify": ("store", "verify"),
    "prune": ("store", "prune", *STUDY.arguments, "--yes"),
}
KEPT = Path("build") / "damage.jsonl"
"""How cells ended at a commit: a soak that was cut short goes on with the others."""
_PUBLISHED_EVERY = 25
_MODES = ("setpriv", "--bounding-set=-dac_override,-dac_read_search")
"""Lets root read no more than the modes of its files say."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Home:
    """The files of a finished study, to be found by those who damage them."""

    mixsweep: CommandLine

    def store(self, pattern: str) -> Path:
        """Return the first file of the store whose path matches."""
        return sorted((self.mixsweep.home / "store").glob(pattern))[0]

    def last_stage(self, number: int = 0) -> Path:
        """Return the manifest of a run's last epoch."""
        key = stage_keys(STUDY.study.runs()[number].config)[-1]
        return self.store(f"stages/*/{key}.json")

    @property
    def report(self) -> Path:
        """The folder of the report."""
        return self.mixsweep.home / "reports" / STUDY.study.name

    def exports(self) -> dict[str, str]:
        """Return file to sha256 of what a report exports that holds no times."""
        return {
            path.name: hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(self.report.glob("*.csv"))
            if path.is_file()
        }

    def forget_a_run(self) -> None:
        """Remove what is stored of one run, so that a launch trains."""
        for key in stage_keys(STUDY.study.runs()[0].config):
            Store(str(self.mixsweep.home / "store")).delete(key)


def _reseal(path: Path) -> None:
    """Write a manifest or failure as a version two formats on would."""
    content = json.loads(path.read_bytes()) | {"format": 3}
    del content["sha256"]
    text = json.dumps(content, sort_keys=True, separators=(",", ":")).encode()
    path.write_bytes(b'{"sha256":"%s",' % hashlib.sha256(text).hexdigest().encode() + text[1:])


def _add_field(path: Path) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), "format": 2, "cluster": [1]}))


def _move_on(path: Path) -> None:
    """Let a database be one whose schema a later version made."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE alembic_version SET version_num = 'ffffffffffff'")


@dataclass(frozen=True, kw_only=True, slots=True)
class Kind:
    """A kind of file."""

    find: Callable[[Home], Path]
    newer: Damage | None = None
    """What makes it one of a newer format; None where a format has no number."""
    other: Callable[[Home], Path] | None = None
    """Another file of its kind."""
    before: Callable[[Home], None] = lambda home: None
    """What makes a command look at it."""


def _lease(suffix: str) -> Callable[[Home], Path]:
    return lambda home: home.store(f"leases/{STUDY.study.name}{suffix}")


KINDS: Mapping[str, Kind] = {
    "last manifest": Kind(
        find=Home.last_stage, newer=_reseal, other=lambda home: home.last_stage(1)
    ),
    "state": Kind(
        find=lambda home: home.store(f"states/*/{home.last_stage().stem}-*.bin"),
        other=lambda home: home.store(f"states/*/{home.last_stage(1).stem}-*.bin"),
    ),
    "failure": Kind(find=lambda home: home.store("failures/aa01.json"), newer=_reseal),
    "lease": Kind(find=_lease(".json"), newer=_add_field),
    "lock of the lease": Kind(find=_lease(".lock")),
    "progress": Kind(find=_lease(".progress.json"), newer=_add_field),
    "mlflow.db": Kind(
        find=lambda home: home.mixsweep.home / "mlflow.db",
        newer=_move_on,
        other=lambda home: home.mixsweep.home / "optuna.db",
    ),
    "optuna.db": Kind(
        find=lambda home: home.mixsweep.home / "optuna.db",
        newer=_move_on,
        other=lambda home: home.mixsweep.home / "mlflow.db",
    ),
    "decoded data": Kind(
        find=lambda home: next((home.mixsweep.data / "decoded").glob("*.pt")),
        before=Home.forget_a_run,
    ),
    "table of the report": Kind(find=lambda home: home.report / "table.csv"),
    "page of the report": Kind(find=lambda home: home.report / "report.html"),
    "provenance of the report": Kind(find=lambda home: home.report / "provenance.json"),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Cell:
    """A kind of file, a damage and a command."""

    kind: str
    damage: str
    command: str

    def __str__(self) -> str:
        return f"{self.kind}, {self.damage}, {self.command}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Ending:
    """How a command ended, and what it left."""

    code: int | None
    """None: it hung."""
    said: str
    file: Path
    """What was damaged."""
    exports: Mapping[str, str]
    """Of the report, after the command."""


def cells() -> Iterator[Cell]:
    """Yield every cell there is."""
    for kind, made_of in KINDS.items():
        own = [*DAMAGES, *(["newer format"] if made_of.newer else [])]
        for damage in [*own, *(["another of its kind"] if made_of.other else [])]:
            for command in COMMANDS:
                yield Cell(kind=kind, damage=damage, command=command)


def judge(cell: Cell, ending: Ending, sound: Mapping[str, str]) -> str | None:
    """Return what is wrong with how a cell ended; None if nothing is."""
    if ending.code is None:
        return f"hangs: {ending.said[-2000:]}"
    if "Traceback" in ending.said:
        return f"traceback: {ending.said.strip().splitlines()[-1]}"
    is_export = ending.file.name in sound
    rewrites = cell.command in {"run", "report"}
    left = {name: sha256 for name, sha256 in sound.items() if name != ending.file.name}
    expected = sound if (ending.code == 0 and rewrites) or not is_export else left
    changed = {name for name in expected if ending.exports.get(name) != sound[name]}
    if changed:
        return f"exit {ending.code}, and other bytes in {', '.join(sorted(changed))}"
    names = {ending.file.name, ending.file.stem, ending.file.stem.split("-")[0]}
    is_named = any(name in ending.said for name in names)
    # What is not there has no name that the program could know; it names the run instead.
    if ending.code != 0 and not is_named and cell.damage != "missing":
        return f"exit {ending.code}, and the file is not named: {ending.said[-200:]}"
    if ending.code not in {0, 1, 2}:
        return f"exit {ending.code}: {ending.said[-200:]}"
    return None


@dataclass(frozen=True, kw_only=True, slots=True)
class Seen:
    """A cell, and what was seen of it."""

    cell: Cell
    code: int | None
    """None: it hung."""
    wrong: str | None
    seconds: float


@dataclass(kw_only=True)
class Found:
    """What the cells gone through so far showed."""

    cells: int = 0
    endings: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def add(self, seen: Seen) -> None:
        """Count how a cell ended."""
        self.cells += 1
        self.seconds += seen.seconds
        self.endings[f"{seen.cell.command}: {seen.code}"] += 1
        if seen.wrong is not None:
            self.violations.append(f"{seen.cell}: {seen.wrong}")
            print(f"{self.cells}: {self.violations[-1]}", flush=True)  # noqa: T201

    def figures(self, *, of: int) -> dict[str, Any]:
        """Return what is published; there are so many cells in all."""
        return {
            "cells": self.cells,
            "cells_in_all": of,
            "exit_codes": dict(sorted(self.endings.items())),
            "violations": self.violations,
            "minutes": self.seconds / 60,
        }


def main() -> None:
    """Go through the cells and publish what was found; exit 1 if one is wrong or was not seen."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name, known in (("kind", KINDS), ("command", COMMANDS)):
        parser.add_argument(f"--{name}", choices=list(known), action="append")
    parser.add_argument("--damage", action="append")
    parser.add_argument("--sample", type=int, help="that many cells, drawn at random")
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
    if options.sample is not None:
        chosen = random.Random(options.seed).sample(chosen, min(options.sample, len(chosen)))
    found, kept, until = Found(), _kept(), time.monotonic() + 60 * options.minutes
    for cell in chosen:
        if cell in kept:
            found.add(kept[cell])
    left = [cell for cell in chosen if cell not in kept]
    if left:
        _go_through(left, until, found)
    print(f"{found.cells} of {len(chosen)} cells seen")  # noqa: T201
    raise SystemExit(1 if found.violations or found.cells < len(chosen) else 0)


def _title(found: Found) -> str:
    return f"{found.cells} cells of kind of file x damage x command"


def _go_through(cells_left: Sequence[Cell], until: float, found: Found) -> None:
    place, all_cells = Place(), len(list(cells()))
    with Warm.started(_MODES if _is_root() else (), place.folder) as warm:
        sound = _finished(place)
        exports = sound.exports()
        assert exports, "the study wrote no report"
        for number, cell in enumerate(cells_left):
            if time.monotonic() > until:
                break
            started = time.monotonic()
            home = _copied(sound, place, f"{number}")
            ending = _end(cell, home, warm)
            wrong = judge(cell, ending, exports)
            seconds = time.monotonic() - started
            seen = Seen(cell=cell, code=ending.code, wrong=wrong, seconds=seconds)
            _keep(seen)
            found.add(seen)
            shutil.rmtree(home.mixsweep.home.parent)
            if found.cells % _PUBLISHED_EVERY == 0:
                publish("damage", _title(found), found.figures(of=all_cells))
    publish("damage", _title(found), found.figures(of=all_cells))


def _kept() -> dict[Cell, Seen]:
    """Return what was seen of cells at this commit."""
    lines = KEPT.read_text().splitlines() if KEPT.exists() else []
    found = {}
    for commit, cell, code, wrong, seconds in map(json.loads, lines):
        if commit == _commit():
            seen = Seen(cell=Cell(**cell), code=code, wrong=wrong, seconds=seconds)
            found[seen.cell] = seen
    return found


def _keep(seen: Seen) -> None:
    KEPT.parent.mkdir(exist_ok=True)
    content = [_commit(), dataclasses.asdict(seen.cell), seen.code, seen.wrong, seen.seconds]
    with KEPT.open("a") as file:
        file.write(json.dumps(content) + "\n")


@cache
def _commit() -> str:
    """Return the commit, and a name of its own for what no commit holds."""
    code = describe_code()
    is_known = code is not None and not code["dirty"]
    return str(code["commit"]) if code is not None and is_known else f"changed {time.time_ns()}"


def _finished(place: Place) -> Home:
    """Return a home in which the study is finished."""
    folder = place.folder / "sound"
    mixsweep = CommandLine(
        home=folder / "runs", data=folder / "data", extra={}, prefix=_MODES if _is_root() else ()
    )
    mixsweep(*COMMANDS["run"])
    failure = Failure(run_key="aa01", kind="failed", message="of old", epoch=None, attempts=1)
    store = mixsweep.home / "store"
    Store(str(store)).write_failure(failure)
    progress = store / "leases" / f"{STUDY.study.name}.progress.json"
    progress.touch()
    progress.write_text('{"token": 1, "running": [], "updated_at_ms": 0}')
    return Home(mixsweep=mixsweep)


def _copied(sound: Home, place: Place, name: str) -> Home:
    folder = place.folder / name
    shutil.copytree(sound.mixsweep.home.parent, folder)
    moved = dataclasses.replace(sound.mixsweep, home=folder / "runs", data=folder / "data")
    return Home(mixsweep=moved)


def _end(cell: Cell, home: Home, warm: Warm) -> Ending:
    """Damage a file and let a command meet it."""
    kind = KINDS[cell.kind]
    kind.before(home)
    file = kind.find(home)
    match cell.damage:
        case "newer format":
            assert kind.newer is not None
            kind.newer(file)
        case "another of its kind":
            assert kind.other is not None
            shutil.copy(kind.other(home), file)
        case _:
            DAMAGES[cell.damage](file)
    code, said = warm(home.mixsweep, *COMMANDS[cell.command], patience=PATIENCE)
    return Ending(code=code, said=said, file=file, exports=home.exports())


def _is_root() -> bool:
    return os.geteuid() == 0


if __name__ == "__main__":
    main()
