from dataclasses import replace

import pytest

from mixup_core.store.manifests import Failure
from sweeps.study.study import Study
from sweeps.tracking.rows import RunProgress
from tests.sweeps.tracked import epoch_of, result_of


def test_new_epochs_are_added_to_known_ones_in_order(study: Study) -> None:
    run = study.runs()[0]
    known = RunProgress.stored(result_of(run, 1))
    further = known.trained([epoch_of(run, 2), epoch_of(run, 0)])
    assert further.epochs == (epoch_of(run, 0), epoch_of(run, 2))
    assert (further.outcome, further.is_live) == ("partial", True)


def test_a_known_epoch_is_not_changed(study: Study) -> None:
    run = study.runs()[0]
    known = RunProgress.stored(result_of(run, 1))
    record, facts = epoch_of(run, 0)
    assert known.trained([(record, replace(facts, stored_at_ms=5))]) is known
    assert known.trained([]) is known


@pytest.mark.parametrize(
    ("epochs", "kind", "outcome", "failure"),
    [(3, "failed", "complete", ""), (2, "diverged", "diverged", "nan"), (0, None, "missing", "")],
)
def test_a_failure_counts_unless_the_run_is_complete(
    study: Study, epochs: int, kind: str | None, outcome: str, failure: str
) -> None:
    run = study.runs()[0]
    recorded = kind and Failure(run_key=run.key, kind=kind, message="nan", epoch=1, attempts=1)
    progress = RunProgress.stored(result_of(run, epochs, recorded))
    assert (progress.outcome, progress.failure) == (outcome, failure)
    assert not progress.is_live
