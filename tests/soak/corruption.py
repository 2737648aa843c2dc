"""Corruption: damaged checkpoints; the run must resume from the one before."""

import argparse
import logging
import os
import random
import shutil
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import torch

from mixup_core.images.choices.models import Mlp
from mixup_core.images.config import TrainConfig
from mixup_core.images.data.data_config import DataConfig
from mixup_core.images.data.datasets import Splits, load
from mixup_core.images.training import TrainingState, fit
from mixup_core.keys import stage_keys
from mixup_core.store.checkpoints import Store
from mixup_core.store.manifests import EpochFacts
from tests.soak.findings import publish
from tests.soak.place import Place
from tests.soak.resuming import resumed

CONFIG = TrainConfig(
    data=DataConfig(name="digits", num_train=128),
    model=Mlp(hidden=(16,)),
    epochs=4,
    batch_size=64,
)
STORED = (1, 2)
"""Epochs with stored stages when a run is resumed; the last one is damaged."""


def cut(path: Path, other: Path, rng: random.Random) -> None:
    """Keep only a part of a file."""
    os.truncate(path, rng.randrange(path.stat().st_size))


def flip(path: Path, other: Path, rng: random.Random) -> None:
    """Change one bit of a file."""
    content = bytearray(path.read_bytes())
    content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    path.write_bytes(content)


def swap(path: Path, other: Path, rng: random.Random) -> None:
    """Replace a file by that of another stage."""
    shutil.copy(other, path)


DAMAGES: tuple[Callable[[Path, Path, random.Random], None], ...] = (cut, flip, swap)


class _Heard(logging.Handler):
    """Collects the messages of the store."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


def main() -> None:
    """Damage checkpoints and publish the result; exit with 1 if any guarantee was broken."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corruptions", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0, help="of the damage")
    options = parser.parse_args()
    rng = random.Random(options.seed)
    torch.set_num_threads(1)
    place = Place()
    data = load(CONFIG.data, place.folder)
    sound = place.folder / "sound"
    final = _train_and_store(data, Store(str(sound)))
    done: Counter[str] = Counter()
    violations: list[str] = []
    heard = _Heard()
    logging.getLogger("mixup_core").addHandler(heard)
    started = time.monotonic()
    for number in range(options.corruptions):
        damage = DAMAGES[number % len(DAMAGES)]
        kind = rng.choice(("stages", "states"))
        store = place.folder / f"store-{number}"
        shutil.copytree(sound, store)
        earlier, newest = (
            next((store / kind).rglob(f"{stage_keys(CONFIG)[epoch - 1]}*")) for epoch in STORED
        )
        heard.lines.clear()
        damage(newest, earlier, rng)
        try:
            _assert_goes_on(data, store, newest.name, final, heard.lines)
            done[f"{damage.__name__} {kind}"] += 1
        except AssertionError as error:
            violations.append(f"{number}: {damage.__name__} {newest.name}: {error}")
        shutil.rmtree(store)
    figures = {
        "corruptions": options.corruptions,
        "named_and_resumed_one_stage_earlier_to_identical_bits": done.total(),
        "by_kind": dict(done),
        "violations": violations,
        "minutes": (time.monotonic() - started) / 60,
        "seed": options.seed,
    }
    publish("corruption", f"{options.corruptions} damaged checkpoints", figures)
    raise SystemExit(1 if violations else 0)


def _train_and_store(data: Splits, store: Store) -> TrainingState:
    """Store the first stages of a run, and return its last state."""
    state = TrainingState.initial(CONFIG, data.info, torch.device("cpu"))
    for record in fit(CONFIG, data, state):
        epochs = record.epoch + 1
        if epochs in STORED:
            store.write(
                stage_keys(CONFIG)[record.epoch],
                records=state.records,
                facts=[EpochFacts(seconds=1.0, stored_at_ms=1)] * epochs,
                environment={},
                state=state.to_bytes(),
            )
    return state


def _assert_goes_on(
    data: Splits, store: Path, damaged: str, final: TrainingState, heard: list[str]
) -> None:
    """Assert that a run detects the damage, reports it, and ends like the undisturbed one."""
    _, training = resumed(CONFIG, data, store)
    assert len(training.records) == STORED[-2], f"resumed at {len(training.records)}"
    assert any(damaged in line and "quarantine" in line for line in heard), heard
    assert (store / "quarantine" / damaged).exists()
    for _ in training:
        pass
    assert training.records == final.records
    assert training.to_bytes() == final.to_bytes()


if __name__ == "__main__":
    main()
