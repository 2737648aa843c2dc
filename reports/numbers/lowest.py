"""Expected lowest: the lowest value that a random search with n points finds on average."""

import math
from collections.abc import Sequence


def expected_lowest(values: Sequence[float]) -> tuple[float, ...]:
    """Return, for n = 1, 2, ..., the expected minimum of n values sampled without replacement.

    With N values in rising order, the i-th (i from 1) is the minimum of C(N - i, n - 1) of the
    C(N, n) possible draws. This is the mean result of a search with n random points. It does not
    describe searches in which a point depends on earlier ones.

    Args:
        values: The N values, for example the error of each point of a random search.

    Source: Dodge et al. 2019, arXiv:1909.03004, section 3; without replacement, as Tang et al.
    2020, arXiv:2004.13705, propose.
    """
    rising, total = sorted(values), len(values)
    return tuple(
        sum(
            value * math.comb(total - place, n - 1) / math.comb(total, n)
            for place, value in enumerate(rising, 1)
        )
        for n in range(1, total + 1)
    )
