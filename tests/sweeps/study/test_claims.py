"""Claims: a comparison has one relation and two sides; arms that cannot be compared are refused."""

import math
from functools import partial
from typing import Any, get_args

import pytest

from mixup_core.rules import RuleError
from sweeps.study.claims import Relation, StatedComparison, UntilDecided
from tests.sweeps.reading import study_files

RELATIONS: tuple[str, ...] = get_args(Relation)
NEED_MARGIN = {"within", "at_least", "at_most"}
PAIR = ("a", "b")

stated = partial(StatedComparison, metric="test/error")
broken = partial(study_files.broken, stated)
LESS = stated(less=PAIR)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("other", ["b", 0.5])
def test_a_claim_relates_an_arm_to_an_arm_or_a_number(relation: str, other: str | float) -> None:
    margin = 0.1 if relation in NEED_MARGIN else None
    sides: dict[str, Any] = {relation: ("a", other)}
    that = stated(margin=margin, **sides)
    assert (that.relation, that.left, that.right) == (relation, "a", other)
    assert that.arms == (("a", "b") if other == "b" else ("a",))
    assert (that.factor, that.times, that.readout) == (None, 1.0, None)
    assert stated(less=PAIR, factor=1000.0).times == 1000


def test_a_claim_without_exactly_one_relation_is_refused() -> None:
    rule = "exactly one of less, greater, at_least, at_most, within must be given"
    none = broken()
    assert str(none) == f"{rule}."
    assert none.fields == RELATIONS
    two = broken(at_least=PAIR, greater=("b", "a"))
    assert str(two) == f"{rule}, got (greater=True, at_least=True)."
    assert two.fields[:2] == ("greater", "at_least")


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("sides", [(), ("a",), ("a", "b", "c"), (0.5, "a"), (0.5, 0.5)])
def test_a_relation_needs_two_sides_with_an_arm_as_the_first(
    relation: str, sides: tuple[str | float, ...]
) -> None:
    error = broken(margin=0.1, **{relation: sides})
    assert error.rule == f"{relation} must compare [ARM, ARM or number]"
    assert error.fields == (relation,)
    for side in ((), ("a",), ("a", "b", "c")):
        error = broken(margin=0.1, **{relation: (side, "d")})
        assert (error.rule, error.fields) == ("a difference must be [ARM, ARM]", (relation,))


ENSEMBLES = {
    "metric": "predicted/accuracy", "less": PAIR, "together": ("b",), "networks": 5,
}  # fmt: skip


@pytest.mark.parametrize(
    ("given", "rule"),
    [
        ({"margin": 0.0, "within": PAIR}, "0 < margin < inf"),
        ({"factor": 0.0, "less": PAIR}, "0 < factor < inf"),
        ({"margin": 0.1, "less": PAIR}, "less must have no margin"),
        ({"margin": 0.1, "greater": PAIR}, "greater must have no margin"),
        ({"less": ("a", 0.5), "factor": 2.0}, "factor needs an arm as the second side"),
        ({"less": ("a", "a")}, "the two sides must not be the same arms"),
        ({"less": (PAIR, PAIR)}, "the two sides must not be the same arms"),
        ({"less": (("a", "a"), 0.5)}, "the two sides must not be the same arms"),
        ({"of": "variance", "less": (PAIR, ("b", "a"))}, "variances must be of two arms"),
        ({"of": "variance", "less": ("a", 0.5)}, "variances must be of two arms"),
        ({"of": "variance", "within": PAIR, "margin": 1.0}, "must be larger than 1"),
        (ENSEMBLES | {"of": "variance"}, "variances must have no `together`"),
        (ENSEMBLES | {"networks": None}, "together needs networks, and networks needs together"),
        (ENSEMBLES | {"together": ()}, "together needs networks, and networks needs together"),
        (ENSEMBLES | {"together": ("c",)}, "together must name arms of the comparison"),
        (
            ENSEMBLES | {"metric": "test/error"},
            "scaled_brier or predicted/scaled_calibration_error",
        ),
    ],
)
def test_parts_of_a_comparison_that_contradict_each_other_are_refused(
    given: dict[str, Any], rule: str
) -> None:
    error = broken(**given)
    assert rule in error.rule
    assert set(error.fields) <= given.keys()


@pytest.mark.parametrize(
    ("relation", "other"), [("within", ""), ("at_least", "`greater`"), ("at_most", "`less`")]
)
def test_a_relation_that_needs_a_margin_is_refused_with_advice(relation: str, other: str) -> None:
    error = broken(**{relation: PAIR})
    assert error.fields == (relation,)
    assert f"{relation} needs a margin, the largest difference that counts as equal" in str(error)
    assert "write `margin:`" in str(error)
    assert other in str(error)


DIFFERENCE = {"a": 1, "b": -1}


@pytest.mark.parametrize(
    ("given", "terms", "allowed"),
    [
        ({"less": (PAIR, ("c", "d"))}, {"a": 1, "b": -1, "c": -1, "d": 1}, (-math.inf, 0)),
        ({"greater": (PAIR, 0.01)}, DIFFERENCE, (0.01, math.inf)),
        ({"less": (PAIR, ("c", "b"))}, {"a": 1, "c": -1}, (-math.inf, 0)),
        ({"within": ("a", 0.5), "margin": 0.25}, {"a": 1}, (0.25, 0.75)),
        ({"less": PAIR, "of": "variance", "factor": 4.0}, DIFFERENCE, (-math.inf, 4)),
        ({"within": PAIR, "of": "variance", "factor": 4.0, "margin": 2.0}, DIFFERENCE, (2, 8)),
        (ENSEMBLES, DIFFERENCE, (-math.inf, 0)),
        (ENSEMBLES | {"together": PAIR}, DIFFERENCE, (-math.inf, 0)),
    ],
)
def test_a_comparison_limits_a_weighted_sum_of_its_arms(
    given: dict[str, Any], terms: dict[str, int], allowed: tuple[float, float]
) -> None:
    that = stated(**given)
    assert (that.terms, that.allowed) == (terms, allowed)
    assert set(that.arms) >= set(terms)


