"""Looks: planned looks at the claims of a study, which adds seeds until the claims are decided.

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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Literal

from scipy import special

from mixup_core.store.checkpoints import Store
from reports.numbers.comparison import Comparison
from reports.numbers.predicted import gather_predictions
from reports.numbers.runs import arrange
from reports.numbers.summary import CONFIDENCE
from reports.numbers.verdict import (
    ClaimTest,
    Numbers,
    Verdict,
    VerdictName,
    claim_test,
    difference_of_references,
    measured,
    numbers_by,
)
from sweeps.state.results import Outcome, RunResult, read_predictions, read_results
from sweeps.state.statements import Statement, num_changes, statements_of
from sweeps.study.bounds import nominal_levels, overall_level
from sweeps.study.claims import Claim, UntilDecided
from sweeps.study.study import Study

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


Ends = Mapping[str, Mapping[int, Outcome]]
"""Outcome of each run, by arm and seed."""


def ends_of(arranged: Mapping[str, Mapping[int, RunResult]]) -> Ends:
    """Return the outcome of each run, such as `complete`, by arm and seed."""
    return {
        arm: {seed: result.outcome for seed, result in by_seed.items()}
        for arm, by_seed in arranged.items()
    }


def ends_if_measured(study: Study, numbers: Numbers) -> Ends:
    """Return the outcome `complete`, by arm and seed, for each run that has a claim's metric.

    This assumption is for unknown outcomes, for example if only a published `runs.csv` is
    available. Runs without a value of the metric are left out.
    """
    ends: dict[str, dict[int, Outcome]] = {}
    for claim in study.claims:
        for arm, by_seed in numbers(claim).items():
            ends.setdefault(arm, {}).update(dict.fromkeys(by_seed, "complete"))
    return ends


def verdicts_by_looks(
    study: Study,
    numbers: Numbers,
    ends: Ends,
    statements: Mapping[Claim, Statement],
) -> tuple[Verdict, ...]:
    """Return the latest verdict of each claim of a study, after all looks taken so far."""
    answers = _answers(study, numbers, ends, statements)
    return tuple(
        replace(
            _verdict_of(study, claim, answers[claim_test(study, claim)], numbers),
            stated=str(statements[claim]) if claim in statements else "",
        )
        for claim in study.claims
    )


def verdicts_of_looks(
    study: Study,
    numbers: Numbers,
    ends: Ends,
    statements: Mapping[Claim, Statement],
) -> list[tuple[Verdict | None, ...]]:
    """Return the history of verdicts: for each look taken so far, the verdict of each claim at it.

    A claim that was decided, or got no more seeds, after an earlier look has None instead of a
    verdict.
    """
    taken = _taken(study, numbers, ends, statements)
    return [
        tuple(
            _verdict_of(study, claim, answer, numbers) if answer.look == look else None
            for claim in study.claims
            for answer in (answers[claim_test(study, claim)],)
        )
        for look, answers in enumerate(taken, 1)
    ]


def _answers(
    study: Study,
    numbers: Numbers,
    ends: Ends,
    statements: Mapping[Claim, Statement],
) -> dict[ClaimTest, Answer]:
    """Return the answer to each test after the last look; claims with the same test share one."""
    taken = _taken(study, numbers, ends, statements)
    tests = {claim_test(study, claim) for claim in study.claims}
    return taken[-1] if taken else dict.fromkeys(tests, Answer(ending="open"))


def _taken(
    study: Study,
    numbers: Numbers,
    ends: Ends,
    statements: Mapping[Claim, Statement],
) -> list[dict[ClaimTest, Answer]]:
    """Return, for each look taken, the answer to each test; claims with the same test share one."""
    assert study.until is not None
    tested = {claim_test(study, claim): claim for claim in reversed(study.claims)}
    plans = 1 + num_changes(statements)
    questions = [_question(study, claim, numbers(claim), ends) for claim in tested.values()]
    taken = take_looks(study.until, questions, plans)
    return [dict(zip(tested, answers, strict=True)) for answers in taken]


def _question(
    study: Study, claim: Claim, numbers: Mapping[str, Mapping[int, float]], ends: Ends
) -> Question:
    """Return a claim as a `Question`, which can be tested at any number of seeds."""

    def has_ended(num: int) -> bool:
        outcomes = [ends.get(arm, {}).get(s) for arm in claim.that.arms for s in study.seeds[:num]]
        return "diverged" in outcomes or set(outcomes) == {"complete"}

    return Question(
        is_decided=lambda low, high: outcome_of(study, claim, low, high) != "undecided",
        has_ended=has_ended,
        compare=partial(_first, study, claim, numbers),
    )


def _first(
    study: Study, claim: Claim, numbers: Mapping[str, Mapping[int, float]], num: int
) -> Comparison | None:
    """Return the value of a claim over the first `num` seeds; None if a run lacks the metric."""
    first = {
        arm: {seed: numbers[arm][seed] for seed in study.seeds[:num] if seed in by_seed}
        for arm in claim.that.arms
        for by_seed in (numbers.get(arm, {}),)
    }
    comparison = measured(study, claim, first)
    return comparison if comparison is not None and comparison.n == num else None


def _verdict_of(study: Study, claim: Claim, answer: Answer, numbers: Numbers) -> Verdict:
    """Return the verdict of one claim after the looks that were taken."""
    assert study.until is not None
    found = Verdict(
        claim=claim,
        verdict="unfinished",
        reference=difference_of_references(study, claim),
        n=answer.seeds,
    )
    comparison = _first(study, claim, numbers(claim), answer.seeds)
    at = f"look {answer.look} of {len(study.until.sizes)}"
    if comparison is None:
        return found
    found = replace(found, value=comparison.difference, n=comparison.n)
    interval = None if answer.confidence is None else comparison.interval(answer.confidence)
    said: VerdictName = "undecided"
    if interval is not None:
        low, high = interval
        said = outcome_of(study, claim, low, high)
        found = replace(found, low=low, high=high, p=answer.p, confidence=answer.confidence)
    match answer.ending:
        case "decided":
            return replace(found, verdict=said, looks=f"at {at}")
        case "futile":
            return replace(found, verdict="undecided", looks=f"at {at}, given up")
        case "last":
            return replace(found, verdict="undecided", looks=f"at {answer.seeds} seeds, {at}")
        case _:
            return replace(found, looks=f"after {at}")


def reached(
    study: Study,
    numbers: Numbers,
    ends: Ends,
    statements: Mapping[Claim, Statement] | None = None,
) -> Study:
    """Return a copy of a study with planned looks that has only the seeds needed up to now.

    While a claim is open (not decided or given up), its arms get the seeds of the next look. An arm
    that is in no claim gets the seeds of the first look, an arm trained for a variant gets at least
    those of the arm whose setting it changes, and a teacher at least those of its students.
    """
    assert study.until is not None
    answers = _answers(study, numbers, ends, statements or {})
    sizes = study.until.sizes
    wanted = dict.fromkeys(study.arms, sizes[0])
    for claim in study.claims:
        answer = answers[claim_test(study, claim)]
        seeds = sizes[answer.look] if answer.ending == "open" else answer.seeds
        for arm in claim.that.arms:
            wanted[arm] = max(wanted[arm], seeds)
    return replace(study, reached=with_companions(study, wanted))


def with_companions(study: Study, wanted: Mapping[str, int]) -> dict[str, int]:
    """Return the number of seeds of each arm, raised for the arms that depend on other arms.

    An arm of a variant gets at least the seeds of the arm whose setting it changes, and a teacher
    at least those of its students.
    """
    wanted = dict(wanted)
    for variant in study.variants:
        for arm, varied in variant.arms.items():
            wanted[varied] = max(wanted[varied], wanted[arm])
    students = study.taught_by()
    for _ in students:  # a chain of teachers cannot be longer than the number of students
        for arm, teacher in students.items():
            wanted[teacher] = max(wanted[teacher], wanted[arm])
    return wanted


def open_claims(study: Study, store: Store) -> tuple[Claim, ...]:
    """Return the claims of a study with planned looks that need more seeds.

    If several claims have the same test, for example a claim and its opposite, only the first is
    returned.
    """
    answers = _answers(study, *_stored(study, store))
    tested = {claim_test(study, claim): claim for claim in reversed(study.claims)}
    return tuple(claim for test, claim in tested.items() if answers[test].ending == "open")


def reached_study(study: Study, store: Store) -> Study:
    """Read a study's stored results; return a copy with only the seeds needed up to now.

    A claim needs more seeds until a look decides it or gives it up (`reached`).
    """
    return reached(study, *_stored(study, store))


def _stored(study: Study, store: Store) -> tuple[Numbers, Ends, dict[Claim, Statement]]:
    """Return the stored numbers of the runs, their outcomes, and when each claim was stated."""
    arranged = arrange(study, read_results(study.runs(), store))
    predicted = None
    if any(claim.that.metric in study.problem.measuring.predicted for claim in study.claims):
        read = partial(read_predictions, store=store)
        predicted = gather_predictions(study, arranged, read)
    numbers = numbers_by(study, arranged, predicted)
    return numbers, ends_of(arranged), statements_of(study, store)


def outcome_of(study: Study, claim: Claim, low: float, high: float) -> VerdictName:
    """Return a claim's verdict, not a run's outcome, from its confidence interval `low` to `high`.

    An undecided claim becomes `equivalent` if it is about the headline metric, has no margin of its
    own, and the interval lies within the margin of equivalence that the study declares.
    """
    that, margin = claim.that, study.equivalence
    said: VerdictName = that.judge(low, high)
    is_margined = margin is not None and that.margin is None and that.metric == study.headline
    if said != "undecided" or margin is None or not is_margined:
        return said
    middle = that.number or 0.0
    return "equivalent" if middle - margin <= low and high <= middle + margin else "undecided"
