"""EpochRecord: the metrics of one epoch. Records: all those of a run, packed in little memory."""

from abc import abstractmethod
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, chain
from operator import eq
from typing import Any, TypeVar, overload

AVERAGED = "_averaged"
"""Suffix of the names of metrics and logits that were computed with averaged weights."""

_Value = TypeVar("_Value")
_Number = TypeVar("_Number", int, float)


class Packed(Sequence[_Value]):
    """Base class of immutable sequences that store numbers and build elements on access."""

    __slots__ = ()

    @abstractmethod
    def _at(self, place: int) -> _Value:
        """Return the element at an index in [0, length); indexing and iteration call it."""

    def __iter__(self) -> Iterator[_Value]:
        return map(self._at, range(len(self)))

    @overload
    def __getitem__(self, place: int) -> _Value: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[_Value, ...]: ...
    def __getitem__(self, place: int | slice) -> _Value | tuple[_Value, ...]:
        found = range(len(self))[place]
        return self._at(found) if isinstance(found, int) else tuple(map(self._at, found))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Packed | tuple):
            return NotImplemented
        return len(self) == len(other) and all(map(eq, self, other))

    __hash__ = None  # type: ignore[assignment]  # as a tuple of records, which hold mappings

    def __repr__(self) -> str:
        return repr(tuple(self))


def packed(numbers: Sequence[_Number]) -> Sequence[_Number]:
    """Return an equal sequence; numbers of one 8-byte type take 8 bytes each."""
    kinds = set(map(type, numbers))
    is_short = kinds == {int} and all(-(2**63) <= number < 2**63 for number in numbers)
    code = "d" if kinds == {float} else "q" if is_short else None
    return tuple(numbers) if code is None else array(code, numbers)


@dataclass(frozen=True, kw_only=True, slots=True)
class EpochRecord:
    """The metrics of one epoch of a run.

    They contain no times or host names, so that equal configurations give equal records.

    Example:
        >>> from mixsweep.plugins import EpochRecord
        >>> EpochRecord(epoch=0, metrics={"test/error": 0.25}).metrics["test/error"]
        0.25
    """

    epoch: int
    """The epoch, 0-based."""
    metrics: Mapping[str, float]
    """Values by slashed name, for example `train/loss` (nats), `test/error` (fraction in [0, 1]).

    The names depend on the problem (`Problem.metrics`) and can differ from epoch to epoch: image
    runs record `train/*` in each epoch, `val/*` and `test/*` when they evaluate.
    """

    def to_plain(self) -> dict[str, Any]:
        """Return this record as a mapping for JSON; floats survive the round trip exactly.

        Example:
            >>> from mixsweep.plugins import EpochRecord
            >>> EpochRecord(epoch=0, metrics={"test/error": 0.25}).to_plain()
            {'epoch': 0, 'metrics': {'test/error': 0.25}}
        """
        # Frozen: these keys. After a change, stored results cannot be read;
        # tests/contracts/test_homes.py fails.
        return {"epoch": self.epoch, "metrics": dict(self.metrics)}

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> "EpochRecord":
        """Build a record from a mapping that was read from JSON, as `to_plain` returns it.

        Raises:
            KeyError: If the mapping has no `epoch` or no `metrics`.

        Example:
            >>> from mixsweep.plugins import EpochRecord
            >>> EpochRecord.from_plain({"epoch": 0, "metrics": {"test/error": 0.25}}).epoch
            0
        """
        return cls(epoch=plain["epoch"], metrics=dict(plain["metrics"]))


class Records(Packed[EpochRecord]):
    """Sequence of a run's records in little memory: 24 bytes per record and 8 per metric value.

    A report reads a thousand runs of a hundred epochs; plain objects would need ten times as much.
    """

    __slots__ = ("_ends", "_epochs", "_names", "_values")

    def __init__(self, records: Iterable[EpochRecord] = ()) -> None:
        """Store the given records."""
        records = tuple(records)
        self._names = tuple(_shared(tuple(record.metrics)) for record in records)
        """Names of the metrics of each record, in its order."""
        self._ends = packed(list(accumulate(map(len, self._names))))
        """Index at which the values of each record end."""
        self._values = packed([value for record in records for value in record.metrics.values()])
        self._epochs = packed([record.epoch for record in records])

    @property
    def names(self) -> frozenset[str]:
        """Names of all metrics in these records."""
        return frozenset(chain.from_iterable(set(self._names)))

    def __len__(self) -> int:
        return len(self._names)

    def _at(self, place: int) -> EpochRecord:
        names, end = self._names[place], self._ends[place]
        values = self._values[end - len(names) : end]
        return EpochRecord(epoch=self._epochs[place], metrics=dict(zip(names, values, strict=True)))


@lru_cache(maxsize=128)
def _shared(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return an equal tuple of names that all records of this process share, to save memory."""
    return names
