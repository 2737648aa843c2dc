import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from mixup_core.images.config import MixConfig, TrainConfig
from mixup_core.images.data.data_config import DataConfig
from mixup_core.keys import stage_keys
from mixup_core.laws import Beta, Erm
from mixup_core.store.checkpoints import Store
from sweeps.running.assignment import Assignment
from sweeps.running.storing import Storing
from sweeps.state.results import read_results
from sweeps.state.stages import (
    Need,
    Plan,
    PlannedRun,
    plan_keeping_results,
    plan_runs,
    plan_study,
    proven_stages,
    spare_bytes,
)
from sweeps.study.study import Run, Study
from tests import toy
from tests.filled import fail, put_epochs
from tests.reports.synthetic import study_of


def _run(arm: str, **values: Any) -> Run:
    return Run(arm=arm, config=TrainConfig(batch_size=8, **values))


def _switching(
    switch_epochs: Sequence[int],
    epochs: int = 100,
    alphas: Sequence[float] = (1.0,),
    seeds: int = 1,
) -> list[Run]:
    return [
        _run(
            f"{alpha}@{switch}",
            epochs=epochs,
            seed=seed,
            mix=MixConfig(law=Beta(alpha=alpha), switch_epoch=switch),
        )
        for seed in range(seeds)
        for alpha in alphas
        for switch in switch_epochs
    ]


@pytest.mark.parametrize(
    ("switch_epochs", "alphas", "naive", "planned"),
    [
        ([0, 50, 100], (1.0,), 300, 250),
        (range(0, 101, 5), (1.0,), 2100, 1150),
        (range(101), (1.0,), 10100, 5150),
        (range(80, 101, 2), (1.0,), 1100, 210),
        (range(0, 101, 10), (0.5, 1.0, 2.0), 3300, 1750),
    ],
)
def test_shared_epochs_are_counted_once(
    switch_epochs: Sequence[int], alphas: Sequence[float], naive: int, planned: int
) -> None:
    plan = plan_runs(_switching(switch_epochs, alphas=alphas), {})
    assert (plan.epochs_naive, plan.epochs_planned) == (naive, planned)


def _order(runs: Sequence[Run], stored: Mapping[str, bool] = MappingProxyType({})) -> str:
    return " ".join(planned.run.arm for planned in plan_runs(runs, stored).pending)


def test_the_longest_work_is_planned_first() -> None:
    """A run that others wait for counts up to the end of the last of them."""
    alone = [
        _run(f"{epochs}", epochs=epochs, mix=MixConfig(law=Beta(alpha=alpha)))
        for alpha, epochs in ((1.0, 20), (2.0, 50), (4.0, 40))
    ]
    sharing = _switching([10, 20], epochs=45, alphas=(8.0,))
    assert _order([*alone, *sharing]) == "50 8.0@10 40 8.0@20 20"
    resumed = _switching([60, 100], alphas=(8.0,))
    stored = {stage_keys(resumed[0].config)[49]: True}
    # 50 epochs left, then 40 of the other's
    assert _order([*resumed, alone[1]], stored) == "8.0@60 50 8.0@100"
    assert _order([*resumed, *_switching([0], epochs=60)], stored) == "1.0@0 8.0@60 8.0@100"
    assert _order([_run(f"{seed}", epochs=20, seed=seed) for seed in (0, 1)]) == "0 1"
    lengths = [_run(f"{epochs}", epochs=epochs) for epochs in (10, 25)]
    assert _order([*lengths, _run("24", epochs=24, mix=alone[0].config.mix)]) == "10 24 25"
    digits = [
        _run(f"{n}", epochs=epochs, data=DataConfig(num_train=n))
        for n, epochs in ((1200, 20), (1000, 30))
    ]
    assert _order(digits) == "1000 1200", "30,000 images"


def test_runs_that_compute_the_same_are_trained_once_and_keep_no_state() -> None:
    (run,) = _switching([0])
    erm = Run(arm="erm", config=replace(run.config, mix=MixConfig(law=Erm())))
    first, second = plan_runs([run, erm], {}).pending
    assert (first.run, first.epochs_to_train, first.keep) == (run, 100, frozenset())
    assert (second.run, second.epochs_to_train, second.keep) == (erm, 0, frozenset())
    assert second.needs == (Need(run=run.key, epoch=100, use="start"),)


