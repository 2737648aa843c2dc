"""Reachable: the verdicts that a number of seeds can give at all, whatever the runs measure."""

import math
from collections.abc import Mapping
from itertools import product

from reports.numbers.comparison import contrast
from reports.numbers.shares import Measure
from reports.numbers.summary import CONFIDENCE
from sweeps.study.claims import Claim, Decision, StatedComparison
from sweeps.study.study import Study

_PARTS = (0.0, 1.0, 0.5)
"""Places between the bounds of a metric at which the seeds of an arm stand."""

_SPREAD = 1e-6
"""Spread over seeds, as a part of the width between the bounds, of a metric that counts nothing:
without any spread its interval is that of few things."""


def planned_seeds(study: Study, claim: Claim) -> int:
    """Return the number of seeds at which a study plans to judge a claim, at most."""
    if study.until is not None:
        return study.until.sizes[-1]
    return len(set.intersection(*(set(study.seeds_of(arm)) for arm in claim.that.terms)))


def reachable(that: StatedComparison, measures: Mapping[str, Measure], n: int) -> set[Decision]:
    """Return the verdicts, `holds` and `fails`, that some results at n seeds lead to.

    The results tried have all seeds of an arm at nearly one value, which gives the narrowest
    intervals that counting and exact limits allow: the bounds of the metric, the middle, and where
    an arm alone has the allowed values or their middle. Intervals are of one test, the best that
    Holm's procedure can give. A metric without bounds can give both.

    Args:
        that: The claim.
        measures: Arm to the values that the metric of one run can take.
        n: Number of seeds.
    """
    if n < 2:
        return set()
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
    """Return the value of each seed.

    Seeds of a metric that counts nothing differ a little. Two seeds of one arm differ by one thing
    that is counted, since two equal differences say nothing.
    """
    width = measure.most - measure.least
    step = _SPREAD * width * (place + 1)
    if measure.size is not None:
        step = width / measure.size if n == 2 and place == 0 else 0.0
    start = min(measure.most - step, value)
    return {seed: start + step * (seed % 2) for seed in range(n)}


def _places(measure: Measure, that: StatedComparison) -> list[float]:
    """Return the values to try for an arm; for one arm alone the allowed values give more."""
    width = measure.most - measure.least
    places = [measure.least + width * part for part in _PARTS]
    if len(that.terms) == 1:
        (factor,) = that.terms.values()
        ends = [end / factor for end in that.allowed if math.isfinite(end)]
        places += [*ends, sum(ends) / max(1, len(ends))]
    return [place for place in places if measure.least <= place <= measure.most]
