"""Answers: the page is computed, and equals the committed one."""

import re
from dataclasses import replace

import pytest

from docs.pages.answers import KINDS, TEMPLATE, Answers, entries
from docs.pages.claims_index import spell_outcome, verdicts_of_today
from docs.pages.published import PUBLISHED, latest_report
from sweeps.reading.study_file import bundled_names
from tests.bundled import bundled


@pytest.fixture(scope="module")
def page() -> str:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("docs.pages.answers.load_study", bundled)  # each is read once
        return Answers().page()


def test_the_committed_answers_page_equals_the_generated_page(page: str) -> None:
    assert (PUBLISHED / "answers.md").read_text(encoding="utf-8") == page


def test_every_entry_has_a_known_kind_of_evidence_and_known_links() -> None:
    for name, section in entries().items():
        for study, entry in section.items() if name != "sentences" else ():
            kinds = {entry["evidence"], *entry.get("but", {}).values()}
            assert kinds <= KINDS.keys(), study
            assert {entry.get("see", study), entry.get("instead", study)} <= set(bundled_names())
            known = "states as evidence differs but see instead axis printed"
            assert entry.keys() <= set(known.split())
            says = entry["states"]
            texts = [says] if isinstance(says, str) else says.values()
            assert all("The same" not in text for text in texts)


def test_the_protocol_of_a_source_has_no_choice_of_this_project() -> None:
    ours = re.compile(
        r"chosen for this study|choice of this project|names? neither|prints? neither"
    )
    for section in list(entries().values())[:-1]:
        for name, entry in section.items():
            if entry["evidence"] == "protocol":
                study = bundled(name)
                assert not ours.search(" ".join((study.description, *study.differs))), name


def test_each_row_on_a_source_has_its_sentence_and_no_other_row_has_one(page: str) -> None:
    rows = [
        line[2:].split(" | ")
        for line in page.splitlines()
        if re.search(r"\| \*\*[a-z ]+\*\*", line)
    ]
    own = {KINDS["own"], KINDS["mirrored"], KINDS["check"]}
    assert rows
    assert [row for row in rows if (row[0] == "—") != (row[7] in own)] == []


def test_a_claim_has_the_sentence_that_it_tests_and_each_sentence_has_a_claim() -> None:
    answers = Answers()
    used: dict[str, set[str]] = {}
    for name in answers._names():
        asked = answers._of(name)
        for claim in asked.study.claims:
            says, _, here = asked.states(claim).partition("; here ")
            used.setdefault(asked.entry.get("as", name), set()).add(says)
            used.setdefault(name, set()).add(here or says)
    for section in list(entries().values())[:-1]:
        for name, entry in section.items():
            if isinstance(entry["states"], dict):
                assert set(entry["states"].values()) <= used[name], name


def test_each_listed_sentence_has_a_study_or_a_reason() -> None:
    for row in entries()["sentences"]:
        assert row["reason"]
        assert set(row.get("study", ())) <= set(bundled_names())


def test_runs_of_corrected_code_are_to_be_run_again() -> None:
    report = latest_report(PUBLISHED, "quickstart")
    study = bundled("quickstart")
    assert not report.outdated(study)
    runs = tuple(dict(run) for run in report.runs)
    runs[0]["run_key"] = "0" * 32
    changed = replace(report, runs=runs)
    assert changed.outdated(study) == {runs[0]["arm"]}
    verdicts = verdicts_of_today(study, changed)
    hit = [v for v in verdicts if runs[0]["arm"] in v.claim.that.arms]
    assert {spell_outcome(v, changed, study) for v in hit} == {"to be run again"}


def test_every_study_with_a_claim_is_on_the_page(page: str) -> None:
    asked = [name for name in bundled_names() if bundled(name).claims]
    assert [name for name in asked if f"`{name}`" not in page and f"[{name}]" not in page] == []


def test_no_number_of_a_verdict_is_typed_into_the_template() -> None:
    assert not re.search(r"\[-?\d+\.\d+, -?\d+\.\d+\]", TEMPLATE.read_text(encoding="utf-8"))
