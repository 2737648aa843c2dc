import io

import numpy as np
import pytest

from mixup_core.keys import run_key, stage_keys
from mixup_core.laws import Beta, Erm, Law, Midpoint
from mixup_core.problem import DivergedError, StateError, problem_named
from mixup_core.rules import RuleError
from mixup_core.theory.two_layer.config import (
    Descent,
    Integrator,
    PatchData,
    PatchMixing,
    PatchNetwork,
    Rkc,
    TwoLayerConfig,
)
from mixup_core.theory.two_layer.training import TwoLayerTraining, start
from mixup_core.tree import built, flatten, with_values


def config(law: Law, integrator: Integrator | None = None, epochs: int = 12) -> TwoLayerConfig:
    """A run of a tenth of a second: three classes."""
    return TwoLayerConfig(
        data=PatchData(classes=3, points_per_class=10, test_points_per_class=20),
        network=PatchNetwork(power=6, init=0.1),
        mix=PatchMixing(law=law, pairs_per_class=15),
        integrator=integrator or Rkc(),
        records_per_decade=4,
        epochs=epochs,
    )


def finished(run: TwoLayerConfig) -> TwoLayerTraining:
    training = TwoLayerTraining(run)
    for _ in training:
        pass
    return training


@pytest.mark.parametrize("law", [Erm(), Midpoint(), Beta(alpha=0.5)], ids=["erm", "mid", "beta"])
@pytest.mark.parametrize("integrator", [Rkc(), Descent(step=2.0)], ids=["rkc", "descent"])
def test_a_run_that_is_interrupted_anywhere_ends_with_the_same_bits(
    law: Law, integrator: Integrator
) -> None:
    run = config(law, integrator, epochs=9)
    unbroken = finished(run)
    training = TwoLayerTraining(run)
    states = [training.to_bytes() for _ in training]
    for done in (1, 2, 5, 8):
        resumed = TwoLayerTraining(run)
        resumed.load_bytes(states[done - 1], training.records[:done])
        assert resumed.to_bytes() == states[done - 1]
        for _ in resumed:
            pass
        assert resumed.records == unbroken.records
        assert resumed.to_bytes() == unbroken.to_bytes()


def test_records_stand_at_the_same_flow_times_under_every_law_on_a_log_axis() -> None:
    erm, midpoint = (finished(config(law, epochs=5)) for law in (Erm(), Midpoint()))
    times = [[record.metrics["flow/time"] for record in run.records] for run in (erm, midpoint)]
    assert times[0] == times[1]
    np.testing.assert_allclose(times[0], 10 * 10 ** np.array([0, 0.25, 0.5, 0.75, 1]))


def test_descent_records_the_first_whole_step_at_or_after_a_time() -> None:
    run = finished(config(Erm(), Descent(step=3.0), epochs=5))
    assert [record.metrics["flow/time"] for record in run.records] == [12, 18, 33, 57, 102]
    assert [record.metrics["flow/evaluations"] for record in run.records] == [4, 6, 11, 19, 34]


def test_a_longer_run_goes_on_where_a_shorter_one_ended() -> None:
    shorter, longer = finished(config(Midpoint(), epochs=4)), config(Midpoint(), epochs=7)
    assert stage_keys(longer)[:4] == stage_keys(shorter.config)
    training = TwoLayerTraining(longer)
    training.load_bytes(shorter.to_bytes(), shorter.records)
    for _ in training:
        pass
    assert training.records == finished(longer).records


@pytest.mark.parametrize(("law", "one", "both"), [(Erm(), 3, 0), (Midpoint(), 0, 3)])
def test_erm_learns_one_feature_of_a_class_and_midpoint_both(law: Law, one: int, both: int) -> None:
    run = with_values(config(law, epochs=24), {"network.power": 8})
    metrics = finished(run).records[-1].metrics
    assert metrics["train/error"] == metrics["test/error"] == 0
    assert metrics["features/one"] == pytest.approx(one / 3)
    assert metrics["features/both"] == pytest.approx(both / 3)
    assert metrics["features/none"] == 0
    assert metrics["features/missing"] == pytest.approx(one / 6)
    assert 0 <= metrics["train/excess_loss"] < 0.001
    # Theta(log k) at least where a feature is learned.
    assert metrics["correlation/stronger"] > 5
    assert (metrics["correlation/weaker"] > 5) == (both == 3)


def test_gradient_descent_and_the_flow_learn_the_same_features() -> None:
    for law in (Erm(), Midpoint()):
        flow, descent = (
            finished(config(law, integrator, epochs=8)).records[-1].metrics
            for integrator in (Rkc(), Descent(step=1.0))
        )
        places = [name for name in flow if name.startswith("accuracy/")]
        assert len(places) == 6
        assert 0 < flow["features/missing"] < 1
        assert [flow[place] for place in places] == [descent[place] for place in places]


