"""Refused calls: a command goes on, or names the file and a way out."""

import csv
import errno
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.command_server import CommandServer

pytestmark = pytest.mark.timeout(300, func_only=True)

STUDY = """
study: refusals
base: {data: {name: digits}, model: {name: mlp, hidden: [4]}, epochs: 2, batch_size: 64}
arms: {erm: {mix.law: erm}, uniform: {mix.law: {beta: 1.0}}}
seeds: 1
claims:
  - {says: u is lower, source: nobody, that: {less: [uniform, erm], metric: test/error}}
"""
FAULTS = {
    "a lock without a lock server": ("flock", errno.ENOLCK, ""),
    "a lock": ("flock", errno.EOPNOTSUPP, ""),
    "a lock of SQLite": ("fcntl-lock", errno.ENOLCK, ""),
    "syncing a folder": ("fsync-folder", errno.EINVAL, ""),
    "syncing a file": ("fsync", errno.EIO, ""),
    "a hard link": ("link", errno.EPERM, ""),
    "renaming a folder": ("rename-folder", errno.EXDEV, ""),
    "renaming": ("rename", errno.EIO, ""),
    "permissions": ("chmod", errno.EPERM, ""),
    "deleting": ("unlink", errno.EPERM, ""),
    "listing a folder": ("list", errno.EIO, "/runs"),
    "creating beyond a quota": ("create", errno.EDQUOT, ""),
    "writing beyond a quota": ("write", errno.EDQUOT, ""),
    "writing a large state": ("write", errno.EFBIG, "/runs/store/states"),
    "writing a report to a full disk": ("write", errno.ENOSPC, "/runs/reports"),
    "writing a database to a failing disk": ("write", errno.EIO, "/runs/mlflow.db"),
    "any change": ("change", errno.EROFS, ""),
    "any change of a report": ("change", errno.EROFS, "/runs/reports"),
    "opening a stale file": ("open", errno.ESTALE, ""),
    "reading a stale file": ("read", errno.ESTALE, ""),
    "reading a stage from a failing disk": ("read", errno.EIO, "/runs/store/stages"),
    "reading a database from a failing disk": ("read", errno.EIO, "/runs/mlflow.db"),
}
"""Kind of the calls that are refused (see `interposed.c`), their error number, and the folder or
file that is concerned, below the folder of the test."""
INLINE = ("--engine", "inline", "--keep-final-states")
COMMANDS = {
    "run": ("run", "study.yaml", *INLINE, "--set", "base.epochs=3"),
    "run again": ("run", "study.yaml", *INLINE),
    "plan": ("plan", "study.yaml"),
    "status": ("status", "study.yaml"),
    "report": ("report", "study.yaml"),
    "compare": ("report", "study.yaml", "--arms", "uniform", "erm"),
    "export": ("report", "study.yaml", "--epochs", "rows.csv"),
    "prune": ("store", "prune", "study.yaml", "--yes"),
    "verify": ("store", "verify"),
    "sync": ("sync", "study.yaml"),
    "share": ("share", "study.yaml", "--out", "new.zip"),
    "add": ("add", "shared.zip", "--home", "other"),
    "site": ("report", "--out", "site"),
    "stop": ("stop", "refusals"),
}

OFTEN = [
    ("a lock without a lock server", "report"), ("syncing a folder", "run"),
    ("renaming a folder", "run"), ("writing beyond a quota", "run"), ("any change", "report"),
    ("reading a stale file", "status"),
]  # fmt: skip
"""Cells of the matrix that `make faults` checks; `make long` checks all."""
_WAY_OUT = re.compile(
    r"[;:,] .*\b(run|use|give|mount|check|restore|remove|move|name|choose|prune)\b", re.DOTALL
)
_MISTAKE = re.compile("Traceback|an error in mixsweep itself|server is back")


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """Exit code, output and files of a command."""

    code: int
    out: str
    err: str
    made: tuple[tuple[str, str], ...]
    """Names and contents of the tables, lists and archives that it wrote."""


