"""Drivers of overlapping studies at once, killed and pruned at random: nothing is trained twice.

Every process that trains writes down each epoch that it trains and each that it has stored. An
epoch counts as trained twice if it was trained after somebody had stored it, or by two processes of
which none was killed.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from mixup_core.store.checkpoints import Store
from mixup_core.store.notes import read_note
from sweeps.leasing.lease import Lease
from tests.soak.findings import publish
from tests.soak.place import Place

_STUDY = """
study: twice-{name}
description: One of several studies that share runs, for the soak; runs share first epochs.
base:
  data: {{name: digits, num_train: 100}}
  model: {{name: mlp, hidden: [8]}}
  epochs: {epochs}
  batch_size: 50
arms: {{uniform: {{mix.law: {{beta: 1.0}}}}}}
grid: {{mix.switch_epoch: [0, 8, 16, 24]}}
seeds: {seeds}
"""
_LOG = "TWICE_LOG"
_HOOK = """
import os, sys
from importlib.abc import MetaPathFinder
class Find(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name != "sweeps.running.inline":
            return None
        sys.meta_path.remove(self)
        import tests.soak.twice
        tests.soak.twice.write_down()
if os.environ.get("TWICE_LOG"):
    sys.meta_path.insert(0, Find())
"""


def write_down() -> None:
    """Let this process write down what it trains and stores."""
    from sweeps.running.storing import Storing

    usual, log = Storing.add, os.open(os.environ[_LOG], os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def add(self: Storing, process: object, seconds: float) -> None:
        time.sleep(0.02)  # an epoch of another size, so that a round meets something
        before = self._num_stored
        epoch = len(process.records)  # type: ignore[attr-defined]
        note = {"pid": os.getpid(), "trained": self._keys[epoch - 1]}
        os.write(log, (json.dumps(note) + "\n").encode())
        usual(self, process, seconds)  # type: ignore[arg-type]
        if self._num_stored > before:
            stored = {"pid": os.getpid(), "stored": self._keys[: self._num_stored]}
            os.write(log, (json.dumps(stored) + "\n").encode())

    Storing.add = add  # type: ignore[method-assign]


@dataclass(kw_only=True)
class Round:
    """One store, some studies, and what was seen."""

    folder: Path
    files: list[Path] = field(default_factory=list)
    killed: set[int] = field(default_factory=set)
    prunes: int = 0

    def start(self, *arguments: str) -> "subprocess.Popen[str]":
        """Start a command on the store of the round."""
        hook = self.folder / "hook"
        paths = [str(hook), str(Path(__file__).parents[2])]
        return subprocess.Popen(
            [sys.executable, "-m", "sweeps.cli", *arguments],
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join(paths),
                "MIXSWEEP_STORE": str(self.folder / "store"),
                _LOG: str(self.folder / "log"),
            },
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def launch(self, number: int) -> "subprocess.Popen[str]":
        """Start the driver of a study, with a home of its own."""
        home = ("--home", str(self.folder / f"home-{number}"))
        return self.start("run", str(self.files[number]), *home, "--engine", "inline")

    def run(self, draw: random.Random, kills: int) -> None:
        """Start all drivers, kill and prune at random, and start again what was killed."""
        drivers = {number: self.launch(number) for number in range(len(self.files))}
        while any(driver.poll() is None for driver in drivers.values()):
            time.sleep(draw.uniform(0.5, 2.0))
            number = draw.randrange(len(drivers))
            if kills and drivers[number].poll() is None and draw.random() < 0.4:
                kills -= 1
                os.kill(drivers[number].pid, signal.SIGKILL)
                drivers[number].wait()
                self.killed.add(drivers[number].pid)
                drivers[number] = self.launch(number)
            elif draw.random() < 0.3 and all(map(self._has_claimed, drivers, drivers.values())):
                self.prunes += 1
                self.start("store", "prune", str(self.files[number]), "--yes").communicate()
        for driver in drivers.values():
            _, said = driver.communicate()
            assert driver.returncode in {0, 3}, said
        for number, driver in drivers.items():
            if driver.returncode:  # a prune had the lease when it began
                again = self.launch(number)
                _, said = again.communicate()
                assert again.returncode == 0, said

    def _has_claimed(self, number: int, driver: "subprocess.Popen[str]") -> bool:
        """Return whether a driver has ended, or has said what it needs: before, nobody can know."""
        if driver.poll() is not None:
            return True
        store, study = Store(str(self.folder / "store")), f"twice-{number}"
        note = read_note(self.folder / "store" / "claims" / f"{study}.json") or {}
        holder = Lease.current(store, study)
        return holder is not None and note.get("token") == holder.token

    def twice(self) -> tuple[int, int, list[str]]:
        """Return the epochs trained, the distinct ones, and what was trained twice."""
        stored: set[str] = set()
        trained: dict[str, list[int]] = defaultdict(list)
        found = []
        for line in (self.folder / "log").read_text().splitlines():
            note = json.loads(line)
            if "stored" in note:
                stored |= set(note["stored"])
                continue
            key, pid = note["trained"], note["pid"]
            if key in stored:
                found.append(f"{key} by {pid} though it was stored")
            elif any(other not in self.killed for other in trained[key]):
                found.append(f"{key} by {pid} and {trained[key]}")
            trained[key].append(pid)
        return sum(map(len, trained.values())), len(trained), found


def made(folder: Path, draw: random.Random) -> Round:
    """Return a round of two to four studies that share runs and first epochs."""
    (folder / "hook").mkdir(parents=True)
    (folder / "hook" / "sitecustomize.py").write_text(_HOOK)
    one = Round(folder=folder)
    for number in range(draw.choice([2, 2, 3, 4])):
        seeds = sorted(draw.sample(range(3), draw.choice([1, 2])))
        text = _STUDY.format(name=number, epochs=24, seeds=seeds)
        one.files.append(folder / f"{number}.yaml")
        one.files[-1].write_text(text)
    return one


def main() -> None:
    """Do the rounds and publish; exit 1 if anything was trained twice."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    draw, until = random.Random(options.seed), time.monotonic() + 60 * options.minutes
    place, rounds, found = Place(), [], []
    while len(rounds) < options.rounds and time.monotonic() < until:
        one = made(place.folder / f"round-{len(rounds)}", draw)
        one.run(draw, kills=draw.choice([0, 1, 2]))
        trained, distinct, twice = one.twice()
        found += [f"round {len(rounds)}: {line}" for line in twice]
        rounds.append((len(one.files), len(one.killed), one.prunes, trained, distinct))
        sys.stdout.write(f"round {len(rounds)}: {rounds[-1]} {twice}\n")
        sys.stdout.flush()
    figures = {
        "rounds": len(rounds),
        "drivers": sum(r[0] for r in rounds),
        "kills": sum(r[1] for r in rounds),
        "prunes": sum(r[2] for r in rounds),
        "epochs_trained": sum(r[3] for r in rounds),
        "epochs_distinct": sum(r[4] for r in rounds),
        "trained_twice": found,
    }
    publish("twice", "Two to four live drivers of overlapping studies, kills and prunes", figures)
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
