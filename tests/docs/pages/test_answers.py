"""Answers: the page is computed, and equals the committed one."""

import re
from pathlib import Path

import pytest

from docs.pages.answers import TEMPLATE, Answers, runnable
from docs.pages.published import PUBLISHED
from sweeps.reading.study_file import bundled_names
from tests.bundled import bundled


@pytest.fixture(scope="module")
def page() -> str:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("docs.pages.answers.load_study", bundled)  # each is read once
        return Answers().page()


def test_the_committed_answers_page_equals_the_generated_page(page: str) -> None:
    assert (PUBLISHED / "answers.md").read_text(encoding="utf-8") == page


def test_every_link_and_figure_of_the_answers_page_exists(page: str) -> None:
    targets = re.findall(r"\]\(([^)]+)\)", page)
    assert targets
    assert [target for target in targets if not (PUBLISHED / target).exists()] == []


def test_every_row_has_a_verdict_and_the_total_counts_all_rows(page: str) -> None:
    rows = re.findall(r"\| \*\*([a-z ]+)\*\* \|", page)
    assert {"holds", "fails", "undecided", "equivalent", "unfinished", "not run"} >= set(rows)
    (total,) = re.findall(r"Rows below: ([^.]+)\.", page)
    assert sum(int(number) for number in re.findall(r"\d+", total)) == len(rows)


def test_every_study_with_a_claim_is_on_the_page(page: str) -> None:
    asked = [name for name in bundled_names() if bundled(name).claims]
    assert [name for name in asked if f"`{name}`" not in page and f"[{name}]" not in page] == []


def test_every_failed_claim_of_a_source_is_among_the_contradictions(page: str) -> None:
    contradictions = page.split("## Where the runs contradict a source")[1].split("\n## ")[0]
    rows = [line for line in page.splitlines() if "| **fails** |" in line]
    says = {row.split(" | ")[2] for row in rows}
    own = {
        claim.says
        for name in bundled_names()
        for claim in bundled(name).claims
        if claim.source.startswith(("no source", "open question"))
    }
    assert says
    assert [sentence for sentence in says - own if sentence not in contradictions] == []


def test_a_study_without_a_report_is_not_among_the_studies_of_the_page(tmp_path: Path) -> None:
    assert list(runnable(tmp_path)) == []


def test_no_number_of_a_verdict_is_typed_into_the_template() -> None:
    assert not re.search(r"\[-?\d+\.\d+, -?\d+\.\d+\]", TEMPLATE.read_text(encoding="utf-8"))


def test_text_that_begins_no_claim_or_several_claims_is_refused(tmp_path: Path) -> None:
    for words in ("no such words", "Stopping mixup"):
        template = tmp_path / "page.md"
        template.write_text('{{ asked("x", "switch-epochs", "' + words + '") }}')
        with pytest.raises(KeyError, match="claims begin with"):
            Answers().page(template)