def test_arms_that_differ_from_the_first_epoch_share_no_epoch() -> None:
    laws = (Erm(), Beta(alpha=1.0), Beta(alpha=2.0))
    runs = [_run(str(law), epochs=9, mix=MixConfig(law=law)) for law in laws]
    plan = plan_runs(runs, {})
    assert plan.epochs_planned == plan.epochs_naive == 27
    assert [planned.run for planned in plan.pending] == runs


def _simulate(plan: Plan, stored: dict[str, bool]) -> list[str]:
    """Train a plan in its order, keeping only the states that it keeps."""
    trained: list[str] = []
    done: set[str] = set()
    for planned in plan.pending:
        assert {need.run for need in planned.needs} <= done, "trunks come before their forks"
        keys = stage_keys(planned.run.config)
        if 0 < planned.first_epoch < len(keys):
            assert stored[keys[planned.first_epoch - 1]], "a run starts from a stored state"
        trained += keys[planned.first_epoch :]
        stored |= dict.fromkeys((keys[epoch - 1] for epoch in planned.keep), True)
        stored.setdefault(keys[-1], False)
        done.add(planned.run.key)
    return trained


def test_following_a_plan_trains_every_stage_once_from_kept_states() -> None:
    rng = random.Random(0)
    for _ in range(200):
        runs = _switching(
            sorted(rng.sample(range(13), rng.randint(1, 6))), 12, rng.sample([0.5, 1.0, 2.0], 2)
        )
        rng.shuffle(runs)
        all_keys = {key for run in runs for key in stage_keys(run.config)}
        stored: dict[str, bool] = {}
        for run in rng.sample(runs, rng.randint(0, len(runs))):
            keys = stage_keys(run.config)
            for key in keys[: rng.randint(0, len(keys))]:
                stored[key] = rng.random() < 0.5
        before = dict(stored)
        plan = plan_runs(runs, stored)
        trained = _simulate(plan, stored)
        assert len(trained) == len(set(trained)) == plan.epochs_planned
        assert all(stage_keys(run.config)[-1] in stored for run in runs)
        assert set(trained) <= all_keys
        needless = [key for key in trained if before.get(key)]
        assert not needless, "a stage stored with its state is not trained again"


def test_a_finished_run_is_not_planned_with_or_without_its_state() -> None:
    runs = _switching([0, 50, 100])
    finished = stage_keys(runs[1].config)[-1]
    for has_state in (True, False):
        plan = plan_runs(runs, {finished: has_state})
        assert plan.finished == (runs[1],)
        assert plan.epochs_naive == 300


def test_a_run_resumes_from_its_deepest_stage_with_a_stored_state() -> None:
    (run,) = _switching([100])
    keys = stage_keys(run.config)
    (planned,) = plan_runs([run], {keys[29]: True, keys[59]: False}).pending
    assert (planned.start, planned.epochs_to_train) == (30, 70)
    short, long = (_switching([0], epochs=epochs)[0] for epochs in (10, 25))
    assert plan_runs([long], {stage_keys(short.config)[-1]: True}).epochs_planned == 15


def test_the_trunk_is_the_run_that_shares_the_most_epochs() -> None:
    (trunk,) = (p for p in plan_runs(_switching([25, 50, 100]), {}).pending if not p.needs)
    assert trunk.run.arm == "1.0@50"


def test_a_finished_run_with_a_lost_state_to_keep_is_planned_again() -> None:
    (run,) = _switching([100])
    keys = stage_keys(run.config)
    lost = {keys[-1]: False, keys[29]: True}
    assert plan_runs([run], lost).finished == (run,)
    (planned,) = plan_runs([run], lost, kept=keys).pending
    assert (planned.start, planned.epochs_to_train, planned.keep) == (30, 70, {100})
    assert plan_runs([run], lost | {keys[-1]: True}, kept=keys).finished == (run,)


@pytest.fixture
def school(toy_problem: None) -> Study:
    """Study with a teacher, two pupils, and an arm without teacher."""
    arms = {
        "pupil": toy.ToyConfig(epochs=3, drift=1.0, teacher="master"),
        "still": toy.ToyConfig(epochs=3),
        "late pupil": toy.ToyConfig(epochs=3, drift=1.0, turn=2, teacher="master"),
        "master": toy.ToyConfig(epochs=5, drift=2.0),
    }
    return study_of("school", arms, (0, 1))


