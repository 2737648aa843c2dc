from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.svm import SVC

from mixup_core.laws import Beta
from mixup_core.theory.support_vectors import (
    SupportVectorsConfig,
    draw_points,
    max_margin_direction,
    support_fraction,
)
from tests.mixup_core.theory.processes import last

CONFIG = SupportVectorsConfig(law=Beta(alpha=1.0), steps_per_epoch=20, epochs=3)


@pytest.mark.parametrize(("dimension", "shift"), [(200, 0.0), (20, 1.5), (4, 4.0)])
def test_the_maximum_margin_direction_matches_a_numerical_optimum(
    dimension: int, shift: float
) -> None:
    inputs, labels = draw_points(replace(CONFIG, dimension=dimension, shift=shift, seed=1))
    direction = max_margin_direction(inputs, labels)
    assert direction is not None
    assert (labels * (inputs @ direction)).min() == pytest.approx(1, abs=1e-8)
    found = minimize(
        lambda w: w @ w,
        direction + 0.01 * np.random.default_rng(0).normal(size=dimension),
        jac=lambda w: 2 * w,
        constraints={
            "type": "ineq",
            "fun": lambda w: labels * (inputs @ w) - 1,
            "jac": lambda w: labels[:, None] * inputs,
        },
        method="SLSQP",
        options={"ftol": 1e-12, "maxiter": 500},
    )
    np.testing.assert_allclose(direction, found.x, atol=1e-5)


def test_the_support_fraction_matches_a_support_vector_machine() -> None:
    inputs, labels = draw_points(CONFIG)
    # a constant feature of no length stands for the missing intercept
    machine = SVC(kernel="precomputed", C=1e6, tol=1e-8).fit(inputs @ inputs.T, labels)
    assert support_fraction(inputs, labels) == 1
    assert len(machine.support_) == 20
    few, signs = draw_points(replace(CONFIG, dimension=20, shift=1.5))
    assert 0.2 < support_fraction(few, signs) < 0.9


def test_overlapping_classes_have_no_maximum_margin_direction() -> None:
    inputs, labels = draw_points(replace(CONFIG, dimension=2))
    assert max_margin_direction(inputs, labels) is None
    metrics = last(replace(CONFIG, dimension=2))
    assert not {"margin/cosine", "support/fraction"} & set(metrics)
