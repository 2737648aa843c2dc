"""Family: the comparisons of one metric that a report prints, adjusted for their number."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from reports.numbers.comparison import Comparison, compare
from reports.numbers.shares import ANY, Measure
from reports.numbers.summary import CONFIDENCE

Pair = tuple[str, str | float]
"""An arm, and the arm or number with which it is compared."""

BySeed = Mapping[int, float]


@dataclass(frozen=True, kw_only=True, slots=True)
class Member:
    """One comparison of a family, adjusted. Fields that need a spread are None at n = 1."""

    comparison: Comparison
    p: float | None
    """`comparison.p` times the size of the family, at most 1."""
    sign_flip_p: float | None
    """`comparison.sign_flip_p` times the size of the family, at most 1."""
    low: float | None
    """Lower end of the simultaneous 95 % interval; it excludes zero exactly if `p` <= 5 %."""
    high: float | None
    effect_low: float | None
    """Lower end of the interval of `comparison.effect` at the same level."""
    effect_high: float | None

    @property
    def is_told(self) -> bool:
        """True if the difference is significant at 5 % over the family."""
        return self.p is not None and self.p <= 1 - CONFIDENCE


_ADJUSTED = {
    "difference_ci_low": "low",
    "difference_ci_high": "high",
    "d_ci_low": "effect_low",
    "d_ci_high": "effect_high",
    "p": "p",
    "sign_flip_p": "sign_flip_p",
}
_UNADJUSTED = {
    "difference_ci_low_unadjusted": "ci_low",
    "difference_ci_high_unadjusted": "ci_high",
    "d_ci_low_unadjusted": "effect_low",
    "d_ci_high_unadjusted": "effect_high",
    "p_unadjusted": "p",
    "sign_flip_p_unadjusted": "sign_flip_p",
}


def record_of(member: Member | None) -> dict[str, float | None]:
    """Return the columns of a comparison in CSV files; each is None if there is no comparison.

    Intervals and p are simultaneous over the family, as in the printed table. Columns that end in
    `_unadjusted` are for one comparison alone.
    """
    alone = None if member is None else member.comparison
    means = {"difference": "difference", "difference_sd": "sd", "d": "effect"}
    return {
        **{name: getattr(alone, field, None) for name, field in means.items()},
        **{name: getattr(member, field, None) for name, field in _ADJUSTED.items()},
        **{name: getattr(alone, field, None) for name, field in _UNADJUSTED.items()},
    }


@dataclass(frozen=True, kw_only=True, slots=True)
class Family:
    """Comparisons that are printed together, with Bonferroni's adjustment.

    p <= 5 % exactly if the interval at the level 1 - 5 % / size excludes zero, and all intervals
    together have 95 % coverage for any dependence between the comparisons. Holm's p is never
    larger, but no interval around each mean agrees with it and keeps the 95 %. Dunnett's test would
    assume equal variances, which different arms do not have.
    """

    size: int
    """Number of tests: comparisons of different arms over two seeds or more."""
    members: Mapping[Pair, Member]
    """Comparisons of the pairs with a common seed, in the given order."""

    @property
    def confidence(self) -> float:
        """The confidence of each interval, so that all together have 95 %."""
        return 1 - (1 - CONFIDENCE) / max(1, self.size)

    def member(self, comparison: Comparison) -> Member:
        """Return a comparison adjusted for this family; it need not be one of its members."""
        interval = comparison.interval(self.confidence) or (None, None)
        effect = comparison.effect_interval(self.confidence) or (None, None)
        return Member(
            comparison=comparison,
            p=_bonferroni(comparison.p, self.size),
            sign_flip_p=_bonferroni(comparison.sign_flip_p, self.size),
            low=interval[0],
            high=interval[1],
            effect_low=effect[0],
            effect_high=effect[1],
        )


def family_of(
    pairs: Iterable[Pair],
    values: Mapping[str, BySeed],
    equal: Mapping[str, str],
    measures: Mapping[str, Measure] | None = None,
) -> Family:
    """Return the comparisons of some pairs, each test counted once.

    Repeated pairs, reversed pairs, and pairs of arms with the same computations are one test.

    Args:
        pairs: The pairs to print.
        values: Values by arm and seed.
        equal: For each arm, the first arm with the same computation (see `arms.equals`).
        measures: Possible values of each arm (`reports.numbers.runs.measures_of`).
    """
    compared = {
        pair: comparison
        for pair in dict.fromkeys(pairs)
        if (comparison := compare_pair(pair, values, measures)) is not None
    }
    tests = {
        test
        for pair, comparison in compared.items()
        if comparison.p is not None and len(test := _test(pair, equal)) == 2
    }
    family = Family(size=len(tests), members={})
    members = {pair: family.member(comparison) for pair, comparison in compared.items()}
    return replace(family, members=members)


def changed_decisions(pairs: Iterable[Pair], families: Mapping[str, Family]) -> list[str]:
    """Return a sentence for each comparison whose sign or decision differs between families.

    Args:
        pairs: The comparisons.
        families: Family by the words that begin its sentence, such as `By the last epoch`. The
            others are compared with the first.
    """
    (_, first), *others = families.items()
    sentences = []
    for pair in pairs:
        primary = first.members.get(pair)
        for beginning, family in others:
            other = family.members.get(pair)
            if primary is None or other is None:
                continue
            changed = []
            if primary.comparison.difference * other.comparison.difference < 0:
                changed.append("has the other sign")
            if primary.is_told != other.is_told:
                changed.append(
                    f"is {'' if other.is_told else 'not '}significantly different from 0 at 5 %"
                )
            if changed:
                what = f"{pair[0]} minus {pair[1]}"
                sentences.append(f"{beginning}, {what} {' and '.join(changed)}.")
    return sentences


def compare_pair(
    pair: Pair, values: Mapping[str, BySeed], measures: Mapping[str, Measure] | None = None
) -> Comparison | None:
    """Return the comparison over the common seeds; None if there are none."""
    arm, against = pair
    known = measures or {}
    ours, own = values.get(arm, {}), known.get(arm, ANY)
    if not isinstance(against, str):
        return compare(ours, against, own) if ours else None
    theirs = values.get(against, {})
    shared = ours.keys() & theirs.keys()
    if not shared:
        return None
    first, second = ({seed: of[seed] for seed in shared} for of in (ours, theirs))
    return compare(first, second, own, known.get(against, ANY))


def _test(pair: Pair, equal: Mapping[str, str]) -> frozenset[str | float]:
    """Return the identity of a test: two arms, or an arm and a number."""
    return frozenset(equal.get(side, side) if isinstance(side, str) else side for side in pair)


def _bonferroni(p: float | None, size: int) -> float | None:
    return None if p is None else min(1.0, max(1, size) * p)
