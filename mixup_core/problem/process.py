"""Config, Process: the configuration of a run, and a run in progress."""

from collections.abc import Iterator
from typing import Annotated, ClassVar, Protocol, runtime_checkable

from mixup_core.records import EpochRecord
from mixup_core.tree.limits import Range

MAX_SEED = 2**63 - 1

Seed = Annotated[int, Range(0, MAX_SEED)]
"""Seed of all random draws of a run."""

OneRecord = Annotated[int, Range(1, 1, hint="there is one record")]
"""Epochs of a problem that computes everything at once."""


class Config(Protocol):
    """The configuration of one run, which decides all its numbers: a tree of frozen dataclasses."""

    problem: ClassVar[str]
    """Name of the problem, a key of `PROBLEMS`."""

    @property
    def epochs(self) -> int:
        """Number of records of a finished run, at least 1."""

    @property
    def seed(self) -> int:
        """Seed of all random draws of the run, in 0..2^63-1."""


class Process(Protocol):
    """A run in progress: an iterator of records, one per epoch, that can be stopped and resumed.

    Between two records the state is consistent: the caller reports or stores it, or stops by not
    asking for the next record. Every random draw depends only on (seed, purpose, epoch), so that a
    process that loads a state yields the same records as one that never stopped, bit for bit on the
    same machine.
    """

    @property
    def records(self) -> list[EpochRecord]:
        """Records of the finished epochs, in order."""

    def __iter__(self) -> Iterator[EpochRecord]:
        """Yield the record of each remaining epoch and append it to `records`.

        Raises:
            DivergedError: If a value is not finite.
        """

    def to_bytes(self) -> bytes:
        """Return the state that the next epochs need. On a CPU, equal states give equal bytes."""

    def load_bytes(self, content: bytes, records: list[EpochRecord]) -> None:
        """Load a state written by `to_bytes`, with the records up to it.

        Raises:
            StateError: If the bytes are not a state of this run. This process must not be used
                then.
        """


class Predicting(Process, Protocol):
    """A process that can store predictions (`Problem.prediction_bytes`)."""

    def predictions(self) -> bytes:
        """Return the current predictions of the run, in the format of `Predictions.to_bytes`."""


@runtime_checkable
class Gradual(Protocol):
    """A process that reports progress within an epoch, for long epochs."""

    def gradually(self) -> Iterator[EpochRecord | float]:
        """Yield records as iteration does, and between them the finished fraction of the epoch.

        After a fraction, the state is not consistent.
        """
