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
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial
from typing import Literal

from scipy import special

from mixup_core.store.checkpoints import Store
from reports.numbers.comparison import Comparison
from reports.numbers.predicted import Predicted, gather_predictions
from reports.numbers.runs import Arranged, arrange
from reports.numbers.summary import CONFIDENCE
from reports.numbers.verdict import (
    ClaimTest,
    Numbers,
    Statements,
    Verdict,
    VerdictName,
    claim_test,
    claims_predictions,
    difference_of_references,
    measured,
    numbers_by,
)
from sweeps.state.results import Outcome, read_predictions, read_results
from sweeps.state.statements import num_changes, statements_of
from sweeps.study.bounds import nominal_levels, overall_level
from sweeps.study.claims import Claim, UntilDecided
from sweeps.study.study import Study

_LEVEL = 1 - CONFIDENCE
# Frozen: this number decides when a claim of an old study is given up;
# tests/reports/numbers/test_looks.py fails.
_FORESEEN = 200
"""Number of predicted final means in the test of futility."""

Decides = Callable[[float, float], bool]
"""Function of the two ends of an interval that returns whether the interval decides a claim."""

CourseEnding = Literal["decided", "futile", "last", "lost", "open"]
"""Reason why a claim gets no more seeds: `decided`; `futile`, the last look is unlikely to decide
the claim; `last`, the last look was taken; `lost`, a run diverged or lacks the metric. `open` means
that the claim gets more seeds.
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Question:
    """A claim to be tested at planned looks, given by three functions."""

    is_decided: Decides
    has_ended: Callable[[int], bool]
    """Function of n that returns whether the runs of the first n seeds are complete, or one has
    diverged.
    """
    compare: Callable[[int], Comparison | None]
    """Function of n that returns the comparison over the first n seeds."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """The result of testing a claim at planned looks: decided or not, p, interval's confidence."""

    ending: CourseEnding
    look: int = 0
    """Number of the last look that tested the claim, from 1; 0 before the first look."""
    seeds: int = 0
    comparison: Comparison | None = None
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


def ends_of(arranged: Arranged) -> Ends:
    """Return the outcome of each run, such as `complete`, by arm and seed."""
    return {
        arm: {seed: result.outcome for seed, result in by_seed.items()}
        for arm, by_seed in arranged.items()
    }


def ends_if_measured(study: Study, numbers: Numbers) -> Ends:
    """Return the outcome `complete`, by arm and seed, for each run that has a claim's metric."""
    ends: dict[str, dict[int, Outcome]] = {}
    for claim in study.claims:
        for arm, by_seed in numbers(claim).items():
            ends.setdefault(arm, {}).update(dict.fromkeys(by_seed, "complete"))
    return ends


