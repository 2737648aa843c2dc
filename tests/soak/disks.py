"""Disks that fill up in the middle of a launch, again and again, until there is space."""

import argparse
import random
import subprocess
import time
from pathlib import Path

from mixup_core.checkpoints import Store
from mixup_core.config import stage_keys
from tests.conftest import CommandLine
from tests.faults.invariants import Facts, assert_nothing_was_lost
from tests.faults.launches import TWO_LAWS, Launch
from tests.soak.findings import publish
from tests.soak.place import Place

FIRST_KIB = (300, 1500)
"""Size of the disk at the first launch, in KiB: a state takes about 600."""
MORE_KIB = (50, 500)
"""What each later launch finds more."""
ENOUGH_KIB = 100_000


def main() -> None:
    """Fill disks and publish what was found; exit 1 if any promise was broken."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fillings", type=int, default=50, help="at least")
    parser.add_argument("--seed", type=int, default=0, help="of the sizes")
    options = parser.parse_args()
    rng = random.Random(options.seed)
    place = Place()
    undisturbed = place.home("undisturbed")
    with Launch(undisturbed, TWO_LAWS) as launch:
        launch.end(0)
    fillings = studies = 0
    violations: list[str] = []
    started = time.monotonic()
    while fillings < options.fillings:
        studies += 1
        disk = place.folder / f"disk-{studies}"
        disk.mkdir()
        mixsweep = place.home(f"home-{studies}")
        size = rng.randint(*FIRST_KIB)
        _mount(disk, f"size={size}k")
        acknowledged: Facts = {}
        try:
            while fillings < options.fillings and _fills(mixsweep, disk):
                fillings += 1
                acknowledged = _still_loads(disk, acknowledged)
                size += rng.randint(*MORE_KIB)
                _mount(disk, f"remount,size={size}k")
            _mount(disk, f"remount,size={ENOUGH_KIB}k")
            with Launch(mixsweep, TWO_LAWS, "--store", str(disk)) as launch:
                launch.end(0)
            assert_nothing_was_lost(
                TWO_LAWS, mixsweep, undisturbed, acknowledged=acknowledged, store=disk
            )
        except AssertionError as error:
            violations.append(f"study {studies}: {error}")
    figures = {
        "fillings": fillings,
        "studies": studies,
        "studies_identical_to_undisturbed": studies - len(violations),
        "violations": violations,
        "minutes": (time.monotonic() - started) / 60,
        "seed": options.seed,
    }
    publish("disks", f"A full disk at a random moment, {fillings} times", figures)
    raise SystemExit(1 if violations else 0)


def _fills(mixsweep: CommandLine, disk: Path) -> bool:
    """Launch, and return whether the disk was too small; the launch must have said so."""
    with Launch(mixsweep, TWO_LAWS, "--store", str(disk)) as launch:
        _, said = launch.process.communicate(timeout=240)
    if launch.process.returncode == 0:
        return False
    assert launch.process.returncode == 1, f"exit {launch.process.returncode}: {said}"
    assert "disk full" in said, said
    return True


def _still_loads(disk: Path, before: Facts) -> Facts:
    """Assert that what was stored before a filling still loads, and return what is stored now."""
    store = Store(str(disk))
    for stage in store.stages():
        assert stage.state is None or store.read_state(stage) is not None, f"{stage.key} is damaged"
    now = TWO_LAWS.acknowledged(disk)
    for key, facts in before.items():
        assert now[key][: len(facts)] == facts, "stored epochs are gone"
    states = store.keys()
    for run in TWO_LAWS.study.runs():
        keys = stage_keys(run.config)
        deepest = len(now[run.key])
        assert deepest in {0, len(keys)} or states[keys[deepest - 1]], "the newest state is gone"
    return now


def _mount(disk: Path, options: str) -> None:
    command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(disk)]
    subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
