"""Claims: a comparison has one relation and two sides; arms that cannot be compared are refused."""

import math
from typing import Any, get_args

import pytest

from mixup_core.rules import RuleError
from sweeps.study.claims import Relation, StatedComparison, UntilDecided

LESS = StatedComparison(metric="test/error", less=("a", "b"))
RELATIONS: tuple[str, ...] = get_args(Relation)
NEED_MARGIN = {"within", "at_least", "at_most"}


def broken(**values: Any) -> RuleError:
    """Return the rule that a comparison of test error breaks."""
    with pytest.raises(RuleError) as caught:
        StatedComparison(**{"metric": "test/error"} | values)
    return caught.value


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("other", ["b", 0.5])
def test_a_claim_relates_an_arm_to_an_arm_or_a_number(relation: str, other: str | float) -> None:
    margin = 0.1 if relation in NEED_MARGIN else None
    sides: dict[str, Any] = {relation: ("a", other)}
    that = StatedComparison(metric="test/error", margin=margin, **sides)
    assert (that.relation, that.left, that.right) == (relation, "a", other)
    assert that.arms == (("a", "b") if other == "b" else ("a",))
    assert (that.factor, that.times, that.readout) == (None, 1.0, None)
    assert StatedComparison(metric="test/error", less=("a", "b"), factor=1000.0).times == 1000


def test_a_claim_without_exactly_one_relation_is_refused() -> None:
    rule = "exactly one of less, greater, at_least, at_most, within must be given"
    none = broken()
    assert str(none) == f"{rule}."
    assert none.fields == RELATIONS
    two = broken(at_least=("a", "b"), greater=("b", "a"))
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


@pytest.mark.parametrize("relation", sorted(NEED_MARGIN))
@pytest.mark.parametrize("margin", [0.0, -0.1, math.inf, math.nan])
def test_a_margin_must_be_positive_and_finite(relation: str, margin: float) -> None:
    error = broken(margin=margin, **{relation: ("a", "b")})
    assert (error.rule, error.fields) == ("0 < margin < inf", ("margin",))


@pytest.mark.parametrize("relation", ["less", "greater"])
def test_a_strict_relation_has_no_margin(relation: str) -> None:
    assert broken(margin=0.1, **{relation: ("a", "b")}).rule == f"{relation} must have no margin"


@pytest.mark.parametrize(
    ("relation", "other"), [("within", ""), ("at_least", "`greater`"), ("at_most", "`less`")]
)
def test_a_relation_that_needs_a_margin_is_refused_with_advice(relation: str, other: str) -> None:
    error = broken(**{relation: ("a", "b")})
    assert error.fields == (relation,)
    assert f"{relation} needs a margin, the largest difference that counts as equal" in str(error)
    assert "write `margin:`" in str(error)
    assert other in str(error)


def test_a_side_of_a_claim_can_be_the_difference_of_two_arms() -> None:
    interaction = StatedComparison(metric="test/error", less=(("a", "b"), ("c", "d")))
    assert interaction.arms == ("a", "b", "c", "d")
    assert interaction.terms == {"a": 1, "b": -1, "c": -1, "d": 1}
    assert interaction.allowed == (-math.inf, 0)
    size = StatedComparison(metric="test/error", greater=(("a", "b"), 0.01))
    assert (size.terms, size.number, size.allowed) == ({"a": 1, "b": -1}, 0.01, (0.01, math.inf))
    shared = StatedComparison(metric="test/error", less=(("a", "b"), ("c", "b")))
    assert shared.terms == {"a": 1, "c": -1}
    spread = StatedComparison(metric="test/error", less=("a", "b"), of="variance", factor=4.0)
    assert spread.terms == {"a": 1, "b": -1}
    assert spread.allowed == (-math.inf, 4)
    near = StatedComparison(metric="test/error", within=("a", 0.5), margin=0.25)
    assert near.allowed == (0.25, 0.75)
    near = StatedComparison(
        metric="test/error", within=("a", "b"), of="variance", factor=4.0, margin=2.0
    )
    assert near.allowed == (2, 8)


@pytest.mark.parametrize("sides", [("a", "a"), (("a", "b"), ("a", "b")), (("a", "a"), 0.5)])
def test_sides_that_cancel_each_other_are_refused(sides: Any) -> None:
    assert broken(less=sides).rule == "the two sides must not be the same arms"


@pytest.mark.parametrize(
    "keys",
    [
        {"less": (("a", "b"), ("b", "a"))},
        {"less": ("a", 0.5)},
        {"within": ("a", "b"), "margin": 1.0},
        {"metric": "predicted/brier", "less": ("a", "b"), "together": ("a",), "networks": 2},
    ],
)
def test_comparisons_that_are_no_ratio_of_two_arms_are_refused(keys: dict[str, Any]) -> None:
    assert "varianc" in broken(of="variance", **keys).rule


INTERVALS = ((-0.3, -0.2), (-0.3, -0.05), (-0.05, 0.05), (0.05, 0.3), (0.2, 0.3), (-0.3, 0.3))


