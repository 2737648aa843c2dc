import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import beta

from mixup_core.laws import Beta, Erm, Law, Midpoint
from mixup_core.mixing.loss_floor import label_entropy as label_entropy_by_torch
from mixup_core.seeding import stream
from mixup_core.weights import (
    draw_weights,
    label_entropy,
    upper_quantiles,
    weight_quantiles,
)


@pytest.mark.parametrize("law", [Erm(), Midpoint(), Beta(alpha=0.2), Beta(alpha=7.0)])
def test_both_packages_know_one_label_entropy(law: Law) -> None:
    assert label_entropy(law) == pytest.approx(label_entropy_by_torch(law), abs=1e-14)


@pytest.mark.parametrize("alpha", [0.3, 1.0, 8.0])
def test_the_label_entropy_is_the_integral_over_the_law(alpha: float) -> None:
    value, _ = quad(lambda p: -2 * p * math.log(p) * beta.pdf(p, alpha, alpha), 0, 1)
    assert label_entropy(Beta(alpha=alpha)) == pytest.approx(value, abs=1e-7)


@pytest.mark.parametrize("alpha", [0.2, 1.0, 32.0])
def test_quantiles_have_the_moments_of_the_law(alpha: float) -> None:
    nodes = weight_quantiles(Beta(alpha=alpha), 4000)
    assert nodes.mean() == pytest.approx(0.5, abs=1e-12)
    assert nodes.var() == pytest.approx(1 / (4 * (2 * alpha + 1)), rel=1e-3)


def test_constant_laws_draw_nothing() -> None:
    rng = stream(0, "mixing")
    before = rng.bit_generator.state["state"]["counter"].copy()
    assert (draw_weights(Erm(), 3, rng) == 1).all()
    assert (draw_weights(Midpoint(), (2, 3), rng) == 0.5).all()
    np.testing.assert_array_equal(rng.bit_generator.state["state"]["counter"], before)
    assert weight_quantiles(Erm(), 9).tolist() == [1.0]
    assert weight_quantiles(Midpoint(), 9).tolist() == [0.5]


def test_a_beta_law_draws_its_variance() -> None:
    drawn = draw_weights(Beta(alpha=2.0), 200_000, stream(0, "mixing"))
    assert drawn.var() == pytest.approx(1 / 20, rel=0.02)


def test_half_of_the_quantiles_stand_for_all() -> None:
    nodes = weight_quantiles(Beta(alpha=0.6), 10)
    np.testing.assert_allclose(np.sort(1 - nodes), nodes, atol=1e-12)
    np.testing.assert_array_equal(upper_quantiles(Beta(alpha=0.6), 10), nodes[5:])
    assert upper_quantiles(Erm(), 10).tolist() == [1.0]
    assert upper_quantiles(Midpoint(), 10).tolist() == [0.5]
