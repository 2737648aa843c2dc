"""The inline engine: no Ray, seed by seed, with a time limit, and usable in a debugger."""

import itertools
import time
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from mixup_core.store.checkpoints import Store
from sweeps.leasing.holders import StudyLostError
from sweeps.leasing.lease import Claims, Lease, Stop, ask_to_stop
from sweeps.running import inline
from sweeps.running.inline import Deadline, train_inline
from sweeps.searching.sources import RunSource
from sweeps.state.results import RunResult, read_results
from sweeps.state.stages import plan_study
from sweeps.study.study import Study
from sweeps.tracking.tracker import Tracker
from tests import toy
from tests.conftest import CommandLines
from tests.filled import fail, put_epochs
from tests.interpreters import run_python

ARMS = {
    "pupil": toy.ToyConfig(epochs=3, teacher="master"),
    "still": toy.ToyConfig(epochs=6, drift=1.0, turn=2),
    "drifting": toy.ToyConfig(epochs=6, drift=1.0, turn=4),
    "master": toy.ToyConfig(epochs=5),
}
SCHOOL = Study(name="school", description="", arms=ARMS, seeds=(7, 3), baseline="still", source="")

pytestmark = pytest.mark.usefixtures("toy_problem")


def _train(
    study: Study, store: Store, deadline: Deadline | None = None
) -> tuple[RunSource, tuple[RunResult, ...]]:
    source = RunSource(study, plan_study(study, store).pending)
    with Lease.acquire(store, study.name, "mixsweep run") as lease:
        return source, train_inline(
            source,
            store,
            Tracker(None),
            lease,
            device="cpu",
            deadline=deadline or Deadline(at=None),
        )


@pytest.fixture
def starts(monkeypatch: pytest.MonkeyPatch) -> Mock:
    """Record the planned runs that are started, as first arguments of calls."""
    starts = Mock(wraps=inline._train)
    monkeypatch.setattr(inline, "_train", starts)
    return starts


def test_runs_are_ordered_by_seed_with_teachers_and_trunks_first(
    store: Store, starts: Mock
) -> None:
    _, results = _train(SCHOOL, store)
    assert [result.outcome for result in results] == ["complete"] * 8
    started = [call.args[0] for call in starts.call_args_list]
    assert [planned.run.seed for planned in started] == [7] * 4 + [3] * 4
    for seed in (7, 3):
        arms = {
            planned.run.arm: (place, planned.first_epoch)
            for place, planned in enumerate(started)
            if planned.run.seed == seed
        }
        assert arms["master"] < arms["pupil"]
        shared = [arms["still"], arms["drifting"]]
        assert sorted(first for _, first in shared) == [0, 2], "the first two epochs are shared"


