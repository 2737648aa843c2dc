"""Lowest: the expected lowest of n random points of a search."""

import math
from collections.abc import Sequence


def expected_lowest(values: Sequence[float]) -> tuple[float, ...]:
    """Return the mean lowest of n of some values, over all choices of n, for n from 1 to all.

    Of N values in rising order the i-th, i from 1, is the lowest of n in C(N - i, n - 1) of
    C(N, n) choices. It is what a search by n random points finds on average; of points proposed
    one after the other it says nothing.

    Source: Dodge et al. 2019, arXiv:1909.03004, section 3; drawn without replacement, as Tang et
    al. 2020, arXiv:2004.13705, propose.
    """
    rising, total = sorted(values), len(values)
    return tuple(
        sum(
            value * math.comb(total - place, n - 1) / math.comb(total, n)
            for place, value in enumerate(rising, 1)
        )
        for n in range(1, total + 1)
    )
