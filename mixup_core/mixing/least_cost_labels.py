"""least_cost_labels: labels the cells of a grid at minimal total cost, by a minimum graph cut."""

from __future__ import annotations

from mixup_core.arrays import NDArray, np, scipy

_SCALE = 2**20
"""Factor by which costs are multiplied before rounding: SciPy's maximum flow takes integers."""
_NEVER = 2**30
"""Capacity of arcs that a minimum cut must not cross."""


def least_cost_labels(
    costs: NDArray[np.float64], below: NDArray[np.float64], beside: NDArray[np.float64]
) -> NDArray[np.int64]:
    """Label each cell of a grid 0, 1, ..., so that the total cost is minimal: (rows, columns).

        sum of costs[cell, label] + sum of weight ((label - label') / (labels - 1))^2

    The first sum runs over cells, the second over pairs of neighbouring cells with the labels
    `label` and `label'`; `labels` is the number of possible labels. The minimum is exact up to the
    rounding of costs. Among labellings of equal cost, the one with the lowest labels is returned.

    `below` and `beside` are the weights, at least 0, of the borders to the next row and column.
    There are two labels or more. The total cost must be below 1,000, because of `_NEVER`.

    Source: Ishikawa 2003, IEEE TPAMI 25(10), the cut for convex functions of ordered labels.
    """
    rows, columns, labels = costs.shape
    cells, levels = np.arange(rows * columns).reshape(rows, columns), labels - 1
    first = np.concatenate([cells[:-1].ravel(), cells[:, :-1].ravel()])
    second = np.concatenate([cells[1:].ravel(), cells[:, 1:].ravel()])
    weights = np.concatenate([below.ravel(), beside.ravel()])
    weights = np.rint(weights * _SCALE / levels**2).astype(np.int64)
    # For labels i and j, the arcs between two cells cost weight (i - j)^2, plus
    # weight (i (levels - i) + j (levels - j)), which is subtracted from the cells' own costs.
    own = np.rint(costs * _SCALE).astype(np.int64).reshape(-1, labels)
    label = np.arange(labels)
    total = np.bincount(first, weights, rows * columns) + np.bincount(second, weights, own.shape[0])
    own -= (total[:, None] * (label * (levels - label))).astype(np.int64)
    own -= own.min(axis=1, keepdims=True)
    # Node 2 + cell * levels + k is on the side of the source 0 if the cell's label exceeds k.
    node = 2 + np.arange(rows * columns * levels).reshape(-1, levels)
    chain = np.concatenate([np.zeros_like(node[:, :1]), node, np.ones_like(node[:, :1])], axis=1)
    pairs = np.repeat(node[first], levels, axis=1), np.tile(node[second], (1, levels))
    start = [chain[:, :-1], node[:, 1:], pairs[0], pairs[1]]
    end = [chain[:, 1:], node[:, :-1], pairs[1], pairs[0]]
    both = np.repeat(weights, levels**2)
    capacities = [own, np.full_like(node[:, 1:], _NEVER), both, both]
    ends = tuple(np.concatenate([part.ravel() for part in side]) for side in (start, end))
    capacity = np.concatenate([part.ravel() for part in capacities]).astype(np.int32)
    network = scipy.sparse.csr_array((capacity, ends), shape=(2 + node.size,) * 2)
    left = network - scipy.sparse.csgraph.maximum_flow(network, 0, 1).flow
    left.eliminate_zeros()
    reached = scipy.sparse.csgraph.breadth_first_order(left, 0, return_predecessors=False)
    is_above = np.isin(node, reached)
    found: NDArray[np.int64] = is_above.sum(axis=1).reshape(rows, columns)
    return found
