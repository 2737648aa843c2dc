"""Packed: sequences that store numbers compactly and build each element on access."""

from abc import abstractmethod
from array import array
from collections.abc import Iterator, Sequence
from operator import eq
from typing import TypeVar, overload

_Value = TypeVar("_Value")


class Packed(Sequence[_Value]):
    """Base class of immutable sequences that store numbers and build elements from them on access.

    This saves memory. Each access builds a new, equal object. The sequence equals a tuple of its
    elements.
    """

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


@overload
def packed(numbers: Sequence[int]) -> Sequence[int]: ...
@overload
def packed(numbers: Sequence[float]) -> Sequence[float]: ...
def packed(numbers: Sequence[float]) -> Sequence[float]:
    """Return a compact sequence with the same values and types as a sequence of numbers.

    A sequence of floats, or of 64-bit integers, takes 8 bytes per number. Any other sequence
    becomes a tuple.
    """
    kinds = set(map(type, numbers))
    if kinds == {float}:
        return array("d", numbers)
    if kinds == {int} and all(-(2**63) <= number < 2**63 for number in numbers):
        return array("q", map(int, numbers))
    return tuple(numbers)
