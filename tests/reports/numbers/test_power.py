"""Tests of the power of n seeds, of simulated looks and of reachable verdicts."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from reports.numbers.looks import Question, take_looks
from reports.numbers.power import (
    detectable_difference,
    draw_after,
    draw_effects,
    foresee,
    found_by_looks,
    reachable,
    seeds_to_find,
)
from reports.numbers.runs import measures_of
from reports.numbers.summary import Measure
from reports.numbers.verdict import planned_seeds
from sweeps.reading.study_file import bundled_names
from sweeps.study.claims import StatedComparison, UntilDecided
from tests.bundled import bundled, few
from tests.reports.synthetic import alone

UNTIL = UntilDecided(at_most=20, until="decided")


@pytest.mark.parametrize("tests", [1, 5])
@pytest.mark.parametrize("n", [3, 5, 16, 200])
def test_seeds_to_find_is_the_inverse_of_the_detectable_difference(n: int, tests: int) -> None:
    assert seeds_to_find(detectable_difference(n, tests) * 1.0001, tests) == n


def test_a_value_between_two_limits_is_shown_in_80_percent_of_studies() -> None:
    n = seeds_to_find(0.7, is_between=True)
    drawn = np.random.default_rng(0).standard_normal((20_000, n))
    critical = {21: 2.086, 22: 2.080, 23: 2.074, 24: 2.069}[n]
    reach = np.abs(drawn.mean(1)) + critical * drawn.std(1, ddof=1) / n**0.5
    assert 0.79 <= (reach < 0.7).mean() <= 0.84


def test_looks_have_slightly_more_power_than_a_fixed_design_of_the_last_look() -> None:
    fixed = detectable_difference(20)
    assert fixed < found_by_looks(UNTIL, 1) < 1.3 * fixed
    assert found_by_looks(UNTIL, 3) > found_by_looks(UNTIL, 1)


def is_told(low: float, high: float) -> bool:
    return low > 0 or high < 0


def question(values: Sequence[float], is_decided: Callable[[float, float], bool]) -> Question:
    return Question(
        is_decided=is_decided,
        has_ended=lambda n: True,
        compare=lambda n: alone(values[:n]),
    )


def test_simulated_looks_end_at_the_same_look_as_real_looks() -> None:
    drawn = draw_effects(UNTIL, [0.0, 0.8], studies=20)
    found = foresee(UNTIL, [is_told, is_told], drawn, tests=2)
    # the other question is never decided, so that this one keeps its half of the level
    idle = question(range(20), lambda low, high: False)
    for place in range(20):
        for claim in range(2):
            answer = take_looks(UNTIL, [question(drawn[place, claim], is_told), idle])[-1][0]
            assert answer.seeds == found.seeds[place, claim]
            assert (answer.ending == "decided") == found.is_decided[place, claim]


def test_simulated_seeds_after_a_pilot_keep_its_values_mean_and_spread() -> None:
    rng = np.random.default_rng(1)
    pilot = [dict(enumerate(row)) for row in rng.normal([[1.0], [-2.0]], [[1.0], [0.5]], (2, 12))]
    drawn = draw_after(UNTIL, pilot, studies=4_000)
    assert drawn.shape == (4_000, 2, 20)
    known = np.array([list(by_seed.values()) for by_seed in pilot])
    assert (drawn[:, :, :12] == known).all()
    assert drawn[:, :, 12:].mean((0, 2)) == pytest.approx(known.mean(1), abs=0.05)
    spread = known.std(1, ddof=1) * np.sqrt((1 + 1 / 12) * 11 / 9)  # Student t with 11 degrees
    assert drawn[:, :, 12:].std((0, 2)) == pytest.approx(spread, rel=0.05)
    own = np.corrcoef(known)[0, 1]
    assert np.corrcoef(drawn[:, 0, 15], drawn[:, 1, 15])[0, 1] == pytest.approx(own, abs=0.06)


BOTH = {"holds", "fails"}
FEW = Measure(least=0.0, most=1.0, size=6)
MANY = Measure(least=0.0, most=1.0, size=10_000)
SHARE = Measure(least=0.0, most=1.0)
ANY = Measure(least=0.0)


def stated(**that: Any) -> StatedComparison:
    return StatedComparison(metric="any", **that)


@pytest.mark.parametrize(
    ("that", "measure", "n", "verdicts"),
    [
        (stated(less=("a", "b")), MANY, 1, set()),
        (stated(less=("a", "b")), MANY, 2, BOTH),
        (stated(less=("a", "b")), ANY, 2, BOTH),
        (stated(greater=("a", 0.9)), FEW, 3, {"fails"}),  # 18 of 18: at least 0.81
        (stated(greater=("a", 0.9)), FEW, 6, BOTH),  # 36 of 36: at least 0.903
        (stated(less=("a", 0.001)), FEW, 30, {"fails"}),
        (stated(less=("a", 0.001)), SHARE, 5, BOTH),
        (stated(within=("a", "b"), margin=0.1), FEW, 3, {"fails"}),
        (stated(within=("a", "b"), margin=0.1), FEW, 20, BOTH),
        (stated(within=("a", "b"), margin=0.0001), MANY, 5, {"fails"}),
        (stated(at_least=("a", 0.95), margin=0.01), FEW, 3, {"fails"}),
        (stated(less=(("a", "b"), ("c", "d"))), MANY, 5, BOTH),
    ],
)
def test_verdicts_out_of_reach_of_exact_limits_are_not_reachable(
    that: StatedComparison, measure: Measure, n: int, verdicts: set[str]
) -> None:
    assert reachable(that, dict.fromkeys(that.arms, measure), n) == verdicts


@pytest.mark.parametrize("name", few(bundled_names()))
def test_each_bundled_claim_can_both_hold_and_fail_at_its_seeds(name: str) -> None:
    study = bundled(name)
    for claim in study.claims:
        measures = measures_of(study, claim.that.metric, claim.that.readout or study.readout)
        assert reachable(claim.that, measures, planned_seeds(study, claim)) == BOTH, claim.says