def test_a_teacher_is_trained_before_its_pupils_and_its_last_state_is_kept(school: Study) -> None:
    plan = plan_runs(school.runs(), {})
    assert plan.epochs_planned == 2 * (3 + 3 + 1 + 5), "pupils share their first epochs"
    masters = {planned.run.key: planned for planned in plan.pending[:2]}
    assert [(p.run.arm, p.keep) for p in masters.values()] == [("master", {5})] * 2
    for planned in plan.pending:
        taught = [need for need in planned.needs if need.use == "teacher"]
        assert len(taught) == ("pupil" in planned.run.arm)
        for need in taught:
            assert (masters[need.run].run.seed, need.epoch) == (planned.run.seed, 5)


def test_a_stored_teacher_is_not_planned_and_a_lost_one_is_retrained(school: Study) -> None:
    masters = [stage_keys(run.config)[-1] for run in school.runs_of("master")]
    stored = plan_runs(school.runs(), dict.fromkeys(masters, True), kept=school.teachers())
    assert not any(need.use == "teacher" for p in stored.pending for need in p.needs)
    lost = plan_runs(school.runs(), dict.fromkeys(masters, False), kept=school.teachers())
    assert [p.run.arm for p in lost.pending].count("master") == 2


def test_a_teacher_with_a_damaged_state_is_planned_in_the_same_launch(
    school: Study, store: Store, tmp_path: Path
) -> None:
    for run in school.runs_of("master"):
        put_epochs(store, run, 5, b"taught")
    damaged, _ = sorted(path for path in tmp_path.glob("store/states/**/*") if path.is_file())
    damaged.write_bytes(bytes(damaged.stat().st_size))
    arms = [planned.run.arm for planned in plan_study(school, store).pending]
    assert arms.count("master") == 1


def test_a_teacher_without_a_state_is_trained_again_for_unfinished_pupils_only(
    school: Study, store: Store
) -> None:
    heir = toy.ToyConfig(epochs=4, drift=3.0, teacher="late pupil")
    study = replace(school, arms={**school.arms, "heir": heir})
    for run in study.runs():
        put_epochs(store, run, run.config.epochs)  # an archive brings no states
    assert not plan_study(study, store).pending
    lost, _ = study.runs_of("heir")
    store.delete(stage_keys(lost.config)[-1])
    plan = [(planned.run.arm, planned.run.seed) for planned in plan_study(study, store).pending]
    assert plan == [("master", 0), ("late pupil", 0), ("heir", 0)]


@pytest.mark.parametrize("arms", [("first", "second", "third"), ("third", "second", "first")])
def test_a_teacher_that_has_a_teacher_is_trained_between_the_two(
    school: Study, store: Store, arms: tuple[str, ...]
) -> None:
    configs = {
        "first": toy.ToyConfig(epochs=2, drift=3.0),
        "second": toy.ToyConfig(epochs=3, drift=2.0, teacher="first"),
        "third": toy.ToyConfig(epochs=5, drift=1.0, teacher="second"),
    }
    study = replace(school, arms={arm: configs[arm] for arm in arms}, seeds=(0,), baseline="first")
    plan = plan_runs(study.runs(), {}, kept=study.teachers())
    assert [planned.run.arm for planned in plan.pending] == ["first", "second", "third"]
    keys = [planned.run.key for planned in plan.pending]
    assert [[need.run for need in p.needs] for p in plan.pending] == [[], [keys[0]], [keys[1]]]
    first, second, _ = (planned.run for planned in plan.pending)
    put_epochs(store, first, 2)
    put_epochs(store, second, 3, b"taught")
    assert [planned.run.arm for planned in plan_study(study, store).pending] == ["third"]


def test_a_pupil_that_its_teacher_does_not_change_has_the_stages_of_the_teacher(
    school: Study,
) -> None:
    master = school.runs_of("master")[0]
    copy = replace(master, arm="copy", teacher=master.config)
    assert plan_runs([master, copy], {}).epochs_planned == 5


