import pytest

from mixup_core.store.manifests import Failure
from sweeps.study.study import Study
from sweeps.tracking.rows import RunProgress
from tests.sweeps.tracked import result_of


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
