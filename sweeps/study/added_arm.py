"""AddedArm: an arm that a search adds to its study; the names of such arms."""

import re
from collections.abc import Collection
from dataclasses import dataclass

_POINT = r"point \d+"


@dataclass(frozen=True, kw_only=True, slots=True)
class AddedArm:
    """An arm that is not in the study file: a point of the search, or part of its confirmation."""

    seeds: tuple[int, ...]
    """Seeds at which the arm is trained, instead of those of the study."""
    confirms: str | None = None
    """The arm of which this one is the confirmation; None for a point."""

    @property
    def is_point(self) -> bool:
        """True for a point of the search, False for an arm of the confirmation."""
        return self.confirms is None


def name_of_point(number: int) -> str:
    """Return the name of the arm of a point, which contains a blank: no arm of a file has it."""
    return f"point {number}"


def name_of_confirmation(arm: str) -> str:
    """Return the name of the arm that is the confirmation of another."""
    return f"confirm {arm}"


def added_among(names: Collection[str]) -> frozenset[str]:
    """Return the arms that were added, among all arms in a stored file, which holds no `AddedArm`.

    Studies at hand never need this: their arms are looked up in `Study.added`.
    """
    points = {name for name in names if re.fullmatch(_POINT, name)}
    return frozenset(points | (set(map(name_of_confirmation, names)) & set(names)))
