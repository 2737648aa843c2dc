"""Claims: a comparison is one relation of two sides, and refuses what cannot be compared."""

import math
from typing import Any, get_args

import pytest

from mixup_core.rules import RuleError
from sweeps.study.claims import Claim, Comparison, Relation

LESS = Comparison(metric="test/error", less=("a", "b"))
RELATIONS: tuple[str, ...] = get_args(Relation)


def broken(**values: Any) -> RuleError:
    """Return the rule that a comparison of test error breaks."""
    with pytest.raises(RuleError) as caught:
        Comparison(**{"metric": "test/error"} | values)
    return caught.value


@pytest.mark.parametrize("field", ["says", "source"])
def test_no_text_changes_how_others_are_shown(field: str) -> None:
    texts = {"says": "a wins", "source": "a paper"}
    for unseen in "\0\x1b\u202e\ufeff":
        with pytest.raises(RuleError, match=f"`{field} has no control or text-direction"):
            Claim(**texts | {field: f"a{unseen}b"}, that=LESS)  # type: ignore[arg-type]


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("other", ["b", 0.5])
def test_a_claim_is_one_relation_of_an_arm_and_an_arm_or_a_number(
    relation: str, other: str | float
) -> None:
    margin = 0.1 if relation == "within" else None
    sides: dict[str, Any] = {relation: ("a", other)}
    that = Comparison(metric="test/error", margin=margin, **sides)
    assert (that.relation, that.left, that.right) == (relation, "a", other)
    assert that.arms == (("a", "b") if other == "b" else ("a",))
    assert (that.factor, that.times, that.readout) == (None, 1.0, None)
    assert Comparison(metric="test/error", less=("a", "b"), factor=1000.0).times == 1000


def test_no_relation_and_several_are_refused_those_given_blamed_first() -> None:
    rule = "one of less, greater, at_least, at_most, within is given"
    none = broken()
    assert str(none) == f"`{rule}` must hold, got ()."
    assert none.fields == RELATIONS
    two = broken(at_least=("a", "b"), greater=("b", "a"))
    assert str(two) == f"`{rule}` must hold, got (greater=True, at_least=True)."
    assert two.fields[:2] == ("greater", "at_least")


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("sides", [(), ("a",), ("a", "b", "c"), (0.5, "a"), (0.5, 0.5)])
def test_a_relation_has_two_sides_the_first_an_arm(
    relation: str, sides: tuple[str | float, ...]
) -> None:
    error = broken(margin=0.1, **{relation: sides})
    assert error.rule == f"{relation} compares [ARM, ARM or number]"
    assert error.fields == (relation,)


@pytest.mark.parametrize("margin", [None, 0.0, -0.1, math.inf, math.nan])
def test_within_has_a_margin_that_is_positive_and_finite(margin: float | None) -> None:
    error = broken(within=("a", "b"), margin=margin)
    is_given = margin is not None
    joint = "within, and it alone, has a margin"
    assert error.rule == ("0 < margin < inf" if is_given else joint)
    assert error.fields == (("margin",) if is_given else ("margin", "within"))


@pytest.mark.parametrize("relation", sorted(set(RELATIONS) - {"within"}))
def test_no_other_relation_has_a_margin(relation: str) -> None:
    error = broken(margin=0.1, **{relation: ("a", "b")})
    assert error.rule == "within, and it alone, has a margin"
    assert error.fields == ("margin", relation)


@pytest.mark.parametrize(
    ("other", "factor"), [(0.5, 2.0), ("b", 0.0), ("b", -2.0), ("b", math.inf), ("b", math.nan)]
)
def test_a_factor_is_positive_finite_and_of_an_arm(other: str | float, factor: float) -> None:
    error = broken(less=("a", other), factor=factor)
    is_of_an_arm = other == "b"
    assert error.rule == ("0 < factor < inf" if is_of_an_arm else "a factor is of a second arm")
    assert error.fields == (("factor",) if is_of_an_arm else ("factor", "less"))
