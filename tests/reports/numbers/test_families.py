import numpy as np
import pytest
import scipy.stats

from reports.numbers.families import Family, family_of, holm
from reports.numbers.summary import Measure


def family(values: dict[str, list[float]], *pairs: tuple[str, str]) -> Family:
    by_seed = {arm: dict(enumerate(numbers)) for arm, numbers in values.items()}
    return family_of(pairs, by_seed, {arm: arm for arm in values})


DRAWN = {
    name: list(np.random.default_rng(place).normal(0.2 + 0.01 * place, 0.01, size=5))
    for place, name in enumerate(("erm", "b", "c"))
}


def test_p_and_interval_are_bonferroni_adjusted_values_of_scipy() -> None:
    found = family(DRAWN, ("b", "erm"), ("c", "erm"))
    assert found.size == 2
    for arm in ("b", "c"):
        test = scipy.stats.ttest_rel(DRAWN[arm], DRAWN["erm"])
        interval = test.confidence_interval(0.975)
        member = found.members[arm, "erm"]
        assert member.p == pytest.approx(min(1, 2 * test.pvalue))
        assert (member.low, member.high) == pytest.approx((interval.low, interval.high))


def test_a_pair_requested_in_both_orders_is_one_test_with_one_p() -> None:
    found = family(DRAWN, ("b", "erm"), ("erm", "b"), ("b", "erm"), ("c", "erm"))
    assert found.size == 2
    forth, back = found.members["b", "erm"], found.members["erm", "b"]
    assert forth.p == back.p
    assert forth.low == pytest.approx(-(back.high or 0))


def test_equal_arms_are_not_tested_against_each_other_and_share_other_tests() -> None:
    values = {arm: dict(enumerate(DRAWN[arm])) for arm in ("erm", "b")}
    values["twin"] = values["b"]
    equal = {"erm": "erm", "b": "b", "twin": "b"}
    found = family_of([("b", "erm"), ("twin", "erm"), ("twin", "b")], values, equal)
    assert found.size == 1
    assert found.members["twin", "erm"].p == found.members["b", "erm"].p
    assert found.members["twin", "b"].p is None


def test_constant_differences_are_tested_only_for_counted_metrics() -> None:
    shifted = {**DRAWN, "zero": DRAWN["erm"], "same": [value + 0.5 for value in DRAWN["erm"]]}
    pairs = [("b", "erm"), ("zero", "erm"), ("same", "erm")]
    found = family(shifted, *pairs)
    assert found.size == 1
    assert found.members["zero", "erm"].p is found.members["same", "erm"].p is None
    by_seed = {arm: dict(enumerate(numbers)) for arm, numbers in shifted.items()}
    images = Measure(least=0.0, most=1.0, size=1000)
    counted = family_of(
        pairs, by_seed, {arm: arm for arm in shifted}, dict.fromkeys(shifted, images)
    )
    assert counted.size == 3
    assert counted.members["zero", "erm"].p == 1


def test_holm_rejects_the_same_hypotheses_as_the_step_down_rule() -> None:
    rng = np.random.default_rng(4)
    for ps in rng.uniform(0, 0.1, size=(300, 4)):
        rejected = set()
        for step, place in enumerate(np.argsort(ps)):
            if ps[place] > 0.05 / (4 - step):
                break
            rejected.add(int(place))
        assert {place for place, p in enumerate(holm(list(ps))) if p <= 0.05} == rejected


def test_arms_differ_exactly_if_the_interval_excludes_zero() -> None:
    rng = np.random.default_rng(0)
    for shift in (0.0, 1.0, 2.0, 3.0):
        for _ in range(50):
            values = {name: list(rng.normal(shift * (name > "b"), size=5)) for name in "abcd"}
            for member in family(values, *((name, "a") for name in "bcd")).members.values():
                assert member.is_told == (not member.low <= 0 <= member.high)