@pytest.mark.parametrize(
    ("relation", "verdicts"),
    [
        ("less", "hhuffu"),
        ("greater", "ffuhhu"),
        ("at_least", "fuhhhu"),
        ("at_most", "hhhufu"),
        ("within", "fuhufu"),
    ],
)
def test_a_claim_is_judged_by_the_position_of_its_interval(relation: str, verdicts: str) -> None:
    margin = 0.1 if relation in NEED_MARGIN else None
    that = StatedComparison(metric="test/error", margin=margin, **{relation: ("a", "b")})  # type: ignore[arg-type]
    assert "".join(that.judge(*interval)[0] for interval in INTERVALS) == verdicts


@pytest.mark.parametrize(
    ("other", "factor"), [(0.5, 2.0), ("b", 0.0), ("b", -2.0), ("b", math.inf), ("b", math.nan)]
)
def test_a_factor_must_be_positive_and_finite_and_apply_to_an_arm(
    other: str | float, factor: float
) -> None:
    error = broken(less=("a", other), factor=factor)
    is_of_an_arm = other == "b"
    assert error.rule == (
        "0 < factor < inf"
        if is_of_an_arm
        else "factor needs an arm as the second side, which it multiplies"
    )
    assert error.fields == (("factor",) if is_of_an_arm else ("factor", "less"))


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"networks": None}, "together needs networks, and networks needs together"),
        ({"together": ()}, "together needs networks, and networks needs together"),
        ({"together": ("midpoint",)}, "together must name arms of the comparison"),
        ({"metric": "test/error"}, "predicted/accuracy, .+ or predicted/scaled_calibration_error"),
    ],
)
def test_a_claim_about_ensembles_needs_compared_arms_and_a_prediction_metric(
    change: dict[str, Any], rule: str
) -> None:
    stated = {
        "metric": "predicted/accuracy", "less": ("uniform", "erm"), "together": ("erm",),
        "networks": 5,
    }  # fmt: skip
    assert StatedComparison(**stated).terms == {"uniform": 1.0, "erm": -1.0}
    StatedComparison(**stated | {"together": ("uniform", "erm")})
    with pytest.raises(RuleError, match=rule):
        StatedComparison(**{**stated, **change})


def test_an_interval_that_ends_at_a_bound_decides_only_a_claim_that_allows_the_bound() -> None:
    assert LESS.judge(-0.2, 0.0) == "undecided"
    assert LESS.judge(-0.2, -1e-9) == "holds"
    assert LESS.judge(0.0, 0.2) == "fails"
    greater = StatedComparison(metric="test/error", greater=("a", "b"))
    assert [greater.judge(*end) for end in ((-0.2, 0.0), (0.0, 0.2))] == ["fails", "undecided"]
    near = StatedComparison(metric="test/error", within=("a", "b"), margin=0.25)
    ends = ((-0.25, 0.25), (-0.5, -0.25), (0.25, 0.5))
    assert [near.judge(*end) for end in ends] == ["holds", "undecided", "undecided"]


def test_arms_with_equal_results_are_merged_and_cancel() -> None:
    assert LESS.merged({}) == {"a": 1.0, "b": -1.0}
    assert LESS.merged({"b": "c"}) == {"a": 1.0, "c": -1.0}
    assert LESS.merged({"b": "a"}) == {}


@pytest.mark.parametrize(
    ("sides", "verdict"),
    [
        ({"less": ("a", "b")}, None),
        ({"less": ("a", 2.0)}, "holds"),
        ({"greater": ("a", 2.0)}, "fails"),
        ({"less": ("a", -1.0)}, "fails"),
        ({"less": ("a", 0.0)}, "undecided"),
        ({"greater": ("a", 1.0)}, "undecided"),
        ({"greater": ("a", 0.5)}, None),
    ],
)
def test_the_range_of_a_metric_decides_a_claim_only_if_no_value_could_differ(
    sides: dict[str, Any], verdict: str | None
) -> None:
    assert StatedComparison(metric="test/error", **sides).settled(0.0, 1.0) == verdict


@pytest.mark.parametrize(
    ("sides", "least", "most", "verdict"),
    [
        ({"less": ("a", 0.5)}, 0.5, 1.0, "undecided"),
        ({"less": ("a", 0.4)}, 0.5, 1.0, "fails"),
        ({"less": ("a", 0.3)}, 0.1 * 3, 1.0, "undecided"),
        ({"greater": ("a", 0.1 * 3)}, 0.0, 0.3, "undecided"),
        ({"at_most": ("a", 0.25), "margin": 0.05}, 0.0, 0.1 * 3, "holds"),
        ({"at_least": ("a", 0.4), "margin": 0.1}, 0.3, 1.0, "holds"),
        ({"at_most": ("a", 0.5), "margin": 0.1}, 0.0, 0.9, None),
        ({"at_least": ("a", 0.5), "margin": 0.1}, 0.1, 1.0, None),
        ({"less": ("a", "b"), "of": "variance", "factor": 9.0}, 0.0, 1.0, None),
    ],
)
def test_a_number_at_an_end_of_a_range_leaves_one_difference_and_one_beyond_it_none(
    sides: dict[str, Any], least: float, most: float, verdict: str | None
) -> None:
    """Numbers that differ by rounding, such as 0.3 and 0.1 * 3, count as equal."""
    assert StatedComparison(metric="test/error", **sides).settled(least, most) == verdict


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
