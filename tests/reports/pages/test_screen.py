"""Screen: sentences are never stronger than verdicts, and the end of a run fits on one screen."""

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from docs.pages.tables import published_studies, results_of
from reports.numbers.judging import verdicts_of
from reports.numbers.runs import arrange
from reports.numbers.spelling import upper_first
from reports.numbers.verdict import Verdict
from reports.pages.build import draft_report
from reports.pages.screen import LINES, conclusion, findings, screen
from reports.tables.table import Table, tabulate
from sweeps.machine.terminal_text import COLUMNS, width_of
from sweeps.state.statements import Statement
from sweeps.study.claims import Relation
from sweeps.study.study import Study
from tests.bundled import bundled
from tests.reports.synthetic import FINISHED, SMALL, claim, finish, make_study

PUBLISHED = Path(__file__).parents[3] / "reports" / "published"
_TOLD = re.compile(
    r"(?P<label>.+) is (?P<word>lower|higher) for (?P<first>.+) than for (?P<second>.+?), by "
)


def read(name: str) -> tuple[Study, Table, Sequence[Verdict]]:
    """Return a published study with its table and verdicts."""
    study = bundled(name)
    results = results_of(study)
    return study, tabulate(study, results), verdicts_of(study, arrange(study, results))


def decided(study: Study, table: Table, verdicts: Sequence[Verdict]) -> set[tuple[Any, ...]]:
    """Return metric, word and arms of each decided comparison."""
    words = {"less": "lower", "greater": "higher"}
    found: set[tuple[Any, ...]] = set()
    for that in (v.claim.that for v in verdicts if v.verdict == "holds"):
        if that.margin is None and that.times == 1 and that.relation in words:
            label = study.problem.metric(that.metric).label
            sides = (study.title_of(s) if isinstance(s, str) else s for s in that.sides)
            found.add((label, words[that.relation], *sides))
    for row in table.printed:
        if row.compared is not None and row.compared.p is not None and row.compared.p <= 0.05:
            word = "lower" if row.compared.comparison.difference < 0 else "higher"
            found.add((table.shown.label, word, row.title, study.title_of(table.baseline)))
            assert not (row.compared.low or 0) <= 0 <= (row.compared.high or 0)
    return {(upper_first(label), *rest) for label, *rest in found}


def assert_never_stronger(study: Study, table: Table, verdicts: Sequence[Verdict]) -> None:
    """Require that each sentence which orders two arms follows from a decided comparison."""
    known, found = decided(study, table, verdicts), findings(study, table, verdicts)
    intervals: dict[str | None, set[str]] = {}
    for finding in found:
        told = _TOLD.match(finding.sentence)
        assert told is None or tuple(told.groups()) in known
        assert (told is not None) == (finding.kind in {"lower", "higher"}), finding
        own = intervals.setdefault(finding.arm, set())
        own |= set(re.findall(r" \[-?[0-9][^]]*\]", finding.sentence))
    intervals.pop(None, None)
    assert all(len(own) <= 1 for own in intervals.values()), "one difference has one interval"
    for finding, verdict in zip(found, verdicts, strict=False):
        is_told = finding.kind in {"lower", "higher"} or verdict.verdict in finding.claim
        assert is_told, finding
    told_apart = (finding for finding in found if finding.kind in {"lower", "higher"})
    named = {finding.title or str(finding.arm) for finding in told_apart}
    for text in conclusion(found):
        if text.startswith("Significantly"):
            arms = text.partition(": ")[2].rpartition(" (")[0].partition(" and ")[0].split(", ")
            assert set(arms) <= named


def assert_fits(text: str) -> None:
    lines = text.splitlines()
    assert len(lines) <= LINES
    assert max(map(width_of, lines)) <= COLUMNS
    assert not any(first == second == "" for first, second in pairwise(lines))


@pytest.mark.parametrize("name", [*published_studies()])
def test_the_screen_of_a_published_study_fits_and_is_never_stronger_than_its_verdicts(
    name: str,
) -> None:
    study, table, verdicts = read(name)
    assert_never_stronger(study, table, verdicts)
    assert_fits(screen(study, table, verdicts))


def test_readme_shows_the_screen_of_the_published_quickstart() -> None:
    text = screen(*read("quickstart"))
    assert f"{text}\nreport " in (PUBLISHED.parents[1] / "README.md").read_text("utf-8")


errors = st.floats(0, 1)


@settings(max_examples=60, deadline=None)
@example(values=[0.0, 2e-235, *[0.0] * 13], seeds=2, pairs=[])
@given(
    values=st.lists(errors | st.sampled_from([0.1, 0.2]) | st.none(), min_size=15, max_size=15),
    seeds=st.integers(1, 5),
    pairs=st.lists(
        st.tuples(
            st.sampled_from(["less", "greater", "within", "at_most"]),
            st.permutations(["erm", "midpoint", "uniform"]),
        ),
        max_size=5,
    ),
)
def test_no_sentence_is_stronger_than_its_verdict(
    values: list[float | None], seeds: int, pairs: list[tuple[Relation, list[str]]]
) -> None:
    margins = {"within": 0.01, "at_most": 0.01}
    claims = tuple(
        claim(relation, *arms[:2], says=f"claim {number}", margin=margins.get(relation))
        for number, (relation, arms) in enumerate(pairs)
    )
    study = replace(make_study(seeds=tuple(range(seeds))), claims=claims)
    results = tuple(
        finish(run, value) if value is not None else finish(run, epochs=0, failure="lost")
        for run, value in zip(study.runs(), values, strict=False)
    )
    table = tabulate(study, results)
    verdicts = verdicts_of(study, arrange(study, results))
    assert_never_stronger(study, table, verdicts)
    assert_fits(screen(study, table, verdicts))


def test_an_undecided_or_failed_claim_shows_its_difference_with_the_unit() -> None:
    found = findings(*read("readouts"))
    told = [finding.sentence for finding in found if "the difference is" in finding.sentence]
    assert told
    assert all(re.search(r": the difference is -?[0-9.]+ points \[", text) for text in told)


@pytest.mark.usefixtures("undrawn")
def test_the_screen_counts_claims_whose_seeds_were_changed_after_a_look() -> None:
    claims = tuple(claim("less", metric=metric) for metric in ("test/error", "test/nll"))
    changed = Statement(at_ms=1, finished=0, runs=10, seeds=(0,), extended=3)
    draft = draft_report(
        replace(SMALL, claims=claims), FINISHED, data_checksums={}, command="",
        statements={claims[0]: changed},
    )  # fmt: skip
    assert "Stated or changed after first results were known: 1 of 2 claims." in draft.screen
