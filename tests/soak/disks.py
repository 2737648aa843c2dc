"""Disks that become full at a random byte of a random epoch; then the same run with free space.

A run is trained in this process as a trial trains it; a few whole launches are tested too.
"""

import argparse
import os
import random
import shutil
import subprocess
import time
from collections import Counter
from pathlib import Path

import torch

from mixup_core.images.choices.models import Mlp
from mixup_core.images.config import TrainConfig
from mixup_core.images.data.data_config import DataConfig
from mixup_core.images.data.datasets import Splits, load
from mixup_core.images.training import TrainingState, fit
from mixup_core.records import EpochRecord
from mixup_core.store.checkpoints import Store
from mixup_core.store.errors import StoreFullError
from sweeps.running.storing import STORE_AT_LEAST_EVERY
from tests.faults.invariants import Facts, assert_nothing_was_lost, assert_store_is_whole
from tests.faults.launches import TWO_LAWS, Launch
from tests.soak.findings import publish
from tests.soak.place import Place
from tests.soak.resuming import resumed

CONFIG = TrainConfig(
    data=DataConfig(name="digits", num_train=128),
    model=Mlp(hidden=(32,)),
    epochs=6,
    batch_size=64,
)
SPARE_BYTES = 8192
"""Largest free space beside a state, so that sometimes the state fits and its manifest does not."""
LAUNCH_KIB = (1500, 3000)
"""Size of the disk of a launch; a state takes about 600 KiB, and two slots keep two states each."""
ENOUGH_KIB = 100_000

Reference = list[tuple[list[EpochRecord], bytes]]
"""Records and state of an undisturbed run after each number of epochs."""


def main() -> None:
    """Fill disks and publish the result; exit with 1 if any guarantee was broken."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fillings", type=int, default=50)
    parser.add_argument("--launches", type=int, default=3, help="whole launches beside them")
    parser.add_argument("--seed", type=int, default=0, help="of the moments and sizes")
    options = parser.parse_args()
    rng = random.Random(options.seed)
    torch.set_num_threads(1)
    place = Place()
    started = time.monotonic()
    violations: list[str] = []
    met = _fill_often(place, options.fillings, rng, violations)
    launches = _launch(place, options.launches, rng, violations) if options.launches else 0
    figures = {
        "fillings": met.total(),
        "by_epoch_that_was_being_stored": {str(epoch): met[epoch] for epoch in sorted(met)},
        "launches_that_met_a_full_disk": launches,
        "identical_to_undisturbed": met.total() + launches - len(violations),
        "violations": violations,
        "minutes": (time.monotonic() - started) / 60,
        "seed": options.seed,
    }
    publish("disks", f"A full disk at a random moment, {met.total() + launches} times", figures)
    raise SystemExit(1 if violations else 0)


def _fill_often(
    place: Place, fillings: int, rng: random.Random, violations: list[str]
) -> Counter[int]:
    """Train a run until the disk is full and again with space; count by epoch."""
    data = load(CONFIG.data, place.folder)
    reference = _undisturbed(data)
    disk = place.folder / "disk"
    disk.mkdir()
    _mount(disk, "size=4m")
    met: Counter[int] = Counter()
    while met.total() < fillings:
        store = disk / f"store-{met.total()}"
        full_at = rng.randint(1, CONFIG.epochs)
        room = rng.randrange(len(reference[full_at][1]) + SPARE_BYTES)
        try:
            stored = _train_until_full(data, store, full_at, room)
            if stored is not None:
                met[stored + 1] += 1
                _assert_goes_on(data, store, stored, reference)
        except AssertionError as error:
            violations.append(f"{room} bytes free at epoch {full_at}: {error}")
        shutil.rmtree(store, ignore_errors=True)
    return met


def _undisturbed(data: Splits) -> Reference:
    state = TrainingState.initial(CONFIG, data.info, torch.device("cpu"))
    reference: Reference = [([], state.to_bytes())]
    reference.extend((list(state.records), state.to_bytes()) for _ in fit(CONFIG, data, state))
    return reference


def _train_until_full(data: Splits, store: Path, full_at: int, room: int) -> int | None:
    """Leave `room` bytes when epoch `full_at` is stored; return the epochs stored before.

    The result is None if the rest of the run did fit.
    """
    storing, training = resumed(CONFIG, data, store)
    filler = store.parent / "filler"
    stored = 0
    said = None
    for _ in training:
        if len(training.records) == full_at:
            _fill(filler, room)
        try:
            storing.add(training, STORE_AT_LEAST_EVERY)
        except StoreFullError as error:
            said = str(error)
            break
        stored += len(storing.take_rows())
    filler.unlink()
    assert said is None or said.startswith("disk full: "), said
    return None if said is None else stored


def _assert_goes_on(data: Splits, store: Path, stored: int, reference: Reference) -> None:
    """Assert that stored stages load, and that the run ends like the undisturbed one."""
    storing, training = resumed(CONFIG, data, store)
    assert len(training.records) == stored, f"{len(training.records)} epochs of {stored}"
    assert not Store(str(store)).quarantined(), "something was damaged"
    if stored:
        assert (training.records, training.to_bytes()) == reference[stored], "another state"
    for _ in training:
        storing.add(training, STORE_AT_LEAST_EVERY)
    assert (training.records, training.to_bytes()) == reference[-1], "another end"
    _, final = resumed(CONFIG, data, store)
    assert final.records == reference[-1][0], "the end is not stored"
    assert_store_is_whole(store)


def _fill(filler: Path, room: int) -> None:
    """Fill a disk except for some bytes, rounded down to whole blocks."""
    filler.touch()
    free = os.statvfs(filler.parent)
    size = free.f_bavail * free.f_frsize - room
    if size > 0:
        with filler.open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, size)


def _launch(place: Place, launches: int, rng: random.Random, violations: list[str]) -> int:
    """Launch a study on a disk that is too small, then with space; return how often it was full."""
    undisturbed = place.home("undisturbed")
    with Launch(undisturbed, TWO_LAWS) as launch:
        launch.end(0)
    met = 0
    for number in range(launches):
        disk = place.folder / f"disk-{number}"
        disk.mkdir()
        mixsweep = place.home(f"home-{number}")
        _mount(disk, f"size={rng.randint(*LAUNCH_KIB)}k")
        try:
            with Launch(mixsweep, TWO_LAWS, "--store", str(disk)) as launch:
                assert "disk full" in launch.end(1).stderr
            met += 1
            acknowledged = _still_loads(disk)
            _mount(disk, f"remount,size={ENOUGH_KIB}k")
            with Launch(mixsweep, TWO_LAWS, "--store", str(disk)) as launch:
                launch.end(0)
            assert_nothing_was_lost(
                TWO_LAWS, mixsweep, undisturbed, acknowledged=acknowledged, store=disk
            )
        except AssertionError as error:
            violations.append(f"launch {number}: {error}")
    return met


def _still_loads(disk: Path) -> Facts:
    """Assert that every stored state loads, and return what is stored."""
    store = Store(str(disk))
    for stage in store.stages():
        is_sound = stage.state is None or store.states.read(stage) is not None
        assert is_sound, f"{stage.key} is damaged"
    return TWO_LAWS.acknowledged(disk)


def _mount(disk: Path, options: str) -> None:
    command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(disk)]
    subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
