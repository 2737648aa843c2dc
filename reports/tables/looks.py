"""Looks: table of the planned looks of a study that adds seeds until its claims are decided."""

from collections.abc import Mapping

from reports.numbers.claim_looks import ends_of, verdicts_of_looks
from reports.numbers.predicted import Predicted
from reports.numbers.spelling import spell_p
from reports.numbers.verdict import numbers_by
from reports.tables.listings import Listing
from reports.tables.verdicts import spell_numbers
from sweeps.state.results import RunResult
from sweeps.state.statements import Statement
from sweeps.study.claims import Claim
from sweeps.study.study import Study


def looks_table(
    study: Study,
    arranged: Mapping[str, Mapping[int, RunResult]],
    predicted: Predicted | None = None,
    statements: Mapping[Claim, Statement] | None = None,
) -> Listing | None:
    """Return the result of each look at each claim; None if the study plans no looks.

    A claim has no row after the look that decided it or gave it up.

    Args:
        study: Study with the claims.
        arranged: Its results by arm and seed.
        predicted: Measures from predictions, as in `reports.numbers.verdicts.verdicts_of`.
        statements: When each claim was stated, as in `verdicts_of`.
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
    sizes = ", ".join(map(str, study.until.sizes))
    return Listing(
        name="looks",
        title="Looks at the claims",
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
        caption=f"Looks were planned at {sizes} seeds before the runs. A claim gets more seeds "
        "until a look decides it, or until the last look would decide it with a probability "
        f"below {study.until.futility:g}. p counts all looks and claims.",
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
