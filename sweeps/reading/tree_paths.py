"""TreePaths: the dotted paths of values in a nested dataclass, and how settings combine."""

import types
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, is_dataclass
from functools import cached_property
from itertools import accumulate, product
from typing import Any, get_args, get_origin

from mixup_core.config.building import built
from mixup_core.config.limits import Range
from mixup_core.config.parts import REQUIRED, Leaf, leaves, limits, members, parts, unmarked, words
from mixup_core.problem import DataError, Problem
from mixup_core.rules import RuleError
from sweeps.reading.strict_yaml import REFUSED, At


@dataclass(frozen=True, kw_only=True, slots=True)
class Setting:
    """A value that a study file gives to the field at a dotted path, and its place in the file."""

    value: Any
    """The value, converted to the type of its field. A choice (a field that holds one of several
    dataclasses) may be given by its tag alone, such as `cutmix`; the value is then this text. It is
    `REFUSED` if a fault was reported."""
    at: At
    needs: tuple[str, str] | None = None
    """Path of a choice and the tag that it must have, if the file writes this path with a tag, such
    as `mix.law.beta.alpha`."""


Settings = Mapping[str, Setting]
"""Settings by their dotted path."""


class TreePaths:
    """The dotted paths, such as `mix.law`, that can be set in one nested dataclass ("tree")."""

    def __init__(
        self,
        kind: Any,
        reserved: Mapping[str, str] = types.MappingProxyType({}),
        other_names: Mapping[str, str] = types.MappingProxyType({}),
    ) -> None:
        self.kind = kind
        self.reserved = reserved
        self.other_names = other_names
        self.leaves: Mapping[str, Leaf] = {
            path: leaf for path, leaf in leaves(kind).items() if path not in reserved
        }
        chosen = {path: leaf.part for path, leaf in self.leaves.items() if leaf.part.options}
        named = {path.removesuffix(".name") for path, part in chosen.items() if part.is_named}
        self.choices = frozenset(path for path, part in chosen.items() if not part.is_named)
        """Paths of choices with a tag; a file sets the whole choice, or the fields below it."""
        prefixes = {prefix for path in self.leaves for prefix in above(path)}
        self.groups = {p for p in prefixes if self.choices.isdisjoint([p, *above(p)])}
        """Paths that are nested mappings in a study file."""
        self.required = tuple(
            path for path, leaf in self.leaves.items() if leaf.part.default is REQUIRED
            and (self.choices | named).isdisjoint(above(path.removesuffix(".name")))
        )  # fmt: skip
        """Paths without a default, which every study file must set."""

    @cached_property
    def tagged(self) -> Mapping[str, tuple[str, tuple[str, str]]]:
        """Paths with a tag, such as `mix.law.beta.alpha`: the same without, the choice, the tag."""
        tagged: dict[str, tuple[str, tuple[str, str]]] = {}
        for path in self.leaves:
            for head in above(path):
                leaf = self.leaves.get(head) or self.leaves.get(f"{head}.name")
                field = path.removeprefix(f"{head}.")
                for tag, kind in {} if leaf is None else leaf.part.options.items():
                    if field in leaves(kind):
                        tagged[f"{head}.{tag}.{field}"] = path, (head, tag)
        return tagged

    def short(self, path: str) -> str:
        """Return a path without the tag of a choice: `mix.law.alpha` for `mix.law.beta.alpha`."""
        is_tagged = path not in self.leaves and path in self.tagged
        return self.tagged[path][0] if is_tagged else path

    def keys(self, path: str) -> list[str]:
        """Return a path as nested keys of a file: `mix`, `law.alpha` (below a choice: one key)."""
        names = path.split(".")
        deep = max((n for n in range(len(names)) if ".".join(names[:n]) in self.groups), default=0)
        return [*names[:deep], ".".join(names[deep:])]

    def merged(self, levels: Sequence[Settings]) -> dict[str, Any]:
        """Return one value per path: earlier levels win, a whole choice hides its later fields."""
        return {path: setting.value for path, setting in self.chosen(levels).items()}

    def chosen(self, levels: Sequence[Settings]) -> dict[str, Setting]:
        """Return the setting of each path that decides its value, as `merged` returns the value."""
        found: dict[str, Setting] = {}
        for level in reversed(levels):
            whole = tuple(f"{path}." for path in level if path in self.choices)
            found = {path: setting for path, setting in found.items() if not path.startswith(whole)}
            found |= level
        return found

    def join(self, given: Mapping[str, Any]) -> tuple[Any, frozenset[str], list[RuleError]]:
        """Build the dataclass; collect all broken rules, with defaults in place of the values."""
        errors: list[RuleError] = []
        gone = {path for path, value in given.items() if value is REFUSED}
        gone |= {path for path in self.required if path not in given}
        while True:
            sound = {p: value for p, value in given.items() if gone.isdisjoint([p, *above(p)])}
            try:
                stand_ins = {p: stand_in(self.leaves[p].part.hint) for p in self.required}
                return built(self.kind, stand_ins | sound), frozenset(gone), errors
            except RuleError as error:
                fields = set(error.fields)
                if gone.isdisjoint(fields):
                    errors.append(error)
                wholes = {path for field in fields for path in above(field) if path in given}
                if gone >= fields | wholes:
                    return None, frozenset(gone), errors
                gone |= wholes if gone >= fields else fields


def config_paths(problem: Problem, *, searched: bool = False) -> TreePaths:
    """Return the paths of a problem's configuration that a study file may set."""
    seed = {"seed": "cannot be set in a study file; give `seeds`"}
    rule = "cannot be searched: points with different values here would not be comparable"
    fixed = dict.fromkeys(problem.searching.unsearchable if searched else (), rule)
    return TreePaths(
        problem.config, fixed | seed | dict(problem.reading.reserved), problem.reading.other_names
    )


def blamed(error: RuleError | DataError, levels: Sequence[Settings]) -> Setting | None:
    """Return the most specific setting that an error involves; None if it involves no setting."""
    for level, field in product(levels, error.fields):
        related = [p for p in level if p == field or p in above(field) or field in above(p)]
        if related:
            return level[field if field in related else related[0]]
    return None


def above(path: str) -> list[str]:
    """Return the dotted paths of all groups around a path: `a` and `a.b` for `a.b.c`."""
    return list(accumulate(path.split(".")[:-1], lambda head, name: f"{head}.{name}"))


def stand_in(hint: Any) -> Any:
    """Return a placeholder value of a type, so that rules about other values can be checked."""
    if names := words(hint):
        return names[0]
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
    """Return a placeholder value for each field of a dataclass that has no default, by name."""
    required = [part for part in parts(kind) if part.default is REQUIRED]
    return {part.name: stand_in(part.hint) for part in required}
