"""Holm: p values adjusted for the size of their family."""

from collections.abc import Sequence


def holm(ps: Sequence[float]) -> tuple[float, ...]:
    """Return Holm's adjusted p values, in the order given; the family is all of `ps`.

    Sorted upwards, the i-th smallest of m (i from 0) is multiplied by m - i; a running maximum
    keeps the order and 1 is the ceiling.

    Source: Holm 1979, A simple sequentially rejective multiple test procedure.
    """
    adjusted = [0.0] * len(ps)
    reached = 0.0
    for rank, place in enumerate(sorted(range(len(ps)), key=ps.__getitem__)):
        reached = max(reached, min(1.0, (len(ps) - rank) * ps[place]))
        adjusted[place] = reached
    return tuple(adjusted)
