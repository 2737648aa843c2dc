"""From the `search:` section of a study file to a checked search."""

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from mixup_core.problem import Problem
from sweeps.budget import Budget
from sweeps.reading.node_reader import NodeReader
from sweeps.reading.space_reader import SpaceReader
from sweeps.reading.strict_yaml import Node
from sweeps.reading.study_keys import SearchKeys
from sweeps.reading.tree_paths import TreePaths
from sweeps.search import Search
from sweeps.space import MAX_GRID

KEYS: Final = TreePaths(SearchKeys)


def read_search(
    read: NodeReader, node: Node, problem: Problem, seeds: Sequence[int], spaces: SpaceReader
) -> Search | None:
    """Return the search of a node; None if there was a problem.

    Args:
        read: Reads nodes, and collects faults.
        node: Value of the key `search`.
        problem: Of the study.
        seeds: Of the study.
        spaces: Reads its space.
    """
    keys: SearchKeys | None = read.section(KEYS, node)
    given = read.mapping(node)
    if keys is None or "space" not in given:
        return None
    is_grid = keys.sampler == "grid"
    space = spaces.space(given["space"], problem.unsearchable, is_grid=is_grid)
    points = keys.points
    if is_grid:
        points = None if space is None else space.size()
        if points is not None and points > MAX_GRID:
            read.report(given["space"], f"the grid has more than {MAX_GRID:,} points")
    elif "points" not in given:
        read.report(node, "missing key 'points'")
    names = (keys.objective,) if isinstance(keys.objective, str) else keys.objective
    if "objective" in given and not read.has_problem(given["objective"]):
        _check_objectives(read, given["objective"], names, problem.objectives)
    confirm_seeds = () if keys.confirm is None else keys.confirm.seeds
    _check_seeds(read, given, keys, seeds)
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
        confirm_seeds=confirm_seeds,
    )


def _check_seeds(
    read: NodeReader, given: Mapping[str, Node], keys: SearchKeys, seeds: Sequence[int]
) -> None:
    if keys.prune is not None and keys.prune.after >= len(seeds):
        values = f"(after={keys.prune.after}, seeds={len(seeds)})"
        read.report(given["prune"], f"`2 <= after < number of seeds` must hold, got {values}.")
    if keys.stop is not None and len(seeds) < 2:
        read.report(given["stop"], "needs two seeds or more, whose spread is the noise")
    confirm_seeds = () if keys.confirm is None else keys.confirm.seeds
    if shared := sorted(set(seeds).intersection(confirm_seeds)):
        text = f"must be seeds that the search does not use, got {shared[:5]}"
        read.report(given["confirm"], text)


def _check_objectives(
    read: NodeReader, node: Node, names: Sequence[str], known: Collection[str]
) -> None:
    for i, name in enumerate(names):
        if name.startswith("test/"):
            text = f"only val/* may be searched, got {name!r}: test data chooses nothing"
        elif name not in known:
            hint = read.did_you_mean(name, known)
            text = f"expected one of {', '.join(known)}, got {name!r}{hint}"
        elif name in names[:i]:
            text = f"got {name!r} twice"
        else:
            continue
        read.report(node, text)
    if not names:
        read.report(node, "needs at least one")
