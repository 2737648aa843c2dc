"""Tuning: Tune gets a run as soon as it can start; placement, names of actors."""

from typing import Any
from unittest.mock import Mock

import pytest
from ray import cloudpickle, tune
from ray.tune.search import Searcher

from mixup_core.images.config import MixConfig, TrainConfig
from mixup_core.laws import Beta
from sweeps.running.placement import Slots
from sweeps.running.run_queue import RunQueue
from sweeps.running.tuning import LiveTrials, RunSearcher, _resources, _trainable
from sweeps.searching.sources import RunSource
from sweeps.state.stages import PlannedRun, plan_runs
from sweeps.study.study import Run, Study
from tests import toy


def test_ray_lists_actors_under_the_name_of_their_study() -> None:
    named = _trainable("digits", tune.PlacementGroupFactory([{"CPU": 1}]))
    sent = cloudpickle.loads(cloudpickle.dumps(named))
    assert sent.__qualname__ == repr(object.__new__(sent)) == "mixsweep digits"


@pytest.mark.parametrize(
    ("kind", "named", "label"),
    [
        (None, set(), None),
        ("accelerator_type:A100", {"accelerator_type:A100"}, None),
        ("zone=a", set(), [{"zone": "a"}]),
    ],
)
def test_runs_reserve_a_kind_of_node_by_its_resource_or_its_label(
    kind: str | None, named: set[str], label: list[dict[str, str]] | None
) -> None:
    slots = Slots(count=4, limit=4, gpus_per_run=0.5, on_gpu=True, kind=kind)
    asked = _resources(slots)
    assert asked.head_bundle_is_empty is False
    (bundle,) = asked.bundles
    assert bundle == {"CPU": 1, "GPU": 0.5} | dict.fromkeys(named, 0.001)
    assert asked == tune.PlacementGroupFactory(
        [bundle], **({} if label is None else {"bundle_label_selector": label})
    )


def _searcher(*switch_epochs: int) -> RunSearcher:
    runs = [
        Run(
            arm=str(switch),
            config=TrainConfig(
                epochs=10, batch_size=8, mix=MixConfig(law=Beta(alpha=1.0), switch_epoch=switch)
            ),
        )
        for switch in switch_epochs
    ]

    def parameters(planned: PlannedRun) -> dict[str, Any]:
        return {"arm": planned.run.arm, "keep": planned.keep, "first": planned.first_epoch}

    study = Study(name="s", description="", arms={}, seeds=(0,), baseline="erm", source="")
    source = RunSource(study, plan_runs(runs, {}).pending)
    return RunSearcher(RunQueue(source, lambda joined: None), parameters)


def _stored(epochs: int) -> dict[str, Any]:
    return {"rows": [{"epoch": epochs - 1}]}


def _suggested(searcher: RunSearcher, trial: str) -> dict[str, Any]:
    suggestion = searcher.suggest(trial)
    assert isinstance(suggestion, dict)
    return suggestion


def test_a_fork_is_suggested_only_after_its_stage_is_stored() -> None:
    searcher = _searcher(5, 10)
    assert _suggested(searcher, "a") == {"arm": "5", "keep": frozenset({5}), "first": 0}
    assert searcher.suggest("b") is None
    searcher.on_trial_result("a", _stored(4))
    searcher.on_trial_result("a", {"rows": []})
    assert searcher.suggest("b") is None
    searcher.on_trial_result("a", _stored(5))
    assert _suggested(searcher, "b") == {"arm": "10", "keep": frozenset(), "first": 5}


def test_abandoned_runs_except_the_failed_one_are_suggested_again() -> None:
    searcher = _searcher(5, 0)
    names = [_suggested(searcher, trial)["arm"] for trial in "ab"]
    live = searcher._queue.live
    assert [run.arm for run in live.values()] == names
    searcher.restart(next(iter(live.values())))
    assert live == {}
    assert _suggested(searcher, "c")["arm"] == names[1]
    assert searcher.suggest("d") is None


def test_a_run_that_a_faulty_device_releases_or_holds_is_suggested_again() -> None:
    searcher = _searcher(5)
    _suggested(searcher, "a")
    searcher.on_trial_complete("a", {"failure/kind": "declined"})
    _suggested(searcher, "b")
    searcher.on_trial_result("b", {"failure/kind": "held"})
    assert searcher.num_held == 1
    assert _suggested(searcher, "c")["arm"] == "5"


