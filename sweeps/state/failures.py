"""Failures: the reasons why runs of a study ended early, including a diverged teacher."""

from collections.abc import Iterable, Mapping

from mixup_core.keys import run_key, stage_keys
from mixup_core.store.checkpoints import Store
from mixup_core.store.manifests import Failure
from sweeps.study.study import Run


def failures_of(runs: Iterable[Run], store: Store) -> Mapping[str, Failure]:
    """Return the failures of runs, and those that follow from a diverged teacher, by run key.

    A given run whose teacher diverged counts as diverged, with the teacher's message. It cannot be
    trained until the teacher's failure is deleted.
    """
    if not (listed := store.failures.keys()):
        return {}  # the usual case; keys are slow to compute
    by_key = {run.key: run for run in runs}
    teachers = {run_key(run.teacher) for run in by_key.values() if run.teacher is not None}
    failures = store.failures.read_all(listed & (by_key.keys() | teachers))
    if all(failure.kind != "diverged" for failure in failures.values()):
        return failures
    stored = store.keys()

    def of_teachers(run: Run) -> Failure | None:
        if run.teacher is None or stage_keys(run.teacher)[-1] in stored:
            return None
        key = run_key(run.teacher)
        if (failure := failures.get(key)) is not None and failure.kind == "diverged":
            return failure
        return of_teachers(by_key[key]) if key in by_key else None

    taken_over = {
        key: Failure(
            run_key=key,
            kind="diverged",
            message=f"the teacher of this run diverged: {failure.message}",
            epoch=None,
            attempts=0,
        )
        for key, run in by_key.items()
        if stage_keys(run.config)[-1] not in stored and (failure := of_teachers(run)) is not None
    }
    return {**failures, **taken_over}


def diverged(failures: Mapping[str, Failure]) -> frozenset[str]:
    """Return the run keys of the diverged runs, which are not tried again."""
    return frozenset(key for key, failure in failures.items() if failure.kind == "diverged")


def spell_attempts(failure: Failure) -> str:
    """Return the number of attempts at a failed run as text, such as `3 attempts`."""
    return "1 attempt" if failure.attempts == 1 else f"{failure.attempts} attempts"
