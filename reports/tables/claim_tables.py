"""Claims: tables of verdicts, with their comparisons and measured values, and of planned looks."""

import math
from collections.abc import Callable, Mapping

from mixup_core.problem import Metric
from reports.numbers.judging import Varied, spell_variants, verdict_records
from reports.numbers.looks import looks_of
from reports.numbers.predicted import Predicted
from reports.numbers.runs import Arranged
from reports.numbers.spelling import DASH, spell_number, spell_p, spell_value
from reports.numbers.verdict import Statements, Verdict, family_size
from reports.tables.listings import Listing, digits_of
from sweeps.state.statements import num_changes
from sweeps.study.claims import Claim, Relation, Side, StatedComparison, UntilDecided
from sweeps.study.readouts import of_predictions
from sweeps.study.study import Study


def verdict_table(
    study: Study,
    verdicts: tuple[Verdict, ...],
    varied: Varied | None = None,
    statements: Statements | None = None,
) -> Listing:
    """Return the table of a study's claims, with their comparisons, values and verdicts."""
    found, family = varied or {}, spell_claims_family(study, num_changes(statements or {}))
    return Listing(
        name="verdicts",
        title="Claims and verdicts",
        header=(
            "claim",
            "verdict",
            "comparison",
            "measured value",
            "printed in the source",
            "n",
            "p",
            "claim stated",
            *(("under other settings",) if found else ()),
        ),
        cells=tuple(
            (
                f"{verdict.claim.says} ({verdict.claim.source})",
                verdict.spelled,
                spell_compared(study, verdict.claim, study.title_of),
                *spell_numbers(study, verdict),
                str(verdict.n),
                spell_p(verdict.p),
                verdict.stated or "not recorded",
                *((spell_variants(verdict, found),) if found else ()),
            )
            for verdict in verdicts
        ),
        caption=f"Each verdict is computed from the runs, paired by seed (read-out: "
        f"{study.readout}). A claim holds if the whole confidence interval lies within the values "
        "that the claim allows, including its margin. It fails if the whole interval lies outside "
        f"of them. Otherwise it is undecided. {family}{_spell_looks(study)} "
        "Tests of the other tables are adjusted separately."
        + (
            " Under other settings (`sensitivity:`), each claim is judged again at the same seeds; "
            "the column lists where its verdict or the sign of its value differs."
            if found
            else ""
        ),
        records=tuple(verdict_records(verdicts, found)),
    )


def _spell_looks(study: Study) -> str:
    """Return a phrase on how the verdicts allow for planned looks; empty if there are none."""
    if study.until is None:
        return ""
    sizes = ", ".join(map(str, study.until.sizes))
    equal = (
        " A claim is equivalent if the whole interval lies within the margin of the study."
        if study.equivalence is not None
        else ""
    )
    return (
        f" Seeds were added at planned looks ({sizes} seeds); the error level of each look keeps "
        f"the total error at 5 % over all looks.{equal} Intervals are repeated confidence "
        "intervals: with 95 % confidence, those of all looks contain the true value. The measured "
        "value is the plain mean; it is biased away from the bound of the claim if an early look "
        "decided the claim."
    )


def spell_claims_family(study: Study, changes: int = 0) -> str:
    """Return a sentence on how verdicts are adjusted for the number of a study's claims."""
    size, error = family_size(study), 0.05 / (1 + changes)
    times = "once" if changes == 1 else f"{changes} times"
    why = f"because seeds were changed {times} after a report had shown results"
    if study.until is not None:
        why = f"because the planned looks were changed {times} after a look"
    if size < 2:
        if study.until is not None:
            return "There is one claim." + (f" Its interval is wider, {why}." if changes else "")
        if not changes:
            return "There is one claim, so its interval and p value are not adjusted."
        level = f"{100 * (1 - error):.3g} %"
        return (
            f"There is one claim. Its interval has the level {level}, and its p value is "
            f"multiplied by {1 + changes}, {why}."
        )
    text = (
        f"The p values are adjusted for the {size} tests of the claims (Holm), so that all "
        "verdicts together are right with 95 % confidence. A claim is decided exactly if p is at "
        "most 0.05."
    )
    if study.until is None:
        text += (
            " Each interval has the level that Holm's procedure gives it, "
            f"{100 * (1 - error):.3g} % to {100 * (1 - error / size):.3g} %."
        )
    more = f" All p values are also multiplied by {1 + changes}, {why}."
    if study.until is not None:
        more = f" All intervals are wider, {why}."
    return text + (more if changes else "")


def metric_of(study: Study, claim: Claim) -> Metric:
    """Return the kind of value that a claim is about: its metric, or a ratio of variances."""
    found = study.problem.metric(claim.that.metric)
    return Metric(label=f"variance of {found.label}") if claim.that.of == "variance" else found


def spell_numbers(study: Study, verdict: Verdict) -> tuple[str, str]:
    """Return two texts on a claim: measured value with interval, and value of papers."""
    shown = metric_of(study, verdict.claim)
    scale, digits = shown.scale, digits_of(verdict.n, shown)
    printed = verdict.reference
    reference = DASH if printed is None else _spell_written(printed, shown)
    return spell_value(verdict.value, verdict.low, verdict.high, scale, digits), reference


