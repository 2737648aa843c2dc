"""require_own_draws: checks that results depend on no global random generator."""

from collections.abc import Callable

from mixup_core.global_generators import seeded_globally, watched
from mixup_core.plugins.findings import BaselessError


def require_own_draws(run: Callable[[], object]) -> None:
    """Check that two runs give equal results although the global generators have different seeds.

    Args:
        run: Function that trains from the start and returns the results to compare.

    Raises:
        BaselessError: If the results differ, or a global generator was used.
    """
    found = []
    for seed in (1, 2):
        with seeded_globally(seed), watched() as drawn:
            found.append(run())
    if drawn:
        raise BaselessError(
            f"the code draws from the global generator of {' and '.join(drawn)}: draw only from "
            "the given generator (dropout and stochastic depth draw from the generator of torch)"
        )
    if found[0] != found[1]:
        raise BaselessError(
            "two runs with the same seed give different results; possible causes: a generator "
            "without a seed, a use of the time, or state outside of the network and the optimizer"
        )