def test_a_fork_whose_first_state_is_lost_trains_the_epochs_again() -> None:
    searcher = _searcher(5, 10)
    _suggested(searcher, "a")
    searcher.on_trial_result("a", {"lost": (5,)})
    assert _suggested(searcher, "b") == {"arm": "10", "keep": frozenset({5}), "first": 0}


def test_a_stopped_searcher_suggests_no_run_and_finishes_with_its_trials() -> None:
    searcher = _searcher(5, 10)
    _suggested(searcher, "a")
    searcher._queue._source.is_stopped = True
    searcher.on_trial_result("a", _stored(5))
    assert searcher.suggest("b") is None
    searcher.on_trial_complete("a", {})
    assert searcher.suggest("b") == Searcher.FINISHED


def test_forks_of_a_failed_trunk_share_the_deepest_fork_as_new_trunk() -> None:
    searcher = _searcher(10, 8, 6, 4)
    trunk = _suggested(searcher, "a")
    assert trunk == {"arm": "10", "keep": frozenset({4, 6, 8}), "first": 0}
    searcher.on_trial_result("a", _stored(4))
    assert _suggested(searcher, "b")["arm"] == "4"
    searcher.on_trial_complete("a", None, error=True)
    heir = _suggested(searcher, "c")
    assert heir == {"arm": "8", "keep": frozenset({4, 6, 8}), "first": 0}
    assert searcher.suggest("d") is None
    searcher.on_trial_result("c", _stored(6))
    assert _suggested(searcher, "d")["arm"] == "6"
    for trial in "bcd":
        searcher.on_trial_complete(trial, {})
    assert searcher.suggest("e") == Searcher.FINISHED


def test_waiting_trials_start_in_the_order_of_their_addition() -> None:
    scheduler = LiveTrials()
    trials = [
        Mock(status="waits", PENDING="waits", trial_id=f"{number * 7919 % 101:03d}")
        for number in range(100)
    ]
    controller = Mock(spec=["get_live_trials"])  # it fails if all past trials are read
    controller.get_live_trials.return_value = set(trials)
    for trial in trials:
        scheduler.on_trial_add(controller, trial)
    for trial in trials:
        assert scheduler.choose_trial_to_run(controller) is trial
        trial.status = "RUNNING"
    assert scheduler.choose_trial_to_run(controller) is None


def test_tune_can_snapshot_a_searcher_with_an_attribute_that_cannot_be_pickled() -> None:
    searcher = _searcher(0)
    searcher.lock = __import__("threading").Lock()
    assert len(cloudpickle.dumps(searcher)) < 10_000


def test_a_pupil_waits_for_its_teacher_to_end_or_fail(
    toy_problem: None,
) -> None:
    arms = {
        "pupil": toy.ToyConfig(epochs=3, teacher="master"),
        "late": toy.ToyConfig(epochs=4, drift=1.0, turn=0, teacher="master"),
        "master": toy.ToyConfig(epochs=5),
    }
    study = Study(name="school", description="", arms=arms, seeds=(0,), baseline="pupil", source="")
    plan = plan_runs(study.runs(), {}, kept=study.teachers())

    def parameters(planned: PlannedRun) -> dict[str, Any]:
        return {"arm": planned.run.arm, "start": planned.first_epoch}

    for ending in ("stored", "failed"):
        queue = RunQueue(RunSource(study, plan.pending), lambda joined: None)
        searcher = RunSearcher(queue, parameters)
        assert _suggested(searcher, "a")["arm"] == "master"
        assert searcher.suggest("b") is None
        if ending == "stored":
            searcher.on_trial_result("a", _stored(4))
            assert searcher.suggest("b") is None
            searcher.on_trial_result("a", _stored(5))
        else:
            searcher.on_trial_complete("a", None, error=True)
        assert _suggested(searcher, "b") == {"arm": "pupil", "start": 0}
        assert searcher.suggest("c") is None, "the other shares the first epochs of the first"
        searcher.on_trial_result("b", _stored(3))
        assert _suggested(searcher, "c") == {"arm": "late", "start": 3}
