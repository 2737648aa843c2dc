"""GridReader: from `grid`, `zip` and `exclude` of a study file to the points of every arm."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

from mixup_core.tree import spelled
from sweeps.reading.node_reader import NodeReader
from sweeps.reading.strict_yaml import REFUSED, Node
from sweeps.reading.tree_paths import Settings, TreePaths, above

Axis = Sequence[Settings]
"""Steps, of which each point takes one: of `grid` one path each, of `zip` several."""


class GridReader:
    """Turns the nodes of a grid into points; what is wrong is reported and left out."""

    def __init__(
        self,
        read: NodeReader,
        paths: TreePaths,
        nodes: Mapping[str, Node],
        arms: Mapping[str, Settings],
    ) -> None:
        """Read the keys `grid`, `zip` and `exclude`.

        Args:
            read: Reads nodes, and collects faults.
            paths: Of the configuration.
            nodes: Sections of the file by key.
            arms: Overrides of each arm, which no grid may set too.
        """
        self._read = read
        self._paths = paths
        self._taken = {path: f"arm {arm!r}" for arm, override in arms.items() for path in override}
        self._grids: list[list[Axis]] = [[]]
        grid, zipped = nodes.get("grid"), nodes.get("zip")
        if grid is not None:
            listed = read.filled(grid, "grid") if isinstance(grid.value, list) else [grid]
            self._grids = [list(self._axes(node).values()) for node in listed] or [[]]
        if zipped is not None:
            self._taken |= {p: "grid" for axes in self._grids for axis in axes for p in axis[0]}
            steps = self._zipped(zipped)
            self._grids = [[*axes, steps] for axes in self._grids]
        self._exclude: list[tuple[Node, Settings]] = []
        for node in read.filled(nodes.get("exclude"), "mapping"):
            rule = self._read.dotted(paths, node)
            if node.value == {}:
                self._read.report(node, "needs at least one path")
            elif rule and all(setting.value is not REFUSED for setting in rule.values()):
                self._exclude.append((node, rule))
        self._unmet = list(self._exclude)

    @property
    def num_points(self) -> int:
        """Number of points of one arm, before any is left out; 1 without a grid."""
        return sum(math.prod(map(len, axes)) for axes in self._grids)

    def points(self) -> Iterator[Settings]:
        """Yield each point once, the last path changing fastest; an empty one without a grid."""
        met = set()
        for axes in self._grids:
            for steps in product(*axes):
                point = {path: setting for step in steps for path, setting in step.items()}
                key = frozenset((path, repr(setting.value)) for path, setting in point.items())
                if len(self._grids) == 1 or key not in met:
                    met.add(key)
                    yield point

    def is_left_out(self, given: Mapping[str, Any]) -> bool:
        """Return whether `exclude` names a combination that is given by grid, arm and base."""
        found = [
            rule for rule in self._exclude
            if all(p in given and spelled(given[p]) == spelled(s.value) for p, s in rule[1].items())
        ]  # fmt: skip
        self._unmet = [rule for rule in self._unmet if rule not in found]
        return bool(found)

    def report_unmet(self) -> None:
        """Report what `exclude` names and no arm has."""
        for node, _ in self._unmet:
            self._read.report(node, "no arm has these values")

    def _axes(self, node: Node) -> dict[str, list[Settings]]:
        axes: dict[str, list[Settings]] = {}
        if node.value == {}:
            self._read.report(node, "needs at least one path")
        for path, child in self._read.mapping(node).items():
            if self._read.is_path(self._paths, path, child):
                near = [p for p in self._taken if p == path or p in above(path) or path in above(p)]
                if near:
                    self._read.report(child, f"{self._taken[near[0]]} sets this path too")
                values = () if near else self._read.filled(child, "value")
                # A problem of a value is one of its list, wherever in it the value stands.
                axes[path] = [
                    {path: self._read.setting(self._paths, path, replace(value, path=child.path))}
                    for value in values
                ]
        return {path: steps for path, steps in axes.items() if steps}

    def _zipped(self, node: Node) -> list[Settings]:
        axes = self._axes(node)
        lengths = {path: len(steps) for path, steps in axes.items()}
        if len(set(lengths.values())) > 1:
            self._read.report(node, f"lists must have one length, got {lengths}")
        return [
            {path: setting for step in steps for path, setting in step.items()}
            for steps in zip(*axes.values(), strict=False)
        ] or [{}]
