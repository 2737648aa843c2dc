"""Claims index: it is computed, and equals the committed one."""

from dataclasses import replace

import pytest

from docs.pages.claims_index import claims_index, spell_outcome
from docs.pages.published import PUBLISHED, Published
from reports.numbers.verdict import Verdict
from tests.bundled import bundled


@pytest.fixture(scope="module")
def index() -> str:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("docs.pages.claims_index.load_study", bundled)  # each is read once
        return claims_index()


def test_the_committed_claims_index_equals_the_generated_index(index: str) -> None:
    assert (PUBLISHED / "claims.md").read_text() == index


def test_the_claims_of_a_report_with_missing_runs_are_unfinished() -> None:
    study = bundled("table1-fmnist")
    for claim in study.claims:
        verdict = Verdict(claim=claim, verdict="unfinished", n=2)
        found = Published(told={}, source={}, is_finished=False)
        assert spell_outcome(verdict, found, study) == "unfinished"
        found = replace(found, is_finished=True)
        assert spell_outcome(verdict, found, study) == "to be run again"
