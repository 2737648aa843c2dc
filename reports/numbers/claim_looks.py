"""Claim looks: verdicts and numbers of seeds in a study that adds seeds at planned looks.

A look tests, on the seeds so far, all claims that no earlier look decided or gave up. A claim is
given up if the last look is unlikely to decide it, or if a run diverged or lacks the metric.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from mixup_core.store.checkpoints import Store
from reports.numbers.comparison import Comparison
from reports.numbers.course import Answer, Question, take_looks
from reports.numbers.predicted import gather_predictions
from reports.numbers.runs import arrange
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
from sweeps.study.claims import Claim
from sweeps.study.study import Study

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
