import base64
import csv
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

from reports.figures.canvas import Figure
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


def test_the_page_shows_table_time_caption_and_origin(
    study: Study, results: tuple[RunResult, ...]
) -> None:
    words = check(study, results).words
    table = tabulate(study, results)
    assert all(cell in words for cells in table.cells for cell in cells)
    for statement in table.caption.removesuffix(".").split(". "):
        assert statement in words
    assert "min/run" in words
    assert "mixsweep run <x>" in words
    assert "2023-11-14 22:13 UTC" in words


def test_each_cell_of_the_main_table_has_its_heading_for_narrow_screens(
    study: Study, results: tuple[RunResult, ...]
) -> None:
    columns = [*tabulate(study, results).header[1:], "min/run"]
    assert check(study, results).headings == columns * len(study.arms)


def test_a_warning_of_the_caption_is_in_sight() -> None:
    study = make_study(("erm", "uniform"))
    page = check(study, tuple(finish(run, 0.9) for run in study.runs())).words
    assert "WARNING, no arm is better than guessing" in page.partition("How to read this")[0]


def test_text_in_backticks_is_rendered_as_code(results: tuple[RunResult, ...]) -> None:
    said = "Run it with `mixsweep run <small>` & look."
    page = check(replace(make_study(), description=said), results)
    assert "Run it with mixsweep run <small> & look." in page.words
    assert page.tags.count("code") == check(make_study(), results).tags.count("code") + 1


def test_missing_runs_are_listed_with_their_error_escaped() -> None:
    study = make_study()
    results = tuple(
        finish(run, epochs=3, failure="<script>alert(1)</script>") if run.seed == 1 else finish(run)
        for run in study.runs()
    )
    page = check(study, results)
    assert "3 of 15 runs are not in these results" in page.words
    assert "<script>alert(1)</script>" in page.words
    assert "script" not in page.tags


def test_a_study_without_results_has_a_page() -> None:
    study = make_study()
    results = tuple(RunResult(run=run, stage=None, failure=None) for run in study.runs())
    page = check(study, results)
    assert "15 of 15 runs" in page.words
    assert "img" not in page.tags


def test_the_tooltip_of_a_curve_shows_means_and_intervals_without_a_script(
    study: Study, results: tuple[RunResult, ...]
) -> None:
    page = check(study, results)
    table = tabulate(study, results)
    erm = next(row for row in table.rows if row.arm == "erm").summaries["test/error"]
    first = next(said for said in page.said if said.startswith("test error, %, epoch 10\n"))
    low, high = 100 * erm.ci_low, 100 * erm.ci_high  # type: ignore[operator]
    assert first.splitlines()[1] == f"erm {100 * erm.mean:.2f} [{low:.2f}, {high:.2f}]"
    assert [line.split()[0] for line in first.splitlines()[1:]] == ["erm", "midpoint", "uniform"]


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


def test_the_page_embeds_its_files_for_download(
    study: Study, results: tuple[RunResult, ...]
) -> None:
    (address,) = (a for a in check(study, results).addresses if a.startswith("data:text/plain"))
    content = base64.b64decode(address.partition("base64,")[2]).decode()
    assert content == tabulate(study, results).csv()


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


def test_a_page_is_produced_in_small_pieces_and_can_be_read_twice() -> None:
    study = make_study()
    table = tabulate(study, ())
    found = describe(study, (), selection_rule="none", data_checksums={}, command="mixsweep run x")
    svg = b'<svg width="9pt">' + bytes(range(256)) * 4096
    figure = Figure(name="f", title="f", caption="c", svg=svg, png=b"", numbers="")
    page = render_page(study, table, (), (figure,), found, files={"runs.csv": "ü" * 100_000})
    pieces = list(page)
    assert max(map(len, pieces)) < len(svg) / 10
    text = "".join(pieces)
    assert f'src="data:image/svg+xml;base64,{base64.b64encode(svg).decode()}"' in text
    plain = base64.b64encode(("ü" * 100_000).encode()).decode()
    assert f'href="data:text/plain;charset=utf-8;base64,{plain}"' in text
    assert "".join(page) == text


def test_figures_with_one_or_several_panels_are_scaled_equally(
    study: Study, results: tuple[RunResult, ...]
) -> None:
    found = describe(
        study, results, selection_rule="none", data_checksums={}, command="mixsweep run x"
    )
    figures = tuple(draw(study, results).values())
    single = replace(
        figures[0], svg=b'<svg width="250.5pt" height="9pt" viewBox="0 0 250.5 9"/>', strips=()
    )
    table = tabulate(study, results)
    page = "".join(render_page(study, table, (), (*figures, single), found, files={}))
    widest = [int(width) for width in re.findall(r'class="drawn" style="max-width:(\d+)pt"', page)]
    assert sorted(widest) == sorted(round(1.7 * f.width) for f in (*figures, single))
    assert min(widest) == round(1.7 * 250.5)
