"""Course: a sequence of looks at claims, whose seeds are added until the claims are decided.

At each look, every open question is evaluated on all of its seeds so far, at the error level that
the look may spend (`sweeps.study.bounds`). Holm's procedure shares 5 % between the questions: at a
look with k open questions, the first is decided if its level over all looks is at most 5 % / k,
the next if its level is at most 5 % / (k - 1).

The interval of an answer is a repeated interval: whatever the reason why seeds stop, the intervals
of all looks together contain the true value with probability 1 - level (Jennison and Turnbull
1989). The mean itself is too far from zero on average, because seeds stop earlier if chance makes
it large.
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
from sweeps.study.until_decided import UntilDecided

_LEVEL = 1 - CONFIDENCE
_FORESEEN = 200
"""Number of predicted final means for futility, at equal steps of probability."""

Decides = Callable[[float, float], bool]
"""Function that returns whether an interval with these two ends decides a claim."""

CourseEnding = Literal["decided", "futile", "last", "lost", "open"]
"""Reason why a question gets no more seeds: it is decided; the last look is unlikely to decide it;
the last look was taken; a run diverged or lacks the metric. `open`: it gets more.
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Question:
    """A statistical question about some arms, with their numbers so far."""

    is_decided: Decides
    """Function of the two ends of an interval; true for an interval inside a decided one."""
    has_ended: Callable[[int], bool]
    """Function of n: true if the runs of the first n seeds are complete, or one diverged."""
    compare: Callable[[int], Comparison | None]
    """Function of n: the comparison over the first n seeds; None if one of them has no number."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """The answer to a question after the looks so far."""

    ending: CourseEnding
    look: int = 0
    """Number of the last look at the question, from 1; 0 if there was none."""
    seeds: int = 0
    """Number of seeds at that look."""
    comparison: Comparison | None = None
    """Comparison at that look."""
    p: float | None = None
    """The error level over all looks and questions at which it is decided, by Holm's procedure."""
    confidence: float | None = None
    """Confidence of the test at that look: 1 minus the error level that the look may spend."""


def take_looks(
    until: UntilDecided, questions: Sequence[Question], plans: int = 1
) -> list[tuple[Answer, ...]]:
    """Return the answers to all questions after each look that has been taken.

    A look is taken when all runs of the open questions have ended. Its result thus depends neither
    on interruptions nor on stored runs of later seeds.

    Args:
        until: The looks, and how the error level is distributed over them.
        questions: Different tests; they share 5 %.
        plans: Number of plans that added seeds, one after the other; the 5 % is divided by it.
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
    """Set levels, intervals and endings of the questions evaluated at a look, by Holm."""
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
    """Return the error level over all looks at which a question is just decided at this look."""
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
    """Return the error level of one look that corresponds to a level over all looks."""
    comparison = answer.comparison
    if comparison is not None and comparison.is_exact:
        return level / len(until.sizes)
    return nominal_levels(until.sizes, until.spending, level)[answer.look - 1]


def _is_futile(until: UntilDecided, question: Question, answer: Answer, level: float) -> bool:
    """Return whether the last look will decide with probability below `until.futility`.

    A question that is given up is never decided, so this can only lower the error rate.
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
    """Return the probability that the last look decides a claim, given its seeds so far.

    The mean of the future seeds is predicted from those so far, with their sd (Student t, flat
    prior); the sd at the last look is assumed to equal the present one.

    Args:
        until: The looks.
        decide: Function that returns whether an interval with these ends decides the claim.
        n: Number of seeds so far.
        mean: Mean of the claim's value over them.
        spread: Standard deviation of the value.
        nominal: Error level of the test at the last look.
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
