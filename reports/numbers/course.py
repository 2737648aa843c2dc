"""Course: planned looks at the claims of a study, which adds seeds until the claims are decided.

At each look, every open claim is tested on all of its seeds so far, at the error level that is
planned for this look (`sweeps.study.bounds`). The p value of a claim is the smallest error
level, over all looks together, that lets this look decide it. Holm's procedure shares 5 % between
the claims: at a look with k claims that are not decided, the one with the smallest p value is
decided if this is at most 5 % / k, the one with the next p value if that is at most 5 % / (k - 1),
and so on.

A claim's interval is a repeated confidence interval: the intervals of all looks together contain
the true value with probability 1 - level, whatever the reason why no more seeds are added
(Jennison and Turnbull 1989). The mean itself is on average too far from zero, because a study stops
earlier if chance makes the mean large.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal

from scipy import special

from reports.numbers.comparison import Comparison
from reports.numbers.summary import CONFIDENCE
from sweeps.study.bounds import nominal_levels, overall_level
from sweeps.study.claims import UntilDecided

_LEVEL = 1 - CONFIDENCE
_FORESEEN = 200
"""Number of predicted final means in the test of futility; they are quantiles at equal steps of
probability.
"""

Decides = Callable[[float, float], bool]
"""Function of the two ends of an interval that returns whether the interval decides a claim."""

CourseEnding = Literal["decided", "futile", "last", "lost", "open"]
"""Reason why a claim gets no more seeds: `decided`; `futile`, the last look is unlikely to decide
the claim; `last`, the last look was taken; `lost`, a run diverged or lacks the metric. `open` means
that the claim gets more seeds.
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Question:
    """A claim to be tested at planned looks, given by three functions.

    They compare the arms of the claim over n seeds, and tell whether the runs of n seeds have ended
    and whether an interval decides the claim.
    """

    is_decided: Decides
    """Function of the two ends of an interval that returns whether it decides the question. If an
    interval decides it, every interval inside that one must do so too.
    """
    has_ended: Callable[[int], bool]
    """Function of n that returns whether the runs of the first n seeds are complete, or one has
    diverged.
    """
    compare: Callable[[int], Comparison | None]
    """Function of n that returns the comparison over the first n seeds; None if a run lacks the
    metric.
    """


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """The result of testing a claim at planned looks: decided or not, p, interval's confidence."""

    ending: CourseEnding
    look: int = 0
    """Number of the last look that tested the claim, from 1; 0 before the first look."""
    seeds: int = 0
    """Number of seeds at that look."""
    comparison: Comparison | None = None
    """The comparison at that look."""
    p: float | None = None
    """The p value after Holm's correction: the error level, over all looks and questions, at which
    the question is just decided.
    """
    confidence: float | None = None
    """Confidence of the interval at that look: 1 minus the error level planned for the look."""


def take_looks(
    until: UntilDecided, questions: Sequence[Question], plans: int = 1
) -> list[tuple[Answer, ...]]:
    """Test claims at planned looks; return, for each look taken, the results of all claims.

    A look is taken once all runs of the open claims have ended. Its results therefore depend
    neither on interruptions nor on stored runs of later seeds.
    """
    answers = [Answer(ending="open") for _ in questions]
    taken: list[tuple[Answer, ...]] = []
    for number, seeds in enumerate(until.sizes, 1):
        asked = [place for place, answer in enumerate(answers) if answer.ending == "open"]
        if not asked or not all(questions[place].has_ended(seeds) for place in asked):
            break
        for place in asked:
            found = questions[place].compare(seeds)
            ending: CourseEnding = "lost" if found is None else "open"
            answers[place] = Answer(ending=ending, look=number, seeds=seeds, comparison=found)
        _decide(until, questions, answers, asked, plans)
        taken.append(tuple(answers))
    return taken


def _decide(
    until: UntilDecided,
    questions: Sequence[Question],
    answers: list[Answer],
    asked: Sequence[int],
    plans: int,
) -> None:
    """Update p, confidence and ending of the claims tested at a look, by Holm's procedure."""
    levels = {
        place: min(1.0, plans * _overall(until, questions[place], answers[place]))
        for place in asked
        if answers[place].ending == "open"
    }
    left = sum(answer.ending != "decided" for answer in answers)
    reached, is_stopped = 0.0, False
    for place in sorted(levels, key=lambda place: levels[place]):
        reached = min(1.0, max(reached, left * levels[place]))
        is_stopped = is_stopped or reached > _LEVEL
        answer = answers[place]
        own = _LEVEL / left / plans
        answer = replace(answer, p=reached, confidence=1 - _nominal(until, answer, own))
        if not is_stopped:
            answer = replace(answer, ending="decided")
            left -= 1
        elif answer.seeds == until.sizes[-1]:
            answer = replace(answer, ending="last")
        elif _is_futile(until, questions[place], answer, own):
            answer = replace(answer, ending="futile")
        answers[place] = answer


def _overall(until: UntilDecided, question: Question, answer: Answer) -> float:
    """Return the error level, summed over all looks, at which this look just decides a question."""
    comparison = answer.comparison
    assert comparison is not None
    level = comparison.level(question.is_decided)
    if level is None:
        return 1.0
    sizes = until.sizes
    if comparison.is_exact:  # no t statistic: looks share the level equally
        return min(1.0, len(sizes) * level)
    return overall_level(sizes, until.spending, answer.look - 1, level)


def _nominal(until: UntilDecided, answer: Answer, level: float) -> float:
    """Return the error level of this look alone that belongs to a level over all looks."""
    comparison = answer.comparison
    if comparison is not None and comparison.is_exact:
        return level / len(until.sizes)
    return nominal_levels(until.sizes, until.spending, level)[answer.look - 1]


def _is_futile(until: UntilDecided, question: Question, answer: Answer, level: float) -> bool:
    """Return whether the last look would decide a question with probability below `until.futility`.

    A question that is given up counts as undecided, so giving up can only lower the error rate.
    """
    comparison = answer.comparison
    assert comparison is not None
    if not until.futility or comparison.spread is None or comparison.is_exact:
        return False
    nominal = nominal_levels(until.sizes, until.spending, level)[-1]
    difference, spread = float(comparison.difference), float(comparison.spread)
    decide = question.is_decided
    return chance_at_the_end(until, decide, answer.seeds, difference, spread, nominal) < (
        until.futility
    )


def chance_at_the_end(  # noqa: PLR0913  a plan, a claim, and its numbers so far
    until: UntilDecided, decide: Decides, n: int, mean: float, spread: float, nominal: float
) -> float:
    """Return the predicted probability that a claim is decided at the last planned look.

    The mean of the future seeds is predicted from mean and sd of the seeds so far (Student t, flat
    prior). The sd at the last look is assumed to equal the present one.
    """
    last = until.sizes[-1]
    if n == last:
        return 0.0
    scale = spread * math.sqrt(1 / n + 1 / (last - n)) * (last - n) / last
    half = -special.stdtrit(last - 1, nominal / 2) * spread / math.sqrt(last)
    means = (mean + scale * step for step in _steps(n))
    return sum(decide(at - half, at + half) for at in means) / _FORESEEN


@cache
def _steps(n: int) -> tuple[float, ...]:
    """Return `_FORESEEN` quantiles of Student's t with n - 1 degrees of freedom."""
    chances = ((k + 0.5) / _FORESEEN for k in range(_FORESEEN))
    return tuple(float(special.stdtrit(n - 1, chance)) for chance in chances)