INTERVALS = (
    (-0.3, -0.2), (-0.3, -0.05), (-0.05, 0.05), (0.05, 0.3), (0.2, 0.3), (-0.3, 0.3),
    (-0.2, 0.0), (0.0, 0.2), (-0.1, 0.1), (-0.3, -0.1), (0.1, 0.3),
)  # fmt: skip
"""The last five end at a bound of some claim, which only a claim with a margin allows."""


@pytest.mark.parametrize(
    ("relation", "verdicts"),
    [
        ("less", "hhuffuufuhf"),
        ("greater", "ffuhhufuufh"),
        ("at_least", "fuhhhuuhhuh"),
        ("at_most", "hhhufuhuhhu"),
        ("within", "fuhufuuuhuu"),
    ],
)
def test_a_claim_is_judged_by_the_position_of_its_interval(relation: str, verdicts: str) -> None:
    that = stated(margin=0.1 if relation in NEED_MARGIN else None, **{relation: PAIR})
    assert "".join(that.judge(*interval)[0] for interval in INTERVALS) == verdicts


def test_arms_with_equal_results_are_merged_and_cancel() -> None:
    assert LESS.merged({}) == {"a": 1.0, "b": -1.0}
    assert LESS.merged({"b": "c"}) == {"a": 1.0, "c": -1.0}
    assert LESS.merged({"b": "a"}) == {}


@pytest.mark.parametrize(
    ("sides", "least", "most", "verdict"),
    [
        ({"less": PAIR}, 0.0, 1.0, None),
        ({"less": ("a", 2.0)}, 0.0, 1.0, "holds"),
        ({"greater": ("a", 2.0)}, 0.0, 1.0, "fails"),
        ({"less": ("a", -1.0)}, 0.0, 1.0, "fails"),
        ({"less": ("a", 0.0)}, 0.0, 1.0, "undecided"),
        ({"greater": ("a", 1.0)}, 0.0, 1.0, "undecided"),
        ({"greater": ("a", 0.5)}, 0.0, 1.0, None),
        ({"less": ("a", 0.5)}, 0.5, 1.0, "undecided"),
        ({"less": ("a", 0.4)}, 0.5, 1.0, "fails"),
        ({"less": ("a", 0.3)}, 0.1 * 3, 1.0, "undecided"),
        ({"greater": ("a", 0.1 * 3)}, 0.0, 0.3, "undecided"),
        ({"at_most": ("a", 0.25), "margin": 0.05}, 0.0, 0.1 * 3, "holds"),
        ({"at_least": ("a", 0.4), "margin": 0.1}, 0.3, 1.0, "holds"),
        ({"at_most": ("a", 0.5), "margin": 0.1}, 0.0, 0.9, None),
        ({"at_least": ("a", 0.5), "margin": 0.1}, 0.1, 1.0, None),
        ({"less": PAIR, "of": "variance", "factor": 9.0}, 0.0, 1.0, None),
    ],
)
def test_the_range_of_a_metric_decides_a_claim_only_if_no_value_could_differ(
    sides: dict[str, Any], least: float, most: float, verdict: str | None
) -> None:
    """Numbers that differ by rounding, such as 0.3 and 0.1 * 3, count as equal."""
    assert stated(**sides).settled(least, most) == verdict


def test_a_claim_about_arms_with_equal_results_has_one_possible_difference() -> None:
    assert LESS.settled(0.0, 1.0, LESS.merged({"b": "a"})) == "undecided"


def until(**given: object) -> UntilDecided:
    return UntilDecided(**{"at_most": 20, "until": "decided", **given})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "sizes"),
    [
        ({}, (3, 5, 8, 11, 15, 20)),
        ({"looks": 2}, (3, 20)),
        ({"at_least": 2, "at_most": 4, "looks": 6}, (2, 3, 4)),
        ({"at_least": 5, "at_most": 5}, (5,)),
        ({"looks": (3, 4, 20)}, (3, 4, 20)),
        ({"looks": (*range(3, 22), 30), "at_most": 30}, (*range(3, 22), 30)),
    ],
)
def test_planned_looks_are_closer_together_at_the_beginning(
    given: dict[str, object], sizes: tuple[int, ...]
) -> None:
    assert until(**given).sizes == sizes
    assert list(until(**given).seeds()) == list(range(sizes[-1]))


def test_the_stored_text_of_planned_looks_does_not_change() -> None:
    text = "[3, 5, 8, 11, 15, 20] spending 0.45 futility 0.1"
    assert until(at_least=3).plan == text


@pytest.mark.parametrize(
    ("given", "rule"),
    [
        ({"at_least": 21}, "at_least <= at_most"),
        ({"looks": (3, 9, 5, 20)}, "numbers in looks must increase"),
        ({"looks": (4, 20)}, "looks must begin with at_least"),
        ({"looks": 21}, "looks <= 20"),
        ({"looks": (*range(3, 21), 30, 40, 50), "at_most": 50}, "at most 20"),
        ({"at_least": 1}, "at_least"),
        ({"spending": 0.6}, "spending"),
        ({"futility": -0.1}, "futility"),
    ],
)
def test_invalid_planned_looks_are_refused(given: dict[str, object], rule: str) -> None:
    with pytest.raises(RuleError, match=rule):
        until(**given)
