"""TOY: a test problem without torch or data, whose runs may learn from each other."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar

from mixup_core.problem import (
    Axis,
    Keying,
    Metric,
    Problem,
    Reading,
    Searching,
    StateError,
    Teacher,
    Teaching,
)
from mixup_core.records import EpochRecord
from mixup_core.rules import require
from mixup_core.seeding import stream


@dataclass(frozen=True, kw_only=True, slots=True)
class ToyConfig:
    """A random walk with drift, which may start where another walk ended."""

    problem: ClassVar = "toy"

    epochs: int
    drift: float = 0.0
    """Value added in each epoch before `turn`."""
    turn: int | None = None
    """First epoch without drift; None: the drift never ends."""
    teacher: str | None = None
    """Arm whose final value is the start of this one."""
    teacher_key: str | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        """Check the range.

        Raises:
            RuleError: If there are no epochs.
        """
        require(self.epochs >= 1, "epochs >= 1", self, "epochs")


@dataclass(kw_only=True)
class Walk:
    """A running random walk."""

    config: ToyConfig
    value: float
    records: list[EpochRecord] = field(default_factory=list)

    def __iter__(self) -> Iterator[EpochRecord]:
        for epoch in range(len(self.records), self.config.epochs):
            step = stream(self.config.seed, "mixing", epoch).random()
            self.value += step + _drift(self.config, epoch)
            record = EpochRecord(epoch=epoch, metrics={"val/place": self.value})
            self.records.append(record)
            yield record

    def to_bytes(self) -> bytes:
        return json.dumps(self.value).encode()

    def load_bytes(self, content: bytes, records: list[EpochRecord]) -> None:
        try:
            self.value = float(json.loads(content))
        except ValueError as error:
            raise StateError("`a state is a number` must hold") from error
        self.records = list(records)


def start(
    config: ToyConfig, data_root: Path | None, device: str, teacher: Teacher | None = None
) -> Walk:
    del data_root, device
    return Walk(config=config, value=0.0 if teacher is None else float(json.loads(teacher.state)))


def _drift(config: ToyConfig, epoch: int) -> float:
    return config.drift if config.turn is None or epoch < config.turn else 0.0


TOY = Problem(
    name="toy",
    title="a random walk",
    config=ToyConfig,
    process="tests.toy:start",
    metrics={"val/place": Metric(label="place", unit="m")},
    headline=("val/place",),
    axis=Axis(label="steps", unit="step"),
    searching=Searching(objectives=("val/place",)),
    reading=Reading(reserved={"seed": "give `seeds`", "teacher_key": "it is filled in"}),
    keying=Keying(
        never={"teacher": "`teacher_key` enters in its place."},
        by_epoch=dict.fromkeys(("drift", "turn"), "The drift of each epoch enters instead."),
        of_epoch=_drift,
    ),
    teaching=Teaching(
        arm=lambda config: config.teacher,
        taught=lambda config, key: replace(config, teacher_key=key),
    ),
)
