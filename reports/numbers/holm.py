"""Holm's procedure: p values adjusted for the size of their family."""

from collections.abc import Sequence


def holm(ps: Sequence[float]) -> tuple[float, ...]:
    """Return p values adjusted by Holm's procedure; all of `ps` are one family of tests.

    The results are in the order of `ps`. Sorted in rising order, the i-th of m values (i from 0) is
    multiplied by m - i. A product below an earlier one is raised to it, and none exceeds 1.

    Source: Holm 1979, A simple sequentially rejective multiple test procedure.
    """
    adjusted = [0.0] * len(ps)
    reached = 0.0
    for rank, place in enumerate(sorted(range(len(ps)), key=ps.__getitem__)):
        reached = max(reached, min(1.0, (len(ps) - rank) * ps[place]))
        adjusted[place] = reached
    return tuple(adjusted)