def test_features_by_class_are_those_that_the_shares_are_made_of() -> None:
    metrics = finished(config(Erm())).records[-1].metrics
    alone = np.array([[metrics[f"accuracy/class{y}/feature{f}"] for f in (1, 2)] for y in range(3)])
    learned = (alone >= 0.95).sum(axis=1)
    assert metrics["features/one"] == pytest.approx((learned == 1).mean())
    assert metrics["features/min_accuracy"] == alone.min()


def test_weights_that_are_not_finite_end_the_run() -> None:
    for integrator in (Rkc(), Descent()):
        training = TwoLayerTraining(config(Erm(), integrator))
        state = np.load(io.BytesIO(training.to_bytes()))
        broken = np.where(np.arange(len(state)) < 7, state, np.nan)
        training._solver.load_array(broken)
        with pytest.raises(DivergedError) as caught:
            next(iter(training))
        assert caught.value.epoch == 0


@pytest.mark.parametrize(
    "content", [b"", b"no state", TwoLayerTraining(config(Erm(), Descent())).to_bytes()]
)
def test_what_is_no_state_of_the_run_is_refused(content: bytes) -> None:
    with pytest.raises(StateError):
        TwoLayerTraining(config(Erm())).load_bytes(content, [])


def test_a_state_holds_no_objects() -> None:
    buffer = io.BytesIO()
    np.save(buffer, np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(StateError):
        TwoLayerTraining(config(Erm())).load_bytes(buffer.getvalue(), [])


def test_a_config_is_built_from_its_paths_and_comes_back() -> None:
    run = built(
        TwoLayerConfig,
        {
            "data.classes": 8,
            "network.init": 0.07,
            "mix.law": {"beta": 2.0},
            "integrator.name": "gradient-descent",
            "integrator.step": 10,
            "epochs": 5,
        },
    )
    assert (run.classes, run.neurons, run.rho, run.data.patches) == (8, 24, 1 / 8, 770)
    assert run.init == pytest.approx(0.07 / 8)
    assert run.integrator == Descent(step=10)
    assert with_values(run, flatten(run)) == run
    assert built(TwoLayerConfig, flatten(run)) == run


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("data.classes", 1),
        ("data.points_per_class", 0),
        ("data.noise_classes", 6),
        ("data.delta1", 1.1),
        ("data.delta3", 0.06),
        ("data.delta4", float("nan")),
        ("network.power", 1),
        ("network.rho", 0.0),
        ("network.init", float("inf")),
        ("mix.pairs_per_class", 0),
        ("integrator.tolerance", 0.0),
        ("first_time", 0.0),
        ("epochs", 0),
        ("epochs", 1_000),
    ],
)
def test_values_out_of_range_are_refused_with_their_path(path: str, value: float) -> None:
    with pytest.raises(RuleError) as caught:
        with_values(TwoLayerConfig(epochs=5), {path: value})
    assert path in caught.value.fields


def test_the_problem_starts_its_runs_and_names_their_keys() -> None:
    problem = problem_named("two-layer")
    assert problem.config is TwoLayerConfig
    run = config(Erm(), epochs=1)
    training = problem.start(run, None, "cpu")
    (record,) = training
    assert set(problem.metrics) <= set(record.metrics)
    assert {name for name in record.metrics if name not in problem.metrics} == {
        f"{kind}/class{y}/feature{feature}"
        for kind in ("accuracy", "correlation")
        for y in range(3)
        for feature in (1, 2)
    }
    assert run_key(run) != run_key(with_values(run, {"network.init": 0.2}))
    assert run_key(run) == run_key(with_values(run, {"integrator.tolerance": 0.01}))


@pytest.mark.parametrize("law", [Erm(), Midpoint()], ids=["erm", "mid"])
def test_gradient_descent_agrees_with_the_flow_at_four_classes_and_power_eight(law: Law) -> None:
    flow, descent = (
        finished(
            TwoLayerConfig(
                data=PatchData(classes=4),
                mix=PatchMixing(law=law),
                integrator=integrator,
                epochs=41,
                seed=1,
            )
        )
        .records[-1]
        .metrics
        for integrator in (Rkc(), Descent(step=10.0))
    )
    assert flow["flow/time"] == descent["flow/time"] == 1e5
    assert 0 < flow["features/missing"] < 1
    for name in flow:
        if name.startswith("accuracy/"):
            assert flow[name] == descent[name], name
        if name.startswith("correlation/"):
            assert flow[name] == pytest.approx(descent[name], rel=0.05, abs=0.1), name
    assert flow["flow/evaluations"] < descent["flow/evaluations"] / 2


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_the_theorems_show_at_six_classes_and_power_eight() -> None:
    counts = {}
    for law in (Erm(), Midpoint()):
        run = TwoLayerConfig(mix=PatchMixing(law=law), epochs=61)
        metrics = finished(run).records[-1].metrics
        assert metrics["train/error"] == 0
        assert metrics["linear/separable"] == 0
        counts[law] = round(6 * metrics["features/one"]), round(6 * metrics["features/both"])
    assert counts[Midpoint()] == (0, 6)
    assert counts[Erm()][0] >= 4


def test_start_makes_a_run_before_its_first_record() -> None:
    assert start(config(Erm()), None, "cpu").records == []
