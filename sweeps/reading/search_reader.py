"""SearchReader: from the `search:` section of a study file to a checked search."""

from collections.abc import Mapping, Sequence
from typing import cast, get_args

from mixup_core.images.problem import IMAGES
from mixup_core.problem import MAX_SEED
from sweeps.reading.config_paths import did_you_mean
from sweeps.reading.node_reader import NodeReader
from sweeps.reading.space_reader import Configure, SpaceReader
from sweeps.reading.strict_yaml import Node, Place, Refused, plain, spell
from sweeps.search import Budget, SamplerName, Search, SelectionRule
from sweeps.space import MAX_GRID, Space

MAX_POINTS = 10_000
MAX_SAMPLER_SEED = 2**31 - 1
OBJECTIVES = IMAGES.objectives

KEYS = (
    "space", "points", "objective", "sampler", "seed", "prune", "budget", "select", "confirm",
)  # fmt: skip


class SearchReader:
    """Turns the node of a search into a search; what is wrong is reported and left out."""

    def __init__(self, read: NodeReader, configure: Configure) -> None:
        """Make a reader.

        Args:
            read: Reads nodes, and collects problems.
            configure: What the extremes of the space are tried with.
        """
        self._read = read
        self._configure = configure

    def search(self, node: Node, seeds: Sequence[int]) -> Search | None:
        """Return the search of a node; None if there was a problem.

        Args:
            node: Value of the key `search`.
            seeds: Of the study.
        """
        parts = self._read.mapping(node, "search")
        if parts is None:
            return None
        self._read.only(parts, KEYS, "search")
        samplers, rules = get_args(SamplerName), get_args(SelectionRule)
        sampler = self._read.choice(parts.get("sampler"), "search.sampler", samplers, "tpe")
        spaces = SpaceReader(self._read, self._configure, is_grid=sampler == "grid")
        space = spaces.space(parts.get("space"), node.place)
        points = self._points(parts.get("points"), node.place, space, is_grid=sampler == "grid")
        objectives = self._objectives(parts.get("objective"), node.place)
        seed = self._read.integer(parts.get("seed"), "search.seed", 0, MAX_SAMPLER_SEED, 0)
        prune_after = self._prune(_given(parts, "prune"), len(seeds))
        budget = self._budget(_given(parts, "budget"))
        select = self._read.choice(parts.get("select"), "search.select", rules, "val-mean")
        confirm_seeds = self._confirm_seeds(_given(parts, "confirm"), seeds)
        if len(objectives) > 1 and prune_after is not None:
            text = "is for one objective; there are several"
            self._read.report(parts["prune"].place, "search.prune", text)
        if len(objectives) > 1 and sampler == "cmaes":
            text = "cmaes is for one objective; there are several"
            self._read.report(parts["sampler"].place, "search.sampler", text)
        if sampler == "grid" and budget != Budget():
            text = "a grid asks for all of its points at once, so no budget can end it early"
            self._read.report(parts["budget"].place, "search.budget", text)
        if space is None or points is None or seed is None or self._read.problems:
            return None  # corners of what is wrong would repeat what was said of it
        base = spaces.base(space)
        if base is None or self._read.problems:
            return None
        return Search(
            base=base,
            space=space,
            points=points,
            objectives=objectives,
            sampler=cast(SamplerName, sampler),
            seed=seed,
            prune_after=prune_after,
            budget=budget,
            select=cast(SelectionRule, select),
            confirm_seeds=confirm_seeds,
        )

    def _points(
        self, node: Node | None, place: Place, space: Space | None, *, is_grid: bool
    ) -> int | None:
        if is_grid:
            if node is not None:
                self._read.report(node.place, "search.points", "a grid takes all of its points")
            size = None if space is None else space.size()
            if size is not None and size > MAX_GRID:
                text = f"the grid has more than {MAX_GRID:,} points"
                self._read.report(place, "search.space", text)
            return size
        if node is None:
            self._read.report(place, "search", "missing key 'points'")
        return self._read.integer(node, "search.points", 1, MAX_POINTS, None)

    def _objectives(self, node: Node | None, place: Place) -> tuple[str, ...]:
        if node is None:
            self._read.report(place, "search", "missing key 'objective'")
            return ()
        given = node.value if isinstance(node.value, list) else [node]
        names: list[str] = []
        for child in given:
            name = child.value
            if isinstance(name, Refused):
                continue
            if isinstance(name, str) and name.startswith("test/"):
                text = f"only val/* may be searched, got {name!r}: test data chooses nothing"
            elif name not in OBJECTIVES:
                text = f"expected one of {', '.join(OBJECTIVES)}, got {spell(plain(child))}"
                text += did_you_mean(str(name), OBJECTIVES)
            elif name in names:
                text = f"got {name!r} twice"
            else:
                names.append(str(name))
                continue
            self._read.report(child.place, "search.objective", text)
        if not given:
            self._read.report(node.place, "search.objective", "needs at least one")
        return tuple(names)

    def _prune(self, node: Node | None, num_seeds: int) -> int | None:
        parts = None if node is None else self._read.mapping(node, "search.prune")
        if node is None or parts is None:
            return None
        self._read.only(parts, ("after",), "search.prune")
        if "after" not in parts:
            self._read.report(node.place, "search.prune", "missing key 'after'")
        after = self._read.integer(parts.get("after"), "search.prune.after", 2, MAX_POINTS, None)
        if after is not None and after >= num_seeds:
            text = f"`2 <= after < number of seeds` must hold, got (after={after}, {num_seeds=})."
            self._read.report(parts["after"].place, "search.prune.after", text)
        return after

    def _budget(self, node: Node | None) -> Budget:
        parts = None if node is None else self._read.mapping(node, "search.budget")
        if node is None or parts is None:
            return Budget()
        names = ("hours", "gpu_hours")
        self._read.only(parts, names, "search.budget")
        limits: dict[str, float] = {}
        for name in names:
            limit = parts[name].value if name in parts else None
            if isinstance(limit, int | float) and not isinstance(limit, bool):
                limits[name] = limit
            elif name in parts and not isinstance(limit, Refused):
                text = f"expected a number, got {spell(plain(parts[name]))}"
                self._read.report(parts[name].place, f"search.budget.{name}", text)
        try:
            return Budget(**limits)
        except ValueError as error:
            self._read.report(node.place, "search.budget", str(error))
            return Budget()

    def _confirm_seeds(self, node: Node | None, seeds: Sequence[int]) -> tuple[int, ...]:
        parts = None if node is None else self._read.mapping(node, "search.confirm")
        if node is None or parts is None:
            return ()
        self._read.only(parts, ("seeds",), "search.confirm")
        listed = parts.get("seeds")
        if listed is None or not isinstance(listed.value, list) or not listed.value:
            text = "needs `seeds`, a list of seeds that the search does not use"
            self._read.report(node.place, "search.confirm", text)
            return ()
        found: list[int] = []
        for child in listed.value:
            seed = child.value
            is_seed = isinstance(seed, int) and not isinstance(seed, bool)
            if not is_seed or not 0 <= seed <= MAX_SEED or seed in found:  # type: ignore[operator]
                text = f"seeds are distinct integers in 0..2^63-1, got {spell(plain(child))}"
                self._read.report(child.place, "search.confirm.seeds", text)
            elif seed in seeds:
                text = f"must be seeds that the search does not use, got {seed}"
                self._read.report(child.place, "search.confirm.seeds", text)
            else:
                found.append(seed)  # type: ignore[arg-type]
        return tuple(found)


def _given(parts: Mapping[str, Node], key: str) -> Node | None:
    """Return the node of a part that may be left out, or switched off with null."""
    node = parts.get(key)
    return None if node is None or node.value is None else node
