"""From the `search:` section of a study file to a checked search."""

from collections.abc import Collection, Sequence
from typing import Any, Final

from mixup_core.problem import Problem
from sweeps.budget import Budget
from sweeps.reading.space_reader import SpaceReader
from sweeps.reading.study_keys import SearchKeys
from sweeps.reading.tree_paths import TreePaths
from sweeps.reading.tree_reader import TreeReader
from sweeps.search import Search
from sweeps.space import MAX_GRID

KEYS: Final = TreePaths(SearchKeys)


def read_search(
    read: TreeReader, written: Any, problem: Problem, seeds: Sequence[int], spaces: SpaceReader
) -> Search | None:
    """Return the search of a study; None if there was a problem.

    Args:
        read: Reads the file, and collects faults.
        written: What stands under the key `search`.
        problem: Of the study.
        seeds: Of the study.
        spaces: Reads its space.
    """
    keys, gone = TreeReader(read.document, KEYS).section(written, ("search",))
    if keys is None or "space" in gone:
        return None
    is_grid = keys.sampler == "grid"
    space = spaces.space(keys.space, is_grid=is_grid)
    points = keys.points
    if is_grid:
        points = None if space is None else space.size()
        if points is not None and points > MAX_GRID:
            read.report(("search", "space"), f"the grid has more than {MAX_GRID:,} points")
    elif points is None and "points" not in gone:
        read.report(("search",), "missing key 'points'")
    names = (keys.objective,) if isinstance(keys.objective, str) else keys.objective
    if "objective" not in gone:
        _check_objectives(read, names, problem.objectives)
    _check_seeds(read, keys, seeds)
    if space is None or points is None or read.faults:
        return None  # corners of what is wrong would repeat what was said of it
    base = spaces.base(space)
    if base is None or read.faults:
        return None
    return Search(
        base=base,
        space=space,
        points=points,
        objectives=names,
        sampler=keys.sampler,
        seed=keys.seed,
        prune_after=None if keys.prune is None else keys.prune.after,
        budget=keys.budget or Budget(),
        stop_after=None if keys.stop is None else keys.stop.after,
        warm_start=keys.warm_start,
        select=keys.select,
        confirm_seeds=() if keys.confirm is None else keys.confirm.seeds,
    )


def _check_seeds(read: TreeReader, keys: SearchKeys, seeds: Sequence[int]) -> None:
    if keys.prune is not None and keys.prune.after >= len(seeds):
        values = f"(after={keys.prune.after}, seeds={len(seeds)})"
        read.report(("search", "prune"), f"`2 <= after < number of seeds` must hold, got {values}.")
    if keys.stop is not None and len(seeds) < 2:
        read.report(("search", "stop"), "needs two seeds or more, whose spread is the noise")
    if shared := sorted(set(seeds) & set(keys.confirm.seeds if keys.confirm else ())):
        text = f"must be seeds that the search does not use, got {shared[:5]}"
        read.report(("search", "confirm"), text)


def _check_objectives(read: TreeReader, names: Sequence[str], known: Collection[str]) -> None:
    at = ("search", "objective")
    for i, name in enumerate(names):
        if name.startswith("test/"):
            read.report(at, f"only val/* may be searched, got {name!r}: test data chooses nothing")
        elif name not in known:
            read.report(at, f"expected one of {', '.join(known)}, got {name!r}", name, known)
        elif name in names[:i]:
            read.report(at, f"got {name!r} twice")
    if not names:
        read.report(at, "needs at least one")
