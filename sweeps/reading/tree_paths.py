"""TreePaths: the dotted paths that values of a tree are given under, and how they are joined."""

import types
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, is_dataclass
from itertools import accumulate, product
from typing import Any, get_args, get_origin

from mixup_core.problem import DataError, Problem
from mixup_core.rules import RuleError
from mixup_core.tree.building import built
from mixup_core.tree.limits import Range
from mixup_core.tree.parts import REQUIRED, Leaf, leaves, limits, members, parts, unmarked, words
from sweeps.reading.strict_yaml import REFUSED, At


@dataclass(frozen=True, kw_only=True, slots=True)
class Setting:
    """A value given under a path of a tree, and where."""

    value: Any
    """The value, in the type of its path; a choice's tag alone stays text; `REFUSED` if
    reported."""
    at: At


Settings = Mapping[str, Setting]
"""Settings by their dotted path."""


class TreePaths:
    """The paths of one type of tree."""

    def __init__(
        self,
        kind: Any,
        reserved: Mapping[str, str] = types.MappingProxyType({}),
        other_names: Mapping[str, str] = types.MappingProxyType({}),
    ) -> None:
        """List the paths.

        Args:
            kind: Type of the tree.
            reserved: Paths that are filled in for the user, to what one who sets them is told.
            other_names: Names that other programs give to a path, to that path.
        """
        self.kind = kind
        self.reserved = reserved
        self.other_names = other_names
        self.leaves: Mapping[str, Leaf] = {
            path: leaf for path, leaf in leaves(kind).items() if path not in reserved
        }
        chosen = {path: leaf.part for path, leaf in self.leaves.items() if leaf.part.options}
        named = {path.removesuffix(".name") for path, part in chosen.items() if part.is_named}
        self.choices = frozenset(path for path, part in chosen.items() if not part.is_named)
        """Paths of choices told apart by tag: a value may be given whole, or below."""
        prefixes = {prefix for path in self.leaves for prefix in above(path)}
        self.groups = {p for p in prefixes if self.choices.isdisjoint([p, *above(p)])}
        """Paths that a study file nests."""
        self.required = tuple(
            path for path, leaf in self.leaves.items() if leaf.part.default is REQUIRED
            and (self.choices | named).isdisjoint(above(path.removesuffix(".name")))
        )  # fmt: skip
        """Paths that every tree of the type needs a value under."""

    def keys(self, path: str) -> list[str]:
        """Return the keys that lead to a path in a file, as deep as groups are nested there."""
        names = path.split(".")
        deep = max((n for n in range(len(names)) if ".".join(names[:n]) in self.groups), default=0)
        return [*names[:deep], ".".join(names[deep:])]

    def merged(self, levels: Sequence[Settings]) -> dict[str, Any]:
        """Return the values of all levels by path.

        Args:
            levels: The first that gives a path decides. One that gives a choice whole, or by its
                tag, takes the place of all that later ones give of it.
        """
        given: dict[str, Any] = {}
        for level in reversed(levels):
            whole = tuple(f"{path}." for path in level if path in self.choices)
            given = {path: value for path, value in given.items() if not path.startswith(whole)}
            given |= {path: setting.value for path, setting in level.items()}
        return given

    def join(self, given: Mapping[str, Any]) -> tuple[Any, frozenset[str], list[RuleError]]:
        """Return the tree made of values by path, and every rule they break.

        A rule that fails is reported; then the values it read give way to their defaults, so that
        the other rules are checked too. What concerns values that already gave way is not reported.

        Args:
            given: Values as `merged` returns them; `REFUSED` and missing ones count as broken.

        Returns:
            The tree (None if the defaults themselves cannot stand), the paths that gave way, and
            the errors. It is what the user asked for only if no path gave way.
        """
        errors: list[RuleError] = []
        gone = {path for path, value in given.items() if value is REFUSED}
        gone |= {path for path in self.required if path not in given}
        while True:
            kept = {p: value for p, value in given.items() if gone.isdisjoint([p, *above(p)])}
            try:
                stand_ins = {p: stand_in(self.leaves[p].part.hint) for p in self.required}
                return built(self.kind, stand_ins | kept), frozenset(gone), errors
            except RuleError as error:
                fields = set(error.fields)
                if gone.isdisjoint(fields):
                    errors.append(error)
                wholes = {path for field in fields for path in above(field) if path in given}
                if gone >= fields | wholes:
                    return None, frozenset(gone), errors
                gone |= wholes if gone >= fields else fields


def config_paths(problem: Problem, *, searched: bool = False) -> TreePaths:
    """Return the paths of a problem's configuration that a study file may set, or a search vary."""
    seed = {"seed": "is not set in a study file; give `seeds`"}
    told = "cannot be searched: points would not compare"
    fixed = dict.fromkeys(problem.unsearchable if searched else (), told)
    return TreePaths(problem.config, fixed | seed | dict(problem.reserved), problem.other_names)


def blamed(error: RuleError | DataError, levels: Sequence[Settings]) -> Setting | None:
    """Return the most special of the values that an error concerns; None if none was given."""
    for level, field in product(levels, error.fields):
        near = [p for p in level if p == field or p in above(field) or field in above(p)]
        if near:
            return level[field if field in near else near[0]]
    return None


def above(path: str) -> list[str]:
    """Return the paths that a path lies below: `a` and `a.b` of `a.b.c`."""
    return list(accumulate(path.split(".")[:-1], lambda head, name: f"{head}.{name}"))


def stand_in(hint: Any) -> Any:
    """Return some value of a type, for the rules that do not depend on it: 1 for a number."""
    if known := words(hint):
        return known[0]
    if type(None) in members(hint):
        return None
    first, *_ = members(hint)
    for limit in limits(first):
        if isinstance(limit, Range):
            return limit.inside
    kind = unmarked(first)
    if get_origin(kind) is tuple:
        return (stand_in(get_args(kind)[0]),)
    if is_dataclass(kind) and isinstance(kind, type):
        return built(kind, stand_ins(kind))
    return {bool: False, int: 1, float: 1.0, str: "x"}.get(kind)


def stand_ins(kind: type) -> dict[str, Any]:
    """Return some value of each field of a dataclass that has no default."""
    required = [part for part in parts(kind) if part.default is REQUIRED]
    return {part.name: stand_in(part.hint) for part in required}
