"""Config, Process, DataNeeds: interfaces of a run and its data, and the errors that end a run."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Protocol, runtime_checkable

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


class DivergedError(ArithmeticError):
    """Error: a value, such as the loss, is not finite.

    Training the run again would give the same result.

    Example:
        >>> from mixsweep.plugins import ArrayProcess, DivergedError
        >>> try:
        ...     list(ArrayProcess.of_records(3, lambda epoch: {"loss": float("nan")}))
        ... except DivergedError as error:
        ...     print(error)
        loss must be finite, got (epoch=0, metrics={'loss': nan}).
    """

    def __init__(self, message: str, epoch: int) -> None:
        super().__init__(message)
        self.epoch = epoch
        """Epoch (0-based) in which the value appeared."""

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.epoch)


class DataError(Exception):
    """Error: data are missing, damaged or unexpected. The message names them and the remedy.

    `fields` contains the configuration fields that named the data.

    Example:
        >>> from mixsweep.plugins import DataError
        >>> error = DataError("photos: no folder of this name", fields=("data.folder",))
        >>> str(error), error.fields
        ('photos: no folder of this name', ('data.folder',))
    """

    def __init__(self, message: str, fields: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.fields = fields
        """Dotted paths of these fields, the most likely cause first."""


class StateError(ValueError):
    """Error: stored bytes are not a training state that this run can load.

    Example:
        >>> from mixsweep.plugins import ArrayProcess, StateError
        >>> process = ArrayProcess.of_records(3, lambda epoch: {"loss": 1.0})
        >>> try:
        ...     process.load_bytes(b"no archive", [])
        ... except StateError as error:
        ...     print(error)
        a stored state of 10 bytes is not a readable archive of arrays (ArchiveError).
    """


@dataclass(frozen=True, kw_only=True, slots=True)
class DataSet:
    """A dataset that runs can need, and whether it is on this machine."""

    name: str
    is_present: bool
    place: str
    """Folder of the files (it need not exist), or the package that contains them."""
    num_bytes: int | None
    """Size in memory of all images; None if the dataset is part of another one."""


@dataclass(frozen=True, kw_only=True, slots=True)
class KnownData:
    """Facts about data, such as class names, kept in a store for machines that lack the data."""

    configs: Sequence[Mapping[str, Any]] = ()
    """Prepared configurations of the store's runs: values by dotted path."""
    facts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Facts about data (see `DataNeeds.facts`), by digest of the data."""


class DataNeeds(Protocol):
    """Interface that finds, fetches, describes and checks the datasets of a problem's runs."""

    def sets(self) -> Sequence[DataSet]:
        """Return the datasets that `fetch` can download; this method opens no file."""

    def fetch(self, name: str) -> str:
        """Download a dataset unless it is on this machine; return a text that names the source."""

    def prepare(self, config: Any, folder: Path) -> Any:
        """Fill in the fields of a configuration that describe its data, such as a digest.

        Called for each arm whenever a study file is read, so cache slow results.
        """

    def recall(self, known: Callable[[], KnownData], *, only: bool) -> None:
        """Let `prepare` use facts from a store for configurations whose data are missing."""

    def facts(self, config: Any) -> Mapping[str, Mapping[str, Any]]:
        """Return facts on a configuration's data, such as class names, for `recall` to use."""

    def missing(self, config: Any) -> str | None:
        """Return a message on a configuration's missing data and how to get them, or None."""

    def check(self, config: Any) -> None:
        """Check quickly that a configuration's data can be used; write nothing to disk."""

    def notes(self, config: Any) -> Iterable[str]:
        """Return notes on how a run uses its data, which `mixsweep plan` prints."""

    def open(self, config: Any) -> None:
        """Open a configuration's data as a run does, so that errors appear before the first run.

        Unlike `check`, this method may be slow and may write files that runs then load.
        """

    def checksums(self, config: Any) -> Mapping[str, Mapping[str, str]]:
        """Return the checksum of each file by dataset and file name; empty if data are missing."""
