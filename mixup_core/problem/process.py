"""Config, Process: what a run is given, and a run under way."""

from collections.abc import Iterator
from typing import Annotated, ClassVar, Protocol, runtime_checkable

from mixup_core.records import EpochRecord
from mixup_core.tree.limits import Range

MAX_SEED = 2**63 - 1

Seed = Annotated[int, Range(0, MAX_SEED)]
"""Names all random draws of a run."""

OneRecord = Annotated[int, Range(1, 1, hint="there is one record")]
"""Epochs of what is computed at once."""


class Config(Protocol):
    """Everything that decides the numbers of one run: a tree of frozen dataclasses."""

    problem: ClassVar[str]
    """Name of the problem, a key of `PROBLEMS`."""

    @property
    def epochs(self) -> int:
        """Number of records of a finished run, at least 1."""

    @property
    def seed(self) -> int:
        """Names all random draws of the run, in 0..2^63-1."""


class Process(Protocol):
    """A run under way. Iterating it goes on after the last record and ends after the last epoch.

    Between two records the state is consistent: the caller reports, stores or stops by not asking
    again. Every draw is named by (seed, purpose, epoch), so that a process that loads a state gives
    the same records, bit for bit on one machine, as one that was never stopped.
    """

    @property
    def records(self) -> list[EpochRecord]:
        """One per finished epoch, epoch 0 first."""

    def __iter__(self) -> Iterator[EpochRecord]:
        """Yield the record of each epoch that is not there yet, also appended to `records`.

        Raises:
            DivergedError: If a value is not finite.
        """

    def to_bytes(self) -> bytes:
        """Return the state that the next epochs need; equal states give equal bytes on a CPU."""

    def load_bytes(self, content: bytes, records: list[EpochRecord]) -> None:
        """Take the state that `to_bytes` wrote and the records that belong to it.

        Raises:
            StateError: If the bytes are no state of this run; this one is then of no use either.
        """


class Predicting(Process, Protocol):
    """A run under way that leaves predictions (`Problem.prediction_bytes`)."""

    def predictions(self) -> bytes:
        """Return the present predictions of the run, as `Predictions.to_bytes` writes them."""


@runtime_checkable
class Gradual(Protocol):
    """A run under way that tells how far it is within an epoch, for those that take long."""

    def gradually(self) -> Iterator[EpochRecord | float]:
        """Yield as a process does when it is iterated, and between records the share that is done.

        Between two records the state is not consistent.
        """
