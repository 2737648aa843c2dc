"""Packed: sequences that store numbers compactly and build each value on access."""

from abc import abstractmethod
from array import array
from collections.abc import Iterator, Sequence
from operator import eq
from typing import TypeVar, overload

_Value = TypeVar("_Value")


class Packed(Sequence[_Value]):
    """A sequence that stores only numbers and equals a tuple of the values built from them.

    Each access builds a new, equal object.
    """

    __slots__ = ()

    @abstractmethod
    def _at(self, place: int) -> _Value:
        """Return the value at an index in 0..len - 1."""

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


@overload
def packed(numbers: Sequence[int]) -> Sequence[int]: ...
@overload
def packed(numbers: Sequence[float]) -> Sequence[float]: ...
def packed(numbers: Sequence[float]) -> Sequence[float]:
    """Return the numbers, bit for bit and with the same types, in as few bytes as possible.

    They take 8 bytes each if all are floats, or all are 64-bit integers. Other sequences become
    tuples.
    """
    kinds = set(map(type, numbers))
    if kinds == {float}:
        return array("d", numbers)
    if kinds == {int} and all(-(2**63) <= number < 2**63 for number in numbers):
        return array("q", map(int, numbers))
    return tuple(numbers)
