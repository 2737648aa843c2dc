"""Config, Process: the interfaces of a run's configuration and of a run in progress."""

from collections.abc import Iterator
from typing import Annotated, ClassVar, Protocol, runtime_checkable

from mixup_core.config.limits import Range
from mixup_core.records import EpochRecord

MAX_SEED = 2**63 - 1

Seed = Annotated[int, Range(0, MAX_SEED)]
"""Seed of all random draws of a run.

The smallest seed is 0, the largest 2^63 - 1.

Example:
    >>> from mixup_core.images.config import TrainConfig
    >>> TrainConfig(epochs=1, batch_size=8, seed=-1)  # `seed` is a `Seed`
    Traceback (most recent call last):
        ...
    mixup_core.rules.RuleError: `0 <= seed <= 2^63-1` must hold, got (seed=-1).
"""

OneRecord = Annotated[int, Range(1, 1, hint="a run of this problem has a single record")]
"""Type of the field `epochs` for problems that compute everything at once: always 1."""


class Config(Protocol):
    """Interface of the configuration of one run: a tree of frozen dataclasses.

    The configuration, with its seed, determines all numbers of the run.
    """

    problem: ClassVar[str]
    """Name of the problem, a key of `PROBLEMS`."""

    @property
    def epochs(self) -> int:
        """Number of epochs of the run, each of which yields one record; at least 1."""

    @property
    def seed(self) -> int:
        """Seed of all random draws of the run, in 0..2^63-1."""


class Process(Protocol):
    """A run in progress: an iterator of records, one per epoch, that can be stopped and resumed.

    Between two records the state is consistent: the caller may store it, or stop by not requesting
    the next record. Every random draw depends only on the seed, the kind of draw and the epoch,
    so that a process that loads a state yields the same records as one that never stopped, bit for
    bit on the same machine.
    """

    @property
    def records(self) -> list[EpochRecord]:
        """Records of the finished epochs, in order."""

    def __iter__(self) -> Iterator[EpochRecord]:
        """Yield the record of each remaining epoch and append it to `records`."""

    def to_bytes(self) -> bytes:
        """Return the state, as bytes, with which training continues after the last record.

        On a CPU, equal states give equal bytes.
        """

    def load_bytes(self, content: bytes, records: list[EpochRecord]) -> None:
        """Load a state that `to_bytes` returned; take the records of its epochs from `records`."""


class Predicting(Process, Protocol):
    """Interface of a process that can return its logits on the validation and test images.

    `Cost.prediction_bytes` estimates their size.
    """

    def predictions(self) -> bytes:
        """Return the current network's logits on validation and test images, as bytes.

        The bytes are those of `mixup_core.predictions.Predictions.to_bytes`.
        """


@runtime_checkable
class Gradual(Protocol):
    """Interface of a process that reports progress within an epoch, for long epochs."""

    def gradually(self) -> Iterator[EpochRecord | float]:
        """Yield the progress within each remaining epoch, and at its end the record of the epoch.

        Progress is the finished fraction of the epoch: numbers that increase to 1. The caller may
        store the state only after a record, not after a fraction.
        """
