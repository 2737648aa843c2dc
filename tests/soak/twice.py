"""Twice: drivers of overlapping studies, killed and joined at random; no epoch is trained twice.

The studies of a round share seeds and first epochs, but their runs differ in where they fork.
"""

import argparse
import os
import random
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from mixup_core.store.checkpoints import Store
from sweeps.leasing.lease import Lease
from tests.soak.epochs_log import EpochsLog
from tests.soak.findings import publish
from tests.soak.place import Place

NAP = 0.02
"""Seconds by which each epoch takes longer, so that launches overlap."""
Driver = subprocess.Popen[bytes]
STUDY = """
study: twice-{name}
description: One of several studies that share runs, which share first epochs too.
base:
  data: {{name: digits, num_train: 100}}
  model: {{name: mlp, hidden: [8]}}
  epochs: {epochs}
  batch_size: 50
arms: {{uniform: {{mix.law: {{beta: 1.0}}}}}}
grid: {{mix.switch_epoch: {switches}}}
seeds: {seeds}
"""


@dataclass(kw_only=True)
class Round:
    """One store, some studies, and the result."""

    folder: Path
    files: list[Path] = field(default_factory=list)
    launches: int = 0
    killed: set[str] = field(default_factory=set)
    prunes: int = 0
    names: dict[int, str] = field(default_factory=dict)

    @property
    def log(self) -> EpochsLog:
        """Every epoch of the round."""
        return EpochsLog(folder=self.folder)

    def start(self, *arguments: str) -> Driver:
        """Start a command on the store of the round."""
        self.launches += 1
        variables = {
            **os.environ,
            "MIXSWEEP_STORE": str(self.folder / "store"),
            **self.log.variables(f"{self.launches}", nap=NAP),
        }
        with self.said_by(f"{self.launches}").open("wb") as said:
            command = [sys.executable, "-m", "mixsweep", *arguments]
            return subprocess.Popen(command, env=variables, stdout=subprocess.DEVNULL, stderr=said)

    def said_by(self, launch: str) -> Path:
        """Return the file to which a launch writes its standard error."""
        return self.folder / f"launch-{launch}.txt"

    def launch(self, number: int) -> Driver:
        """Start the driver of a study, with its own home."""
        home = ("--home", str(self.folder / f"home-{number}"))
        process = self.start("run", str(self.files[number]), *home, "--engine", "inline")
        self.names[number] = f"{self.launches}"
        return process

    def run(self, draw: random.Random, kills: int) -> None:
        """Start the drivers one after another, kill and prune, and restart killed ones."""
        drivers = {0: self.launch(0)}
        while len(drivers) < len(self.files) or any(d.poll() is None for d in drivers.values()):
            time.sleep(draw.uniform(0.5, 2.0))
            if len(drivers) < len(self.files) and draw.random() < 0.5:
                drivers[len(drivers)] = self.launch(len(drivers))
            number = draw.randrange(len(drivers))
            if kills and drivers[number].poll() is None and draw.random() < 0.4:
                kills -= 1
                drivers[number].kill()
                drivers[number].wait()
                self.killed.add(self.names[number])
                drivers[number] = self.launch(number)
            elif draw.random() < 0.3 and all(map(self._has_claimed, drivers, drivers.values())):
                self.prunes += 1
                self.start("store", "prune", str(self.files[number]), "--yes").wait()
        for number, driver in drivers.items():
            code, launch = driver.wait(), self.names[number]
            assert code in {0, 3}, self.said_by(launch).read_text()
            if code:  # a prune had the lease when it began
                again = self.launch(number)
                assert again.wait() == 0, self.said_by(self.names[number]).read_text()

    def _has_claimed(self, number: int, driver: Driver) -> bool:
        """Return whether a driver has ended, or has recorded what it needs."""
        if driver.poll() is not None:
            return True
        store, study = Store(str(self.folder / "store")), f"twice-{number}"
        holder = Lease.current(store, study)
        names = store.files.names("claims")
        return any(holder and name.endswith(f".{study}.{holder.token}") for name in names)


def made(folder: Path, draw: random.Random) -> Round:
    """Return a round of two to four studies that share runs and first epochs."""
    folder.mkdir(parents=True)
    one = Round(folder=folder)
    for number in range(draw.choice([2, 2, 3, 4])):
        text = STUDY.format(
            name=number,
            epochs=draw.choice([24, 24, 18]),
            switches=sorted(draw.sample([0, 3, 6, 9, 12, 15, 18], draw.randint(2, 4))),
            seeds=sorted(draw.sample(range(3), draw.choice([1, 2]))),
        )
        one.files.append(folder / f"{number}.yaml")
        one.files[-1].write_text(text)
    return one


def seen(number: int, seed: int, place: Place) -> dict[str, Any]:
    """Return the result of a round."""
    draw, started = random.Random(f"{seed} {number}"), time.monotonic()
    one = made(place.folder / f"round-{number}", draw)
    one.run(draw, kills=draw.choice([0, 1, 2]))
    counts = {"drivers": len(one.files), "kills": len(one.killed), "prunes": one.prunes}
    counted = asdict(one.log.count(one.killed))
    return {**counts, **counted, "minutes": (time.monotonic() - started) / 60}


def main() -> None:
    """Run the rounds and publish; exit with 1 if anything was trained twice."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    until, place, rounds = time.monotonic() + 60 * options.minutes, Place(), []
    while len(rounds) < options.rounds and time.monotonic() < until:
        rounds.append(seen(len(rounds), options.seed, place))
        sys.stdout.write(f"round {len(rounds)}: {rounds[-1]}\n")
        sys.stdout.flush()
    numbers = ("drivers", "kills", "prunes", "trained", "distinct", "minutes")
    twice = [f"round {n}: {line}" for n, r in enumerate(rounds, 1) for line in r["twice"]]
    figures = {
        "rounds": len(rounds),
        **{name: sum(r[name] for r in rounds) for name in numbers},
        "twice": twice,
    }
    publish("twice", "Two to four drivers of overlapping studies, joins, kills, prunes", figures)
    sys.exit(bool(twice))


if __name__ == "__main__":
    main()
