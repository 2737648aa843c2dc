"""Endings: exit code, hook and report of a launch, whatever its output streams are.

Each cell is a launch with one state of standard output, one of standard error, and one outcome.
"""

import argparse
import itertools
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Literal

from mixup_core.store.checkpoints import Store
from sweeps.leasing.lease import Lease
from tests.soak.findings import publish
from tests.soak.place import Place
from tests.soak.warm import Forked, Warm

Stream = Literal["open", "closed", "gone", "gone after a line", "full", "latin-1"]
Outcome = Literal["done", "failed", "bad input", "busy", "interrupted"]
STREAMS: tuple[Stream, ...] = ("open", "closed", "gone", "gone after a line", "full", "latin-1")
CODES: Mapping[Outcome, int] = {
    "done": 0, "failed": 1, "bad input": 2, "busy": 3, "interrupted": 130,
}  # fmt: skip
INTERPRETED: Outcome = "bad input"
"""Outcome of the launches that start an interpreter; all other launches are forks of one."""
PATIENCE = 240.0
_SIDE_BY_SIDE = 3
"""Number of launches at a time; they mostly wait."""
_FAULTS = Path(__file__).parents[1] / "faults"
_FAILING = """
study: failing
description: A study whose only run diverges.
base:
  data: {name: digits, num_train: 100}
  model: {name: mlp, hidden: [8]}
  optimizer: {name: sgd, lr: 1000, weight_decay: 1.0e+30}
  epochs: 4
  batch_size: 50
arms: {erm: {mix.law: erm}}
seeds: 1
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Cell:
    """One launch."""

    stdout: Stream
    stderr: Stream
    outcome: Outcome

    def __str__(self) -> str:
        return f"{self.outcome}, stdout {self.stdout}, stderr {self.stderr}"


def cells() -> Iterator[Cell]:
    """Yield every combination."""
    for stdout, stderr, outcome in itertools.product(STREAMS, STREAMS, CODES):
        yield Cell(stdout=stdout, stderr=stderr, outcome=outcome)


@dataclass(kw_only=True)
class _Streams:
    """The two output streams of a process, and the text that could be read from them."""

    cell: Cell
    readers: dict[int, int] = field(default_factory=dict)
    writers: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Open the streams."""
        for number, state in ((1, self.cell.stdout), (2, self.cell.stderr)):
            if state == "full":
                self.writers[number] = os.open("/dev/full", os.O_WRONLY)
            elif state != "closed":
                self.readers[number], self.writers[number] = os.pipe()
                if state == "gone":
                    os.close(self.readers.pop(number))

    def started(
        self, arguments: list[str], variables: Mapping[str, str], warm: Warm
    ) -> "subprocess.Popen[bytes] | Forked":
        """Start the command with these streams."""
        latin = {"PYTHONIOENCODING": "latin-1"} if "latin-1" in self._states else {}
        environment = {**os.environ, **latin, **variables}
        if self.cell.outcome == INTERPRETED:
            process = self._interpreted(arguments, environment)
        else:
            process = warm.start(arguments, environment, streams=self.writers)
        for writer in self.writers.values():
            os.close(writer)
        return process

    def _interpreted(
        self, arguments: list[str], environment: Mapping[str, str]
    ) -> "subprocess.Popen[bytes] | Forked":
        shell = 'exec "$0" "$@"'
        for number in (1, 2):
            shell += f" {number}>&-" if number not in self.writers else ""
        return subprocess.Popen(
            ["sh", "-c", shell, sys.executable, "-m", "mixsweep", *arguments],
            stdin=subprocess.DEVNULL, stdout=self.writers.get(1), stderr=self.writers.get(2),
            env=environment, start_new_session=True,
        )  # fmt: skip

    @property
    def _states(self) -> tuple[Stream, Stream]:
        return self.cell.stdout, self.cell.stderr

    def read(self) -> str:
        """Return the output until the end, or until the reader leaves after a line."""
        said = b""
        for number, reader in self.readers.items():
            with open(reader, "rb") as file:  # noqa: PTH123  a number
                leaves = self._states[number - 1] == "gone after a line"
                said += file.readline() if leaves else file.read()
        return said.decode(errors="replace")


