"""Families: the comparisons of one metric that a report prints, adjusted for their number."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from reports.numbers.comparison import Comparison, over_shared
from reports.numbers.summary import ANY, CONFIDENCE, Measure

Pair = tuple[str, str]

BySeed = Mapping[int, float]


@dataclass(frozen=True, kw_only=True, slots=True)
class Member:
    """One of several printed comparisons, with p and interval adjusted for their number."""

    comparison: Comparison
    p: float | None
    """`comparison.p` times the size of the family, at most 1."""
    sign_flip_p: float | None
    low: float | None
    """Lower end of the simultaneous 95 % interval; it excludes zero exactly if `p` <= 5 %."""
    high: float | None
    effect_low: float | None
    """Lower end of the interval of the standardised difference; its level is that of `low`."""
    effect_high: float | None

    @property
    def is_told(self) -> bool:
        """True if the arms are told apart: they differ significantly, with adjusted p <= 5 %."""
        return self.p is not None and self.p <= 1 - CONFIDENCE


# Frozen: columns of `table.csv` and others, which scripts read by name;
# tests/reports/test_recomputed.py fails.
_COLUMNS = {
    "difference_ci_low": ("low", "ci_low"),
    "difference_ci_high": ("high", "ci_high"),
    "d_ci_low": ("effect_low", "effect_low"),
    "d_ci_high": ("effect_high", "effect_high"),
    "p": ("p", "p"),
    "sign_flip_p": ("sign_flip_p", "sign_flip_p"),
}
"""Columns of a CSV row, with the field of a `Member` and that of its `Comparison` alone."""


def record_of(member: Member | None) -> dict[str, float | None]:
    """Return the numbers of a comparison (difference, interval, p, ...) as a CSV row, by column."""
    alone = None if member is None else member.comparison
    means = {"difference": "difference", "difference_sd": "sd", "d": "effect"}
    return {
        **{name: getattr(alone, field, None) for name, field in means.items()},
        **{name: getattr(member, field, None) for name, (field, _) in _COLUMNS.items()},
        **{f"{name}_unadjusted": getattr(alone, f, None) for name, (_, f) in _COLUMNS.items()},
    }


@dataclass(frozen=True, kw_only=True, slots=True)
class Family:
    """Comparisons that a report prints together, adjusted for their number by Bonferroni's method.

    p is at most 5 % exactly if the interval at the level 1 - 5 % / size excludes zero, and all
    intervals together have 95 % coverage, however the comparisons depend on each other. Holm's
    procedure gives the same p or a smaller one, but no intervals around the means that agree with
    its p and have 95 % coverage together. Dunnett's test would assume equal variances, which
    different arms do not have.
    """

    size: int
    """Number of tests: comparisons of arms that compute different things, over two seeds or more.
    """
    members: Mapping[Pair, Member]

    @property
    def confidence(self) -> float:
        """Confidence of each interval in the family, so that all together have 95 % coverage."""
        return 1 - (1 - CONFIDENCE) / max(1, self.size)

    def member(self, comparison: Comparison) -> Member:
        """Return any comparison with p and interval adjusted for this family's size."""
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
    """Compare pairs of arms; return all comparisons as a family, adjusted for their number.

    A pair that is repeated or reversed counts once, and so do pairs of arms with the same results.
    """
    compared = {
        pair: comparison
        for pair in dict.fromkeys(pairs)
        if (comparison := compare_pair(pair, values, measures)) is not None
    }
    tests = {
        test
        for pair, comparison in compared.items()
        if comparison.p is not None
        and len(test := frozenset(equal.get(side, side) for side in pair)) == 2
    }
    family = Family(size=len(tests), members={})
    members = {pair: family.member(comparison) for pair, comparison in compared.items()}
    return replace(family, members=members)


def changed_decisions(
    pairs: Iterable[Pair], families: Mapping[str, Family], title_of: Callable[[str], str]
) -> list[str]:
    """Return a sentence for each comparison whose sign or significance differs between families."""
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
                changed.append("has the opposite sign")
            if primary.is_told != other.is_told:
                changed.append(
                    f"is {'' if other.is_told else 'not '}significantly different from 0 at 5 %"
                )
            if changed:
                difference = " minus ".join(map(title_of, pair))
                sentences.append(f"{beginning}, {difference} {' and '.join(changed)}.")
    return sentences


def compare_pair(
    pair: Pair, values: Mapping[str, BySeed], measures: Mapping[str, Measure] | None = None
) -> Comparison | None:
    """Return the comparison of two arms over their shared seeds; None without any."""
    measure_of = measures or {}
    factors = zip((1.0, -1.0), pair, strict=True)
    return over_shared([(f, values.get(arm, {}), measure_of.get(arm, ANY)) for f, arm in factors])


def _bonferroni(p: float | None, size: int) -> float | None:
    return None if p is None else min(1.0, max(1, size) * p)


def holm(ps: Sequence[float]) -> tuple[float, ...]:
    """Return p values adjusted by Holm's procedure; all of `ps` are one family of tests.

    The results are in the order of `ps`. Sorted in rising order, the i-th of m values (i from 0) is
    multiplied by m - i. A product below an earlier one is raised to it, and none exceeds 1.

    Source: Holm 1979, A simple sequentially rejective multiple test procedure.
    """
    adjusted = [0.0] * len(ps)
    reached = 0.0
    for rank, place in enumerate(sorted(range(len(ps)), key=ps.__getitem__)):
        reached = max(reached, min(1.0, (len(ps) - rank) * ps[place]))
        adjusted[place] = reached
    return tuple(adjusted)