@dataclass(frozen=True, kw_only=True)
class Looked:
    """A study with planned looks and its results so far, from which all looks follow."""

    study: Study
    numbers: Numbers
    ends: Ends
    statements: Statements = field(default_factory=dict)

    @cached_property
    def taken(self) -> list[dict[ClaimTest, Answer]]:
        """The answer to each test, for each look taken; claims with the same test share one."""
        assert self.study.until is not None
        plans = 1 + num_changes(self.statements)
        questions = [self._question(claim) for claim in self._tested.values()]
        taken = take_looks(self.study.until, questions, plans)
        return [dict(zip(self._tested, answers, strict=True)) for answers in taken]

    @property
    def answers(self) -> dict[ClaimTest, Answer]:
        """The answer to each test after the last look."""
        return self.taken[-1] if self.taken else dict.fromkeys(self._tested, Answer(ending="open"))

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """The latest verdict of each claim of the study."""
        study, answers = self.study, self.answers
        return tuple(self._verdict_of(c, answers[claim_test(study, c)]) for c in study.claims)

    @property
    def history(self) -> list[tuple[int, Verdict]]:
        """Each look taken so far with the verdict of each claim that it tested."""
        return [
            (look, self._verdict_of(claim, answer))
            for look, answers in enumerate(self.taken, 1)
            for claim in self.study.claims
            if (answer := answers[claim_test(self.study, claim)]).look == look
        ]

    @property
    def open_claims(self) -> tuple[Claim, ...]:
        """The claims that need more seeds; of several claims with the same test only the first."""
        answers = self.answers
        return tuple(c for test, c in self._tested.items() if answers[test].ending == "open")

    def reached(self) -> Study:
        """Return a copy of the study that has only the seeds needed up to now.

        While a claim is open (not decided or given up), its arms get the seeds of the next look. An
        arm that is in no claim gets the seeds of the first look, an arm trained for a variant gets
        at least those of the arm whose setting it changes, and a teacher at least those of its
        students.
        """
        study, answers = self.study, self.answers
        assert study.until is not None
        sizes = study.until.sizes
        wanted = dict.fromkeys(study.arms, sizes[0])
        for claim in study.claims:
            answer = answers[claim_test(study, claim)]
            seeds = sizes[answer.look] if answer.ending == "open" else answer.seeds
            for arm in claim.that.arms:
                wanted[arm] = max(wanted[arm], seeds)
        return replace(study, reached=with_companions(study, wanted))

    @cached_property
    def _tested(self) -> dict[ClaimTest, Claim]:
        return {claim_test(self.study, claim): claim for claim in reversed(self.study.claims)}

    def _question(self, claim: Claim) -> Question:
        def has_ended(num: int) -> bool:
            seeds, arms = self.study.seeds[:num], claim.that.arms
            outcomes = [self.ends.get(arm, {}).get(seed) for arm in arms for seed in seeds]
            return "diverged" in outcomes or set(outcomes) == {"complete"}

        return Question(
            is_decided=lambda low, high: outcome_of(self.study, claim, low, high) != "undecided",
            has_ended=has_ended,
            compare=partial(self._first, claim),
        )

    def _first(self, claim: Claim, num: int) -> Comparison | None:
        """Return a claim's value over the first `num` seeds; None if a run lacks the metric."""
        numbers, seeds = self.numbers(claim), self.study.seeds[:num]
        first = {
            arm: {seed: numbers[arm][seed] for seed in seeds if seed in numbers.get(arm, {})}
            for arm in claim.that.arms
        }
        comparison = measured(self.study, claim, first)
        return comparison if comparison is not None and comparison.n == num else None

    def _verdict_of(self, claim: Claim, answer: Answer) -> Verdict:
        """Return the verdict of one claim after the looks that were taken."""
        study = self.study
        assert study.until is not None
        reference = difference_of_references(study, claim)
        found = Verdict(claim=claim, verdict="unfinished", reference=reference, n=answer.seeds)
        comparison = self._first(claim, answer.seeds)
        if comparison is None:
            return found
        found = replace(found, value=comparison.difference, n=comparison.n)
        interval = None if answer.confidence is None else comparison.interval(answer.confidence)
        said: VerdictName = "undecided"
        if interval is not None:
            low, high = interval
            said = outcome_of(study, claim, low, high)
            found = replace(found, low=low, high=high, p=answer.p, confidence=answer.confidence)
        at = f"look {answer.look} of {len(study.until.sizes)}"
        match answer.ending:
            case "decided":
                return replace(found, verdict=said, looks=f"at {at}")
            case "futile":
                return replace(found, verdict="undecided", looks=f"at {at}, given up")
            case "last":
                return replace(found, verdict="undecided", looks=f"at {answer.seeds} seeds, {at}")
            case _:
                return replace(found, looks=f"after {at}")


def with_companions(study: Study, wanted: Mapping[str, int]) -> dict[str, int]:
    """Return the number of seeds of each arm, raised for the arms that depend on other arms."""
    wanted = dict(wanted)
    for variant in study.variants:
        for arm, varied in variant.arms.items():
            wanted[varied] = max(wanted[varied], wanted[arm])
    students = study.taught_by()
    for _ in students:  # a chain of teachers cannot be longer than the number of students
        for arm, teacher in students.items():
            wanted[teacher] = max(wanted[teacher], wanted[arm])
    return wanted


def stored_looks(study: Study, store: Store) -> Looked:
    """Return a study's looks, from its stored results."""
    arranged = arrange(study, read_results(study.runs(), store))
    predicted = None
    if claims_predictions(study):
        read = partial(read_predictions, store=store)
        predicted = gather_predictions(study, arranged, read)
    return looks_of(study, arranged, predicted, statements_of(study, store))


def looks_of(
    study: Study, arranged: Arranged, predicted: Predicted | None, statements: Statements | None
) -> Looked:
    """Return a study's looks, from its results by arm and seed."""
    return Looked(
        study=study,
        numbers=numbers_by(study, arranged, predicted),
        ends=ends_of(arranged),
        statements=statements or {},
    )


def reached_study(study: Study, store: Store) -> Study:
    """Read a study's stored results; return a copy with only the seeds needed up to now."""
    return stored_looks(study, store).reached()


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
