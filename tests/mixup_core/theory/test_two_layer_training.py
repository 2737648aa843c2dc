from dataclasses import replace

import numpy as np
import pytest

from mixup_core.config.building import with_values
from mixup_core.laws import Beta, Erm, Law, Midpoint
from mixup_core.problem import DivergedError
from mixup_core.rules import RuleError
from mixup_core.theory.operations import PatchCutMix, PatchMask, PatchOperation
from mixup_core.theory.two_layer.config import (
    Descent,
    Integrator,
    PatchData,
    PatchNetwork,
    Rkc,
    TwoLayerConfig,
)
from mixup_core.theory.two_layer.training import start
from tests.mixup_core.theory.processes import assert_resumes_anywhere, finished, last

UNIFORM = Beta(alpha=1.0)
SMALL = TwoLayerConfig(
    data=PatchData(classes=3, points_per_class=10, test_points_per_class=20),
    network=PatchNetwork(power=6, init=0.1),
    pairs_per_class=15,
    records_per_decade=4,
    epochs=6,
)
"""A run that takes a tenth of a second."""


@pytest.mark.parametrize("law", [Erm(), Midpoint(), UNIFORM], ids=["erm", "midpoint", "uniform"])
@pytest.mark.parametrize("integrator", [Rkc(), Descent(step=2.0)], ids=["rkc", "descent"])
def test_a_run_resumed_at_any_epoch_ends_with_the_same_bits(
    law: Law, integrator: Integrator
) -> None:
    assert_resumes_anywhere(replace(SMALL, law=law, integrator=integrator))


def test_descent_records_at_the_first_whole_step_at_or_after_each_time() -> None:
    records = finished(replace(SMALL, integrator=Descent(step=3.0), epochs=5))
    assert [record.metrics["flow/time"] for record in records] == [12, 18, 33, 57, 102]
    assert [record.metrics["flow/evaluations"] for record in records] == [4, 6, 11, 19, 34]


@pytest.mark.parametrize(("law", "one", "both"), [(Erm(), 3, 0), (Midpoint(), 0, 3)])
def test_erm_learns_one_feature_of_a_class_and_midpoint_both(law: Law, one: int, both: int) -> None:
    metrics = last(with_values(SMALL, {"law": law, "network.power": 8, "epochs": 24}))
    assert metrics["train/error"] == metrics["test/error"] == 0
    assert metrics["features/one"] == pytest.approx(one / 3)
    assert metrics["features/both"] == pytest.approx(both / 3)
    assert metrics["features/none"] == 0
    assert metrics["features/missing"] == pytest.approx(one / 6)
    assert 0 <= metrics["train/excess_loss"] < 0.001
    # Of order log k at least where a feature is learned.
    assert metrics["correlation/stronger"] > 5
    assert (metrics["correlation/weaker"] > 5) == (both == 3)


@pytest.mark.parametrize("integrator", [Rkc(), Descent()], ids=["rkc", "descent"])
def test_non_finite_weights_end_the_run(integrator: Integrator) -> None:
    process = start(replace(SMALL, integrator=integrator))
    process.state["y"] = np.full_like(process.state["y"], np.nan)
    with pytest.raises(DivergedError) as caught:
        next(iter(process))
    assert caught.value.epoch == 0


@pytest.mark.parametrize("operation", [PatchCutMix(), PatchMask()], ids=["cutmix", "mask"])
def test_cutmix_and_masking_train_differently_from_mixup(
    operation: PatchOperation,
) -> None:
    run = replace(SMALL, law=UNIFORM, epochs=9)
    plain, other = last(run), last(replace(run, operation=operation))
    assert other["train/loss"] != plain["train/loss"]
    assert other["train/error"] < 0.2
    assert last(replace(run, law=Erm(), operation=operation)) == last(replace(run, law=Erm()))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("data.noise_classes", 3),
        ("data.delta1", 1.1),
        ("data.delta3", 0.06),
        ("epochs", 1_000),
    ],
)
def test_values_out_of_range_are_refused_with_their_path(path: str, value: float) -> None:
    with pytest.raises(RuleError) as caught:
        with_values(SMALL, {path: value})
    assert path in caught.value.fields
