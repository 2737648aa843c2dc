"""AddedArm: an arm that a search adds to its study (a point, or a confirmation), and its name."""

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
    """Name of the arm that this arm trains again at new seeds; None for a point."""

    @property
    def is_point(self) -> bool:
        """True if the arm is a point of the search, False if it is an arm of its confirmation."""
        return self.confirms is None


def name_of_point(number: int) -> str:
    """Return the arm name of a point, such as `point 3`.

    No arm of a study file has such a name: in a study file only names of grid points contain a
    space, and those also contain `=`.
    """
    return f"point {number}"


def name_of_confirmation(arm: str) -> str:
    """Return the name of the arm that trains an arm again in the confirmation: `confirm ARM`."""
    return f"confirm {arm}"


def added_among(names: Collection[str]) -> frozenset[str]:
    """Return the names of the arms that a search added, recognised by the form of their names.

    Use it for stored files, which contain names only; a `Study` has them in `Study.added`.
    """
    points = {name for name in names if re.fullmatch(_POINT, name)}
    return frozenset(points | (set(map(name_of_confirmation, names)) & set(names)))
