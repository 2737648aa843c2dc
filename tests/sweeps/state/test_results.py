from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from mixup_core.images.config import TrainConfig
from mixup_core.keys import stage_keys
from mixup_core.predictions import Predictions, Split
from mixup_core.store.checkpoints import Store
from sweeps.state.results import (
    Addition,
    diverged,
    ended_on_budget,
    failures_of,
    read_predictions,
    read_results,
    trained_by,
)
from sweeps.state.stages import plan_study
from sweeps.study.budget import Budget
from sweeps.study.study import Run, Study
from tests import toy
from tests.filled import fail, put_epochs
from tests.reports.synthetic import study_of

RUN = Run(arm="erm", config=TrainConfig(epochs=3, batch_size=8))


def test_entries_of_stages_of_earlier_launches_are_read(store: Store) -> None:
    archive, key = "ab" * 32, stage_keys(RUN.config)[0]
    put_epochs(store, RUN, 1)
    stage = store.read(key)
    entries = {"tried": f"{RUN.key} 3", "added": f"{archive} 1700000000000 me on node"}
    earlier = replace(stage, environment=entries)
    addition = Addition(archive=archive, at_ms=1_700_000_000_000, by="me on node")
    assert (trained_by(earlier), Addition.of(earlier)) == ((RUN.key, 3), addition)
    assert str(addition) == entries["added"]


@pytest.mark.parametrize("kind", ["diverged", "failed"])
def test_a_failure_is_the_outcome_unless_every_epoch_is_stored(store: Store, kind: Any) -> None:
    put_epochs(store, RUN, 1)
    failure = fail(store, RUN, kind)
    assert read_results([RUN], store)[0].outcome == kind
    put_epochs(store, RUN, 3)
    (result,) = read_results([RUN], store)
    assert result.outcome == "complete"
    assert result.failure in {None, failure}


def test_only_a_complete_run_has_predictions_and_damaged_ones_are_ignored(store: Store) -> None:
    key = stage_keys(RUN.config)[-1]
    logits = {"": np.eye(3, dtype=np.float32)}
    split = Split(labels=np.arange(3), images="00" * 16, logits=logits)
    put_epochs(store, RUN, 2)
    assert read_predictions(read_results([RUN], store), store) == (None,)
    put_epochs(store, RUN, 3)
    (result,) = read_results([RUN], store)
    assert read_predictions([result], store) == (None,)
    store.predictions.write(key, result.records[-1], b"no archive")
    assert read_predictions([result], store) == (None,)
    store.predictions.remove([key])
    content = Predictions(splits={"test": split}).to_bytes()
    store.predictions.write(key, result.records[-1], content)
    (found,) = read_predictions([result], store)
    np.testing.assert_array_equal(found.splits["test"].logits[""], logits[""])


def test_a_study_ends_on_its_budget_only_without_interrupted_runs(store: Store) -> None:
    study = study_of("s", {"erm": RUN.config}, (0, 1, 2))
    limited = replace(study, budget=Budget(runs=2))
    runs = study.runs()

    def ended(study: Study = limited) -> str | None:
        return ended_on_budget(study, read_results(runs, store))

    put_epochs(store, runs[0], 3)
    assert ended() is None
    put_epochs(store, runs[1], 2)
    assert ended() is None
    put_epochs(store, runs[1], 3)
    assert ended() == "used up its budget of 2 runs, after 2 of 3 runs"
    assert ended(study) is None
    put_epochs(store, runs[2], 3)
    assert ended() is None


@pytest.fixture
def school(toy_problem: None) -> Study:
    """Study with a teacher, its pupil, a pupil of the pupil, and an arm without teacher."""
    arms = {
        "grandchild": toy.ToyConfig(epochs=3, drift=1.0, teacher="child"),
        "child": toy.ToyConfig(epochs=4, drift=2.0, teacher="master"),
        "master": toy.ToyConfig(epochs=5, drift=3.0),
        "still": toy.ToyConfig(epochs=3),
    }
    return study_of("school", arms, (0, 1))


def test_pupils_of_a_diverged_teacher_get_its_reason_and_are_not_trained(
    school: Study, store: Store
) -> None:
    key = fail(store, school.runs_of("master")[0], "diverged", "loss=inf", 2).run_key
    found = {(r.run.arm, r.run.seed): r for r in read_results(school.runs(), store)}
    for arm in ("child", "grandchild"):
        failed, other = found[arm, 0], found[arm, 1]
        assert (failed.outcome, other.outcome) == ("diverged", "missing")
        assert failed.failure.message == "the teacher of this run diverged: loss=inf"
    assert found["still", 0].outcome == "missing"
    planned = {(p.run.arm, p.run.seed) for p in plan_study(school, store).pending}
    assert planned == {("still", 0), *((arm, 1) for arm in school.arms)}
    stored = set(store.failures.read_all())
    assert stored == {key}, "nothing is stored of a run that was never tried"
    store.failures.remove(key)
    assert len(plan_study(school, store).pending) == 8
    assert not failures_of(school.runs(), store)


def test_a_diverged_run_that_an_archive_has_whole_is_finished(school: Study, store: Store) -> None:
    run, _ = school.runs_of("still")
    fail(store, run, "diverged")
    put_epochs(store, run, 3)
    assert plan_study(school.part(["still"]), store).finished == (run,)


def test_a_failed_teacher_and_its_pupils_are_retried(school: Study, store: Store) -> None:
    key = fail(store, school.runs_of("master")[0]).run_key
    assert set(failures_of(school.runs(), store)) == {key}
    assert diverged(failures_of(school.runs(), store)) == set()
    assert len(plan_study(school, store).pending) == 8


def test_a_finished_pupil_of_a_diverged_teacher_stays_finished(school: Study, store: Store) -> None:
    fail(store, school.runs_of("master")[0], "diverged")
    run, _ = school.runs_of("child")
    put_epochs(store, run, 4, b"end")
    (result,) = read_results([run], store)
    assert result.outcome == "complete"
    plan = plan_study(school, store)
    assert [(finished.arm, finished.seed) for finished in plan.finished] == [("child", 0)]
    assert ("grandchild", 0) in {(p.run.arm, p.run.seed) for p in plan.pending}