def test_a_run_that_would_end_after_the_deadline_is_not_started(
    store: Store, starts: Mock, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [100.0]
    deadline = Deadline(at=170.0, clock=lambda: now[0])
    begin = inline.attempt

    def slow(*arguments: object) -> object:
        now[0] += 30.0
        monkeypatch.setattr(Deadline, "learn", lambda *_: None)
        deadline._per_work.setdefault("still", []).append(30.0 / 6)
        return begin(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(inline, "attempt", slow)
    study = replace(SCHOOL, arms={"still": ARMS["still"]}, seeds=tuple(range(5)))
    _train(study, store, deadline)
    assert starts.call_count == 2, "a third would end at 190"


def test_a_first_run_stops_when_its_epochs_show_that_the_deadline_will_pass(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inline, "_REPORT_EVERY", 0.0)
    monkeypatch.setattr("sweeps.running.storing.STORE_AT_LEAST_EVERY", 0.0)
    study = replace(SCHOOL, arms={"still": ARMS["still"]}, seeds=(0, 1))
    now = [100.0]
    learn = Deadline.learn

    def slow(deadline: Deadline, run: Any, seconds: Any) -> None:
        now[0] += 10.0 * len(seconds)
        learn(deadline, run, [10.0] * len(seconds))

    monkeypatch.setattr(Deadline, "learn", slow)
    _, (first, second) = _train(study, store, Deadline(at=145.0, clock=lambda: now[0]))
    assert (first.outcome, second.outcome) == ("partial", "missing")
    assert len(first.facts) == 1
    _, (first, second) = _train(study, store)
    assert (first.outcome, second.outcome) == ("complete", "complete")


def test_a_launch_waits_for_a_run_of_another_driver_at_most_to_its_deadline(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inline, "_LOOK_EVERY", 0.01)
    study = replace(SCHOOL, arms={"still": ARMS["still"]}, seeds=(0,))
    clock = itertools.count()
    with Lease.acquire(store, "other", "mixsweep run other") as lease:
        claims = Claims(store=store, study="other", token=lease.token)
        assert claims.take(study.runs()[0].key)
        _, (result,) = _train(study, store, Deadline(at=20.0, clock=lambda: float(next(clock))))
    assert result.outcome == "missing"


def test_a_run_that_diverged_meanwhile_under_another_driver_is_not_trained(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    study, begin = replace(SCHOOL, arms={"still": ARMS["still"]}, seeds=(0,)), inline.attempt

    def late(*arguments: object) -> object:
        fail(store, study.runs()[0], "diverged", "loss=inf", 2)
        return begin(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(inline, "attempt", late)
    _, (result,) = _train(study, store)
    assert (result.outcome, result.failure.message, result.stage) == ("diverged", "loss=inf", None)


def test_a_teacher_that_is_trained_again_with_other_numbers_is_named_as_the_cause(
    store: Store,
) -> None:
    arms = {arm: ARMS[arm] for arm in ("master", "pupil")}
    study = replace(SCHOOL, arms=arms, seeds=(0,), baseline="master")
    put_epochs(store, study.runs_of("master")[0], 5)
    _, (master, pupil) = _train(study, store)
    assert (master.outcome, pupil.outcome) == ("complete", "failed")
    assert "gave other numbers" in pupil.failure.message
    assert "--forget" in pupil.failure.message


def test_a_driver_that_loses_its_lease_in_a_run_ends_without_a_failure_of_the_run(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inline, "_REPORT_EVERY", 0.0)
    monkeypatch.setattr("sweeps.running.storing.STORE_AT_LEAST_EVERY", 0.0)
    looks = itertools.count()

    def require_held(lease: Lease) -> None:
        if next(looks) == 2:  # at the second report of the first run
            raise StudyLostError("taken over")

    monkeypatch.setattr(Lease, "require_held", require_held)
    with pytest.raises(StudyLostError, match="taken over"):
        _train(SCHOOL, store)
    assert next(looks) == 3
    assert not store.failures.keys()


@pytest.mark.parametrize("how", ["finish", "now"])
def test_a_launch_with_a_stop_request_starts_no_more_runs(
    store: Store, monkeypatch: pytest.MonkeyPatch, how: Stop
) -> None:
    begin, begun = inline.attempt, []

    def asked(*arguments: object) -> object:
        begun.append(1)
        holder = Lease.current(store, SCHOOL.name)
        assert holder is not None
        ask_to_stop(store, SCHOOL.name, holder, how)
        time.sleep(1.2)  # the monitor looks once a second
        return begin(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(inline, "attempt", asked)
    monkeypatch.setattr(inline, "owns_process", lambda: True)
    if how == "now":
        with pytest.raises(KeyboardInterrupt):
            _train(SCHOOL, store)
    else:
        _train(SCHOOL, store)
    assert begun == [1]
    finished = [r for r in read_results(SCHOOL.runs(), store) if r.outcome == "complete"]
    assert len(finished) == (how == "finish")


def test_a_failing_run_is_recorded_and_other_runs_continue(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = toy.start

    def broken(config: toy.ToyConfig, *others: Any, **teacher: Any) -> toy.Walk:
        if config.drift:
            raise MemoryError("no room")
        return start(config, *others, **teacher)

    monkeypatch.setattr(toy, "start", broken)
    _, results = _train(SCHOOL, Store(str(tmp_path)))
    outcomes = {(r.run.arm, r.outcome) for r in results}
    assert outcomes == {
        ("still", "failed"), ("drifting", "failed"), ("master", "complete"), ("pupil", "complete"),
    }  # fmt: skip
    assert all("no room" in r.failure.message for r in results if r.failure)


def test_a_run_in_this_process_is_refused_a_gpu_that_torch_does_not_see(
    command_line: CommandLines,
) -> None:
    mixsweep = command_line(CUDA_VISIBLE_DEVICES="")
    said = mixsweep("run", "digits", "--engine", "inline", "--gpus-per-run", "1", code=2)
    assert "needs a GPU, and torch" in said.stderr


_PAUSED = """
from mixsweep.cli.main import main
from mixup_core.problem import PROBLEMS
from tests import toy

start = toy.start

def paused(config, *others, **teacher):
    breakpoint()
    return start(config, *others, **teacher)

toy.start = paused
PROBLEMS.add(toy.TOY)
main()
"""


def test_a_debugger_stops_inside_a_run_and_can_continue(
    tmp_path: Path, command_line: CommandLines
) -> None:
    study = tmp_path / "walk.yaml"
    study.write_text("study: walk\nproblem: toy\nbase: {epochs: 2, drift: 2.5}\nseeds: 1\n")
    mixsweep = command_line()
    done = run_python(
        _PAUSED, "run", study, "--engine", "inline", input="p config.drift\nc\n",
        env=mixsweep.environment(), cwd=Path(__file__).parents[3],
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "(Pdb)" in done.stdout
    assert "2.5" in done.stdout
