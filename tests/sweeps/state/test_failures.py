from pathlib import Path

import pytest

from mixup_core.keys import stage_keys
from mixup_core.records import EpochRecord
from mixup_core.store.checkpoints import Store
from mixup_core.store.manifests import EpochFacts, Failure
from sweeps.state.failures import diverged, failures_of
from sweeps.state.results import read_results
from sweeps.state.stages import plan_study
from sweeps.study.study import Study
from tests import toy


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(str(tmp_path))


@pytest.fixture
def school(toy_problem: None) -> Study:
    """Study with a teacher, its pupil, a pupil of the pupil, and an arm without teacher."""
    arms = {
        "grandchild": toy.ToyConfig(epochs=3, drift=1.0, teacher="child"),
        "child": toy.ToyConfig(epochs=4, drift=2.0, teacher="master"),
        "master": toy.ToyConfig(epochs=5, drift=3.0),
        "still": toy.ToyConfig(epochs=3),
    }
    return Study(
        name="school", description="", arms=arms, seeds=(0, 1), baseline="still", source=""
    )


def _fail(study: Study, store: Store, kind: str) -> str:
    """Let the teacher fail at seed 0, and return its key."""
    master, _ = study.runs_of("master")
    store.failures.write(
        Failure(run_key=master.key, kind=kind, message="loss=inf", epoch=2, attempts=1)  # type: ignore[arg-type]
    )
    return master.key


def test_pupils_of_a_diverged_teacher_get_its_reason_and_are_not_trained(
    school: Study, store: Store
) -> None:
    key = _fail(school, store, "diverged")
    found = {(r.run.arm, r.run.seed): r for r in read_results(school.runs(), store)}
    for arm in ("child", "grandchild"):
        failed, other = found[arm, 0], found[arm, 1]
        assert (failed.outcome, other.outcome) == ("diverged", "missing")
        assert failed.failure is not None
        assert failed.failure.message == "the teacher of this run diverged: loss=inf"
    assert found["still", 0].outcome == "missing"
    planned = {(p.run.arm, p.run.seed) for p in plan_study(school, store).pending}
    assert planned == {("still", 0), *((arm, 1) for arm in school.arms)}
    stored = set(store.failures.read_all())
    assert stored == {key}, "nothing is stored of a run that was never tried"
    store.failures.remove(key)
    assert len(plan_study(school, store).pending) == 8
    assert not failures_of(school.runs(), store)


def test_a_failed_teacher_and_its_pupils_are_retried(school: Study, store: Store) -> None:
    key = _fail(school, store, "failed")
    assert set(failures_of(school.runs(), store)) == {key}
    assert diverged(failures_of(school.runs(), store)) == set()
    assert len(plan_study(school, store).pending) == 8


def test_a_finished_pupil_of_a_diverged_teacher_stays_finished(school: Study, store: Store) -> None:
    _fail(school, store, "diverged")
    run, _ = school.runs_of("child")
    store.write(
        stage_keys(run.config)[-1],
        records=[EpochRecord(epoch=epoch, metrics={}) for epoch in range(4)],
        facts=[EpochFacts(seconds=1.0, stored_at_ms=1)] * 4,
        environment={},
        state=b"end",
    )
    (result,) = read_results([run], store)
    assert result.outcome == "complete"
    plan = plan_study(school, store)
    assert [(finished.arm, finished.seed) for finished in plan.finished] == [("child", 0)]
    assert ("grandchild", 0) in {(p.run.arm, p.run.seed) for p in plan.pending}
