"""Passing stages: stages that a run stores only to resume from; deleted once newer ones exist."""

from collections.abc import Iterable

from mixup_core.keys import stage_keys
from mixup_core.store.checkpoints import Store
from sweeps.study.study import Run

OWNER = "resumes"
"""Key in the environment of a passing stage; its value is the key of the run that may delete it."""


def let_results_stay(finished: Iterable[Run], store: Store) -> bool:
    """Make the last stages of finished runs permanent, so that other runs do not delete them.

    For example, a run of 20 epochs has its first 10 in common with a finished run of 10. The longer
    run may have stored the stage after 10 epochs only to resume from, and would then delete it
    after storing newer ones.
    """
    with_state = store.states.keys()
    ends = (stage_keys(run.config)[-1] for run in finished)
    stages = store.read_all([key for key in ends if key in with_state])
    passing = [key for key, stage in stages.items() if OWNER in stage.environment]
    for key in passing:
        store.forget(key, OWNER)
    return bool(passing)
