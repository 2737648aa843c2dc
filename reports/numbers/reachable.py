"""Reachable verdicts: check if results at n seeds can lead to the verdict `holds` or `fails`."""

import math
from collections.abc import Mapping
from itertools import product

from reports.numbers.comparison import contrast
from reports.numbers.shares import Measure
from reports.numbers.summary import CONFIDENCE
from reports.numbers.variances import MIN_SEEDS_VARIANCE
from sweeps.study.claims import Claim, Decision, StatedComparison
from sweeps.study.study import Study

_PARTS = (0.0, 1.0, 0.5)
"""Values that are tried for an arm, as fractions of the way from the lower to the upper bound of
the metric.
"""

_SPREAD = 1e-6
"""Spread over seeds of the values that are tried, as a fraction of the width between the bounds of
the metric. Used for metrics that are no counts: without a spread, their interval would be that of a
count.
"""


def planned_seeds(study: Study, claim: Claim) -> int:
    """Return the largest number of seeds with which a study may judge a claim.

    With planned looks this is the number at the last look, otherwise the number of seeds that all
    arms of the claim share.
    """
    if study.until is not None:
        return study.until.sizes[-1]
    return len(set.intersection(*(set(study.seeds_of(arm)) for arm in claim.that.terms)))


def reachable(that: StatedComparison, measures: Mapping[str, Measure], n: int) -> set[Decision]:
    """Return the verdicts on a claim (`holds`, `fails`) that results at n seeds can lead to.

    Several made-up results are tried. In each, all seeds of an arm have nearly the same value,
    because this gives the narrowest intervals. The values are the ends of the metric's range and
    their middle; a claim about one arm alone also tries the ends and the middle of the values that
    the claim allows. Intervals are those of a single test, the narrowest that Holm's procedure can
    give. A metric with an unlimited range can lead to both verdicts.
    """
    if n < 2:
        return set()
    if that.of == "variance":
        return {"holds", "fails"} if n >= MIN_SEEDS_VARIANCE else set()
    terms = that.terms
    own = [measures[arm] for arm in terms]
    if not all(measure.is_bounded for measure in own):
        return {"holds", "fails"}
    both: set[Decision] = {"holds", "fails"}
    found: set[Decision] = set()
    for values in product(*(_places(measure, that) for measure in own)):
        sides = [
            (factor, _seeds(value, measure, n, place), measure)
            for place, (factor, value, measure) in enumerate(
                zip(terms.values(), values, own, strict=True)
            )
        ]
        interval = contrast(sides).interval(CONFIDENCE)
        if interval is not None:
            found.add(that.judge(*interval))
        if both <= found:
            break
    return found & both


def _seeds(value: float, measure: Measure, n: int, place: int) -> dict[int, float]:
    """Return a value for each of n seeds, all equal or nearly equal to a given value."""
    width = measure.most - measure.least
    step = _SPREAD * width * (place + 1)
    if measure.size is not None:
        step = width / measure.size if n == 2 and place == 0 else 0.0
    start = min(measure.most - step, value)
    return {seed: start + step * (seed % 2) for seed in range(n)}


def _places(measure: Measure, that: StatedComparison) -> list[float]:
    """Return the values that are tried for an arm."""
    width = measure.most - measure.least
    places = [measure.least + width * part for part in _PARTS]
    if len(that.terms) == 1:
        (factor,) = that.terms.values()
        ends = [end / factor for end in that.allowed if math.isfinite(end)]
        places += [*ends, sum(ends) / max(1, len(ends))]
    return [place for place in places if measure.least <= place <= measure.most]
