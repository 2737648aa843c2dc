"""Passing stages: what a run stores to resume from, and removes once it is further on."""

from collections.abc import Iterable

from mixup_core.keys import stage_keys
from mixup_core.store.checkpoints import Store
from sweeps.study.study import Run

OWNER = "resumes"
"""Entry of the environment of a passing stage: the key of the run that may remove it."""


def let_results_stay(finished: Iterable[Run], store: Store) -> bool:
    """Let the last stages of runs stay if a longer run stored them on its way.

    Args:
        finished: Runs whose last stage is stored.
        store: Where.

    Returns:
        True if there were such stages. The longer run may have removed one of them meanwhile.
    """
    with_state = store.states.keys()
    ends = (stage_keys(run.config)[-1] for run in finished)
    stages = store.read_all([key for key in ends if key in with_state])
    passing = [key for key, stage in stages.items() if OWNER in stage.environment]
    for key in passing:
        store.forget(key, OWNER)
    return bool(passing)
