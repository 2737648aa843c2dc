import csv
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

from reports.numbers.provenance import describe
from reports.pages.build import draft_report
from reports.pages.page import render_page
from reports.tables.table import tabulate
from sweeps.state.results import RunResult
from sweeps.study.claims import Claim, StatedComparison
from sweeps.study.study import Study
from tests.reports.drawn import draw
from tests.reports.synthetic import finish, make_study

_VOID = {"meta", "img", "br", "link", "hr", "input"}


class Checked(HTMLParser):
    """HTML parser that fails on tags closed out of order, and collects ids, links and text."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.addresses: list[str] = []
        self.tags: list[str] = []
        self.words = ""
        self.said: list[str] = []
        self.headings: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag not in _VOID:
            self.open.append(tag)
        for name, value in attrs:
            if name == "data-said":
                self.said.append(value or "")
            if name == "data-heading":
                self.headings.append(value or "")
            if name == "id":
                self.ids.append(value or "")
            if name in {"src", "href"}:
                self.addresses.append(value or "")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words += data


def check(study: Study, results: tuple[RunResult, ...]) -> Checked:
    table = tabulate(study, results)
    found = describe(
        study, results, selection_rule="none", data_checksums={}, command="mixsweep run <x>"
    )
    page = Checked()
    figures = tuple(draw(study, results).values())
    pieces = render_page(study, table, (), figures, found, files={"table.csv": table.csv()})
    page.feed("".join(pieces))
    page.close()
    assert page.open == []
    return page


def test_the_page_is_well_formed_and_needs_no_network(
    study: Study, results: tuple[RunResult, ...]
) -> None:
    page = check(study, results)
    assert len(set(page.ids)) == len(page.ids)
    assert page.tags.count("img") == 2
    assert all(address.startswith(("data:", "#")) for address in page.addresses)
    assert not {"script", "link", "iframe"} & set(page.tags)


def test_each_cell_of_the_main_table_has_its_heading_for_narrow_screens(
    study: Study, results: tuple[RunResult, ...]
) -> None:
    columns = [*tabulate(study, results).header[1:], "min/run"]
    assert check(study, results).headings == columns * len(study.arms)


def test_a_warning_of_the_caption_is_in_sight() -> None:
    study = make_study(("erm", "uniform"))
    page = check(study, tuple(finish(run, 0.9) for run in study.runs())).words
    assert "WARNING, no arm is better than guessing" in page.partition("How to read this")[0]


def test_a_study_without_results_has_a_page() -> None:
    study = make_study()
    results = tuple(RunResult(run=run, stage=None, failure=None) for run in study.runs())
    page = check(study, results)
    assert "15 of 15 runs" in page.words
    assert "img" not in page.tags


def test_the_page_shows_every_seed_and_its_difference(
    study: Study, results: tuple[RunResult, ...], tmp_path: Path
) -> None:
    report = draft_report(study, results, data_checksums={}, command="x").write(tmp_path / "r")
    rows = list(csv.DictReader((report.folder / "tables/seeds.csv").read_text().splitlines()))
    runs = {
        (row["arm"], row["seed"]): float(row["test/error"])
        for row in csv.DictReader((report.folder / "runs.csv").read_text().splitlines())
    }
    assert len(rows) == 15
    for row in rows:
        value = runs[row["arm"], row["seed"]]
        assert float(row["value"]) == value
        if row["arm"] != "erm":
            assert float(row["difference"]) == value - runs["erm", row["seed"]]
    page = Checked()
    page.feed((report.folder / "report.html").read_text())
    assert "Every seed" in page.words
    assert f"{100 * runs['uniform', '3']:.2f}" in page.words
    assert "Every seed" not in report.markdown


def test_the_conclusion_comes_before_the_results_and_claims_after_them(
    study: Study, results: tuple[RunResult, ...], tmp_path: Path
) -> None:
    claim = Claim(
        says="Uniform has less error", source="a paper",
        that=StatedComparison(metric="test/error", less=("uniform", "erm")),
    )  # fmt: skip
    study = replace(study, claims=(claim,))
    report = draft_report(study, results, data_checksums={}, command="x").write(tmp_path / "r")
    page, table = ((report.folder / name).read_text() for name in ("report.html", "table.md"))
    lead = page.index("Test error is lower for uniform than for erm, by ")
    assert lead < page.index("<h2>Results</h2>") < page.index("<h2>What was run</h2>")
    assert page.index("<h2>What was run</h2>") < page.index("Uniform has less error")
    assert table.index("Uniform has less error") < table.index("| arm ")
    assert "holds" in (report.folder / "tables/verdicts.csv").read_text()
