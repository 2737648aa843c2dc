from typing import Any

import pytest

from reports.numbers.reachable import planned_seeds, reachable
from reports.numbers.runs import measures_of
from reports.numbers.shares import Measure
from sweeps.reading.study_file import bundled_names
from sweeps.study.claims import StatedComparison
from tests.bundled import bundled, few

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
