"""Passing stages: stages that a run stores only to resume from, and deletes after newer ones."""

from collections.abc import Iterable

from mixup_core.keys import stage_keys
from mixup_core.store.checkpoints import Store
from sweeps.study.study import Run

OWNER = "resumes"
"""Key in the environment of a passing stage; its value is the key of the run that may delete it."""


def let_results_stay(finished: Iterable[Run], store: Store) -> bool:
    """Keep the last stages of finished runs that a longer run would delete as its passing stages.

    Args:
        finished: Runs whose last stage is stored.
        store: The store.

    Returns:
        True if there were such stages. The caller should then read the store again, because the
            longer run may have deleted one.
    """
    with_state = store.states.keys()
    ends = (stage_keys(run.config)[-1] for run in finished)
    stages = store.read_all([key for key in ends if key in with_state])
    passing = [key for key, stage in stages.items() if OWNER in stage.environment]
    for key in passing:
        store.forget(key, OWNER)
    return bool(passing)