class Place:
    """A folder with a finished study, in which each command finds the same files."""

    def __init__(self, folder: Path, server: CommandServer, library: str) -> None:
        self.folder, self._server = folder, server
        self._log, self._finished = folder.with_suffix(".log"), folder.with_suffix(".finished")
        self._environment = {
            name: value for name, value in os.environ.items() if not name.startswith("MIXSWEEP")
        } | {
            "LD_PRELOAD": library,
            "MIXSWEEP_HOME": str(folder / "runs"),
            "MIXSWEEP_DATA": str(folder / "data"),
            "OMP_NUM_THREADS": "1",
        }
        folder.mkdir()
        os.chdir(folder)
        Path("study.yaml").write_text(STUDY)
        for words in (COMMANDS["run again"], ("share", "study.yaml", "--out", "shared.zip")):
            ended = self.run(words)
            assert ended.code == 0, ended.err
        folder.rename(self._finished)
        self._undisturbed: dict[str, Outcome] = {}

    def fresh(self) -> None:
        os.chdir(self.folder.parent)
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.copytree(self._finished, self.folder, symlinks=True)
        os.chdir(self.folder)
        self._log.unlink(missing_ok=True)

    def run(self, words: Sequence[str], fault: tuple[str, int, str] | None = None) -> Outcome:
        refused = {} if fault is None else {
            "REFUSED": fault[0], "REFUSED_AS": str(fault[1]),
            "REFUSED_BELOW": f"{self.folder}{fault[2]}", "REFUSED_LOG": str(self._log),
        }  # fmt: skip
        code, out, err = self._server.run(words, self._environment | refused)
        return Outcome(code=code, out=out, err=err, made=self._made())

    def undisturbed(self, command: str) -> Outcome:
        if command not in self._undisturbed:
            self.fresh()
            self._undisturbed[command] = self.run(COMMANDS[command])
        return self._undisturbed[command]

    def refused(self) -> list[str]:
        """Return the refused calls, with their paths."""
        return self._log.read_text().splitlines() if self._log.exists() else []

    def names(self) -> set[str]:
        """Return the relative paths of the files of refused calls, and of their folders."""
        paths = [Path(line.partition(" ")[2]) for line in self.refused()]
        inside = [each for path in paths for each in (path, *path.parents)]
        return {
            str(each.relative_to(self.folder)) for each in inside if self.folder in each.parents
        }

    def _made(self) -> tuple[tuple[str, str], ...]:
        return tuple(
            (str(path.relative_to(self.folder)), _told(path) if path.suffix == ".csv" else "")
            for path in sorted(self.folder.rglob("*"))
            if path.name in {"runs.csv", "rows.csv", "new.zip", "index.html", "report.html"}
            and "artifacts" not in path.parts  # MLflow names a folder at random
        )


def _told(table: Path) -> str:
    """Return the columns of a table that are equal each time."""
    rows = csv.DictReader(table.read_text().splitlines())
    names = ("run_key", "arm", "epoch", "outcome", "val/error", "test/error")
    return repr([[row.get(name) for name in names] for row in rows])


def _lasting(out: str) -> list[str]:
    """Return the printed lines without those about free memory, which differ each time."""
    return [line for line in out.splitlines() if not line.startswith("memory ")]


@pytest.fixture(scope="module")
def place(interposed: str) -> Iterator[Place]:
    before = Path.cwd()
    with tempfile.TemporaryDirectory(prefix="refusals-") as name, CommandServer() as server:
        yield Place(Path(name) / "place", server, interposed)
        os.chdir(before)


def problems(place: Place, fault: str, command: str) -> list[str]:
    """Return the problems of a command whose calls are refused."""
    wanted = place.undisturbed(command)
    assert wanted.code == 0, wanted.err
    place.fresh()
    found = place.run(COMMANDS[command], FAULTS[fault])
    wrong = ["prints an internal error"] if _MISTAKE.search(found.out + found.err) else []
    if found.code == 0:
        if (_lasting(found.out), found.made) != (_lasting(wanted.out), wanted.made):
            wrong.append("gives other results")
    else:
        if found.code not in {1, 2} or not place.refused():
            wrong.append(f"ends with {found.code}")
        if not any(name in found.err for name in place.names()):
            wrong.append("names no path")
        if not _WAY_OUT.search(found.err):
            wrong.append("names no way out")
        again = place.run(COMMANDS[command])
        if (again.code, again.made) != (wanted.code, wanted.made):
            wrong.append(f"leaves what ends the same command: {again.err}")
    calls = "\n".join(sorted(set(place.refused()))[:4])
    head = f"{fault}, {command} ({found.code})"
    return wrong and [f"{head}: {', '.join(wrong)}\n{found.out[-300:]}{found.err}{calls}\n"]


@pytest.mark.parametrize(("fault", "command"), OFTEN)
def test_a_command_succeeds_without_a_call_or_prints_the_path_and_advice(
    place: Place, fault: str, command: str
) -> None:
    assert problems(place, fault, command) == []
    assert place.refused()


@pytest.mark.long
@pytest.mark.parametrize("fault", FAULTS)
def test_every_command_succeeds_without_a_call_or_prints_the_path_and_advice(
    place: Place, fault: str
) -> None:
    wrong, refused = [], 0
    for command in COMMANDS:
        wrong += problems(place, fault, command)
        refused += len(place.refused())
    assert wrong == [], "\n".join(wrong)
    assert refused