def wrong_of(cell: Cell, folder: Path, warm: Warm) -> list[str]:
    """Return what was wrong with a launch.

    Args:
        cell: The launch.
        folder: An empty folder, for its home and its temporary files.
        warm: Starts commands in forks.
    """
    home, told, place = folder / "runs", folder / "told", folder / "tmp"
    place.mkdir(parents=True)
    arguments, study = _launch(cell.outcome, folder)
    variables = {"MIXSWEEP_HOME": str(home), "TMPDIR": str(place)}
    hook = ["--on-finish", f"echo $MIXSWEEP_EXIT_CODE > {told}"]
    streams = _Streams(cell=cell)
    with ExitStack() as held:
        if cell.outcome == "busy":
            held.enter_context(Lease.acquire(Store(str(home / "store")), study, "another driver"))
        process = streams.started([*arguments, *hook], variables, warm)
        if cell.outcome == "interrupted":
            _interrupt(process, home)
        said = streams.read()
        code = process.wait(timeout=PATIENCE)
    is_reported = (home / "reports" / study / "report.html").exists()
    heard = told.read_text().strip() if told.exists() else "nothing"
    expected = CODES[cell.outcome]
    return [
        f"{cell}: {problem}"
        for problem, is_so in {
            f"exit {code}, not {expected}": code != expected,
            f"the hook heard {heard}": heard != str(expected),
            f"a report: {is_reported}": is_reported != (cell.outcome in {"done", "failed"}),
            f"a traceback: {said}": "Traceback" in said,
            "an error in mixsweep itself": any(place.glob("mixsweep-error-*")),
        }.items()
        if is_so
    ]


def _launch(outcome: Outcome, folder: Path) -> tuple[list[str], str]:
    """Return the arguments of a launch with the given outcome, and the name of its study."""
    inline = ["--engine", "inline"]
    if outcome == "failed":
        file = folder / "failing.yaml"
        file.write_text(_FAILING)
        return ["run", str(file), *inline], "failing"
    if outcome == "interrupted":
        longer = ["--set", "base.epochs=2000", "--set", "base.hidden=1024"]
        return ["run", str(_FAULTS / "line.yaml"), *longer, *inline], "line"
    short = ["--set", "seeds=1", "--set", "base.draws=1000"]
    engine = ["--address", "junk"] if outcome == "bad input" else inline
    return ["run", str(_FAULTS / "closed-form.yaml"), *short, *engine], "closed-form"


def _interrupt(process: "subprocess.Popen[bytes] | Forked", home: Path) -> None:
    """Send SIGINT to a launch once it has stored a stage."""
    give_up_at = time.monotonic() + PATIENCE
    while not any((home / "store").glob("stages/*/*.json")):
        if process.poll() is not None or time.monotonic() > give_up_at:
            return
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)


def main() -> None:
    """Try all cells and publish; exit with 1 if an ending was wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=90)
    started = time.monotonic()
    until = started + 60 * parser.parse_args().minutes
    place, wrong, num_cells = Place(), list[str](), 0

    def tried(cell: Cell, warm: Warm) -> list[str] | None:
        if time.monotonic() > until:
            return None
        folder = Path(tempfile.mkdtemp(dir=place.folder))
        found = wrong_of(cell, folder, warm)
        shutil.rmtree(folder)
        return found

    with Warm.started() as warm, ThreadPoolExecutor(_SIDE_BY_SIDE) as pool:
        for found in pool.map(partial(tried, warm=warm), cells()):
            if found is not None:
                num_cells += 1
                wrong += found
                sys.stdout.write("".join(f"{line}\n" for line in found) or ".")
                sys.stdout.flush()
    figures = {
        "launches": num_cells,
        "of": sum(1 for _ in cells()),
        "violations": wrong,
        "minutes": (time.monotonic() - started) / 60,
    }
    publish("endings", "Launches by the state of both streams and the outcome", figures)
    print("\n".join(wrong) or "every promise was kept")  # noqa: T201
    raise SystemExit(1 if wrong else 0)


if __name__ == "__main__":
    main()
