"""Looks: table of the planned looks of a study that adds seeds until its claims are decided."""

from collections.abc import Mapping

from reports.numbers.claim_looks import ends_of, verdicts_of_looks
from reports.numbers.predicted import Predicted
from reports.numbers.spelling import spell_p
from reports.numbers.verdict import numbers_by
from reports.tables.claim_tables import spell_numbers
from reports.tables.listings import Listing
from sweeps.state.results import RunResult
from sweeps.state.statements import Statement, num_changes
from sweeps.study.claims import Claim, UntilDecided
from sweeps.study.study import Study


def looks_table(
    study: Study,
    arranged: Mapping[str, Mapping[int, RunResult]],
    predicted: Predicted | None = None,
    statements: Mapping[Claim, Statement] | None = None,
) -> Listing | None:
    """Return the table with the result of each claim of a study at each look taken so far.

    The last row of a claim is that of the look that decides it, or after which the claim gets no
    more seeds. The result is None if the study plans no looks.
    """
    if study.until is None:
        return None
    numbers = numbers_by(study, arranged, predicted)
    found = verdicts_of_looks(study, numbers, ends_of(arranged), statements or {})
    lines = [
        (look, verdict)
        for look, verdicts in enumerate(found, 1)
        for verdict in verdicts
        if verdict is not None
    ]
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
        records=tuple(
            {
                "look": look,
                "seeds": verdict.n,
                "says": verdict.claim.says,
                "value": verdict.value,
                "low": verdict.low,
                "high": verdict.high,
                "p": verdict.p,
                "confidence": verdict.confidence,
                "result": "open" if verdict.verdict == "unfinished" else verdict.verdict,
            }
            for look, verdict in lines
        ),
        is_long=True,
    )


def _spell_plan(until: UntilDecided, statements: Mapping[Claim, Statement]) -> str:
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