def test_a_run_with_a_damaged_last_manifest_is_planned_in_the_same_launch(
    school: Study, store: Store, tmp_path: Path
) -> None:
    study = school.part(["still"])
    for run in study.runs():
        put_epochs(store, run, 3)
    assert len(plan_study(study, store).finished) == 2
    damaged, _ = sorted(tmp_path.glob("store/stages/*/*.json"))
    damaged.write_bytes(damaged.read_bytes()[:-9])
    plan = plan_study(study, store)
    assert [len(plan.finished), len(plan.pending)] == [1, 1]


def test_an_added_run_waits_for_a_stage_in_training() -> None:
    trunk, fork = plan_runs(_switching([50, 100]), {}).pending
    assert (trunk.keep, fork.first_epoch) == ({50}, 50)
    (joining,) = plan_runs([fork.run], {}, [trunk]).pending
    assert joining.needs == (Need(run=trunk.run.key, epoch=50, use="start"),)
    assert joining.epochs_to_train == 50
    key = stage_keys(trunk.run.config)[49]
    gone_on = replace(trunk, start=50)  # it stands on that stage, and will not store it again
    (joining,) = plan_runs([fork.run], {}, [gone_on]).pending
    assert (joining.needs, joining.first_epoch) == ((), 0)
    (joining,) = plan_runs([fork.run], {key: True}, [trunk]).pending
    assert (joining.needs, joining.start) == ((), 50)


def test_a_pupil_waits_for_a_teacher_in_training(school: Study) -> None:
    plan = plan_runs(school.runs(), {}, kept=school.teachers())
    masters = [planned for planned in plan.pending if planned.run.arm == "master"]
    pupils = plan_runs(school.runs_of("pupil"), {}, masters).pending
    assert [[need.run for need in pupil.needs] for pupil in pupils] == [
        [master.run.key] for master in masters
    ]
    stored = {stage_keys(master.run.config)[-1]: True for master in masters}
    pupils = plan_runs(school.runs_of("pupil"), stored, masters).pending
    assert [pupil.needs for pupil in pupils] == [(), ()]


def test_a_diverged_run_is_not_planned_and_final_states_are_kept_on_request(
    school: Study, store: Store
) -> None:
    study = school.part(["still"])
    first, second = study.runs()
    fail(store, first, "diverged")
    (planned,) = plan_study(study, store).pending
    assert (planned.run, planned.keep) == (second, frozenset())
    (planned,) = plan_study(study, store, keep_final_states=True).pending
    assert planned.keep == {3}
    fail(store, second)
    assert [planned.run for planned in plan_study(study, store).pending] == [second]


def test_the_kept_states_of_a_study_take_a_gigabyte_at_most() -> None:
    sizes = [spare_bytes(runs) for runs in (0, 15, 1000, 10_000)]
    assert sizes == [10**6, 10**6, 10**6, 10**5]


SHORT = Run(arm="short", config=toy.ToyConfig(epochs=3))
LONG = Run(arm="long", config=toy.ToyConfig(epochs=9))


def _trained(run: Run, store: Store) -> Storing:
    planned = PlannedRun(run=run, start=0, needs=(), keep=frozenset())
    return Storing(Assignment.of(planned, store, keep_final_state=False, on_gpu=False), "cpu")


@pytest.mark.usefixtures("toy_problem")
@pytest.mark.parametrize("by", ["the launch", "its own process", "nobody"])
def test_the_result_of_a_short_run_is_kept_when_a_longer_run_continues(
    store: Store, by: str
) -> None:
    longer = _trained(LONG, store)
    made: list[Plan] = []

    def plan() -> Plan:
        made.append(plan_runs([SHORT], proven_stages([SHORT], store)))
        return made[-1]

    walk = longer.resume(lambda: toy.start(LONG.config, None, "cpu"))
    for _ in iter(walk):
        longer.add(walk, 30.0)
        if len(walk.records) == 4 and by == "the launch":
            for number in (2, 3):
                assert plan_keeping_results(store, plan).finished == (SHORT,)
                assert len(made) == number, "again only if a stage was another run's to delete"
        elif len(walk.records) == 4 and by == "its own process":
            _trained(SHORT, store).resume(lambda: toy.start(SHORT.config, None, "cpu"))
    (result,) = read_results([SHORT], store)
    assert result.outcome == ("missing" if by == "nobody" else "complete")