def spell_compared(study: Study, claim: Claim, name: Callable[[str], str] = str) -> str:
    """Return the comparison of a claim as text: `test error, %: uniform less than erm`.

    `name` returns what stands for an arm. Published pages show its name without tags.
    """
    that, shown = claim.that, metric_of(study, claim)
    margin = "" if that.margin is None else f" {_spell_margin(that, shown)}"
    readout = f", {that.readout}" if that.readout not in (None, study.readout) else ""
    together = _spell_together(that, name)
    if that.metric in study.problem.measuring.predicted:
        readout = f", {of_predictions(study.readout)}"
    left, right = (_spell_side(side, shown, name) for side in (that.left, that.right))
    times = "" if that.times == 1 else f"{that.times:g} x "
    relation = f"{left} {_RELATIONS[that.relation]} {times}{right}"
    return f"{shown.heading}{readout}: {relation}{margin}{together}"


def spell_threshold(study: Study, claim: Claim) -> str:
    """Return the numbers that a claim compares with, as text: its number, factor and margins."""
    that, shown = claim.that, metric_of(study, claim)
    told = [] if that.number is None else [_spell_written(that.number, shown)]
    told += [] if that.factor is None else [f"{that.factor:g} times"]
    told += [] if that.margin is None else [_spell_margin(that, shown)]
    if study.equivalence is not None and that.of is None:
        told.append(f"equivalent within ± {_spell_written(study.equivalence, shown)}")
    return " ".join(told) or DASH


_RELATIONS: Mapping[Relation, str] = {
    "less": "less than",
    "greater": "greater than",
    "at_least": "at least",
    "at_most": "at most",
    "within": "within",
}


def _spell_margin(that: StatedComparison, shown: Metric) -> str:
    assert that.margin is not None
    if that.of == "variance":
        return f"up to a factor of {that.margin:g}"
    return f"± {_spell_written(that.margin, shown)}"


def _spell_together(that: StatedComparison, name: Callable[[str], str]) -> str:
    if not that.together:
        return ""
    return f" ({that.networks} networks of {' and of '.join(map(name, that.together))} together)"


def _spell_side(side: Side, shown: Metric, name: Callable[[str], str]) -> str:
    if isinstance(side, tuple):
        return f"({' minus '.join(map(name, side))})"
    return name(side) if isinstance(side, str) else _spell_written(side, shown)


def _spell_written(value: float, metric: Metric) -> str:
    """Return a number of a study file as text, with all its digits if rounding would change it."""
    shown = spell_number(value * metric.scale, metric.digits)
    is_whole = math.isclose(float(shown), value * metric.scale, rel_tol=1e-9)
    return shown if is_whole else f"{value * metric.scale:g}"


def looks_table(
    study: Study,
    arranged: Arranged,
    predicted: Predicted | None = None,
    statements: Statements | None = None,
) -> Listing | None:
    """Return the table with the result of each claim of a study at each look taken so far."""
    if study.until is None:
        return None
    lines = looks_of(study, arranged, predicted, statements).history
    return Listing(
        name="looks",
        title="Claims at each planned look",
        header=("look", "seeds", "claim", "value", "p", "result"),
        cells=tuple(
            (
                str(look),
                str(verdict.n),
                verdict.claim.says,
                spell_numbers(study, verdict)[0],
                spell_p(verdict.p),
                "open" if verdict.verdict == "unfinished" else verdict.spelled,
            )
            for look, verdict in lines
        ),
        caption=f"{_spell_plan(study.until, statements or {})} A claim gets more seeds until a "
        "look decides it, or until the probability that the last look will decide it is below "
        f"{study.until.futility:g}. The p values are adjusted for all looks and claims.",
        # Frozen: columns of `tables/looks.csv`, which scripts read by name;
        # tests/reports/tables/test_claim_tables.py fails.
        records=tuple(
            {
                "look": look,
                "seeds": verdict.n,
                "says": verdict.claim.says,
                **{n: getattr(verdict, n) for n in ("value", "low", "high", "p", "confidence")},
                "result": "open" if verdict.verdict == "unfinished" else verdict.verdict,
            }
            for look, verdict in lines
        ),
        is_long=True,
    )


def _spell_plan(until: UntilDecided, statements: Statements) -> str:
    """Return the numbers of seeds at the looks as a sentence, with when they were planned."""
    sizes = f"at {', '.join(map(str, until.sizes))} seeds"
    changes = num_changes(statements)
    if changes:
        times = "once" if changes == 1 else f"{changes} times"
        return (
            f"Claims are tested at looks {sizes}. This plan was changed {times} after a look, "
            "which widens all intervals."
        )
    if any(statement.finished for statement in statements.values()) or not statements:
        return f"Claims are tested at looks {sizes}."
    return f"Claims are tested at looks {sizes}, which were planned before the runs."
