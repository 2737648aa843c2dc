"""GridReader: read the keys `grid`, `zip` and `exclude` of a study file, and name grid points.

Each arm is trained with every combination of the values in `grid`. `zip` combines its lists item by
item. `exclude` removes combinations.
"""

import hashlib
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any, get_origin

from mixup_core.config.parts import members, unmarked
from mixup_core.config.written_forms import spelled
from sweeps.reading.strict_yaml import REFUSED, At
from sweeps.reading.tree_paths import Settings, above
from sweeps.reading.tree_reader import TreeReader

MAX_NAME = 100
"""Largest number of characters in the name of a study or an arm, including the values of a grid."""

ARM_NAME = r"[A-Za-z0-9][A-Za-z0-9._+-]{0,99}"
_MOST_LETTERS = 60
"""Longest text value that an arm's name contains in full, in characters."""
_KEPT_LETTERS = 24
"""Number of last characters kept of a longer value. File paths differ most at their ends."""

GridAxis = Sequence[Settings]
"""The steps of one axis of a grid. A point of the grid is one step of every axis. A step of `grid`
sets one field of the configuration, a step of `zip` sets several."""


class GridReader:
    """Expands `grid`, `zip` and `exclude` of a study file to combinations of values (grid points).

    `grid` combines all of its values, `zip` combines its lists item by item, and `exclude` removes
    combinations. Faults are reported, and the faulty parts skipped.
    """

    def __init__(
        self, read: TreeReader, given: Mapping[str, Any], arms: Mapping[str, Settings]
    ) -> None:
        self._read = read
        self._taken = {path: f"arm {arm!r}" for arm, override in arms.items() for path in override}
        grids: Mapping[At, Any] = {("grid",): given["grid"]} if "grid" in given else {}
        if isinstance(given.get("grid"), list):
            grids = read.filled(given["grid"], ("grid",), "grid")
        self._grids = [self._axes(grid, at) for at, grid in grids.items()] or [{}]
        if "zip" in given:
            self._taken |= {path: "grid" for axes in self._grids for path in axes}
            zipped = self._axes(given["zip"], ("zip",))
            lengths = {path: len(steps) for path, steps in zipped.items()}
            if len(set(lengths.values())) > 1:
                read.report(("zip",), f"lists must have equal lengths, got {lengths}")
            steps = list(map(_together, zip(*zipped.values(), strict=False))) or [{}]
            self._grids = [{**axes, "": steps} for axes in self._grids]
        self._exclude: dict[At, Sequence[Settings]] = {}
        excluded = read.filled(given.get("exclude", REFUSED), ("exclude",), "mapping")
        for at, values in excluded.items():
            if values == {}:
                read.report(at, "needs at least one path")
            rules = [read.nested(one, at, is_dotted=True) for one in self._alternatives(values)]
            sound = [s.value is not REFUSED for rule in rules for s in rule.values()]
            if sound and all(sound):
                self._exclude[at] = rules
        self._unmet = list(self._exclude)

    @property
    def num_points(self) -> int:
        """Number of grid points per arm, before `exclude`; 1 without a grid."""
        return sum(math.prod(map(len, axes.values())) for axes in self._grids)

    def points(self) -> Iterator[Settings]:
        """Yield the settings of each grid point once, the last path varying fastest."""
        seen = set()
        for point in (
            _together(steps) for axes in self._grids for steps in product(*axes.values())
        ):
            key = frozenset((path, repr(setting.value)) for path, setting in point.items())
            if len(self._grids) == 1 or key not in seen:
                seen.add(key)
                yield point

    def is_left_out(self, given: Mapping[str, Any]) -> bool:
        """Return True if `exclude` in the study file removes an arm at a grid point."""
        matching = [
            at for at, rules in self._exclude.items()
            if any(
                all(p in given and spelled(given[p]) == spelled(s.value) for p, s in rule.items())
                for rule in rules
            )
        ]  # fmt: skip
        self._unmet = [at for at in self._unmet if at not in matching]
        return bool(matching)

    def report_unmet(self) -> None:
        """Report a fault for each combination of `exclude` that no arm has at any grid point."""
        for at in self._unmet:
            self._read.report(at, "no arm has these values")

    def _alternatives(self, values: Any) -> list[Any]:
        """Return the combinations of values that one item of `exclude` removes."""
        if not isinstance(values, dict):
            return [values]
        listed = {
            path: value
            for path, value in values.items()
            if isinstance(value, list) and value and not self._takes_list(path)
        }
        return [
            values | dict(zip(listed, chosen, strict=True)) for chosen in product(*listed.values())
        ]

    def _takes_list(self, path: str) -> bool:
        leaf = self._read.paths.leaves.get(self._read.paths.short(path))
        kinds = () if leaf is None else map(unmarked, members(leaf.part.hint))
        return any(get_origin(kind) is tuple for kind in kinds)

    def _axes(self, grid: Any, at: At) -> dict[str, GridAxis]:
        """Return the values that a grid lists for each path; report and skip invalid paths."""
        axes: dict[str, GridAxis] = {}
        if grid == {}:
            self._read.report(at, "needs at least one path")
        for name, values in self._read.mapping(grid, at).items():
            item_at = (*at, name)
            if not (path := self._read.known(name, item_at)):
                continue
            if path in axes:
                self._read.report(item_at, f"{path} is given twice")
            near = [p for p in self._taken if p == path or p in above(path) or path in above(p)]
            if near:
                self._read.report(item_at, f"{self._taken[near[0]]} sets this path too")
            elif listed := self._read.filled(values, item_at, "value"):
                axes[path] = [{path: self._read.setting(name, v, at)} for at, v in listed.items()]
        return axes


def _together(steps: Iterable[Settings]) -> Settings:
    return {path: setting for step in steps for path, setting in step.items()}


def arm_name(arm: str, point: Mapping[str, Any]) -> str:
    """Return `erm lr=0.1`; of each path, only as many last parts as make it unique."""
    # Frozen: this name enters the hash of a study's settings. Earlier launches would count as those
    # of other settings; tests/golden/test_keys.py fails.
    words = [arm] if arm else []
    for path, value in point.items():
        parts = path.split(".")
        tails = (".".join(parts[start:]) for start in range(len(parts) - 1, -1, -1))
        label = next(
            tail
            for tail in tails
            if sum(f".{other}".endswith(f".{tail}") for other in point) == 1 or tail == path
        )
        words.append(f"{label}={_value_name(spelled(value))}")
    return " ".join(words)


def coded_values(point: Mapping[str, Any]) -> dict[str, str]:
    """Return the long or non-ASCII texts that a code replaces in an arm's name, by code."""
    texts = [value for value in map(spelled, point.values()) if isinstance(value, str)]
    return {
        name: text for text in texts if (name := _value_name(text)) != text and not _is_plain(text)
    }


def _is_plain(text: str) -> bool:
    return text.isascii() and len(text) <= _MOST_LETTERS


def _value_name(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case tuple():
            return "-".join(map(_value_name, value))
        case {**parts} if len(parts) == 1:
            ((tag, content),) = parts.items()
            return f"{tag}({_value_name(content)})"
        case {**parts}:
            return ",".join(f"{name}={_value_name(part)}" for name, part in parts.items())
        case _:
            text = str(value)
            plain = re.sub(r"[^A-Za-z0-9._+-]", "-", text)
            if _is_plain(text):
                return plain
            # All other letters become `-`; a hash keeps such values distinct.
            digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
            tail = re.sub(r"-+", "-", plain[-_KEPT_LETTERS:]).strip("-.")
            return f"{tail}-{digest[:6]}" if tail else digest[:6]
