"""Tests of the HTML page of a report, and of the website."""

import os
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from mixup_core.store.errors import UnreadableError
from mixup_core.temporary import OutputError
from reports.pages.build import draft_report
from reports.pages.html_pages import write_site
from reports.tables.table import tabulate
from sweeps.state.results import RunResult
from sweeps.study.claims import UntilDecided
from sweeps.study.study import Study
from tests.reports.html_tags import Tags
from tests.reports.small_report import write_report
from tests.reports.synthetic import FINISHED, SMALL, claim, finish, make_study


def check(study: Study, results: tuple[RunResult, ...]) -> Tags:
    draft = draft_report(study, results, data_checksums={}, command="mixsweep run <x>")
    return Tags("".join(draft.contents["report.html"]))


def test_the_page_is_well_formed_and_needs_no_network() -> None:
    page = check(SMALL, FINISHED)
    assert len(set(page.ids)) == len(page.ids)
    assert page.tags.count("img") == 2
    assert all(address.startswith(("data:", "#")) for address in page.addresses)
    assert not {"script", "link", "iframe"} & set(page.tags)


def test_each_cell_of_the_main_table_has_its_heading_for_narrow_screens() -> None:
    columns = [*tabulate(SMALL, FINISHED).header[1:], "min/run"]
    assert check(SMALL, FINISHED).headings == columns * len(SMALL.arms)


def test_a_warning_of_the_caption_is_in_sight() -> None:
    study = make_study(("erm", "uniform"))
    page = check(study, tuple(finish(run, 0.9) for run in study.runs())).words
    assert "WARNING, no arm is better than guessing" in page.partition("How to read this")[0]


def test_the_conclusion_comes_before_the_results_and_claims_after_them(tmp_path: Path) -> None:
    study = replace(SMALL, claims=(claim("less", says="Uniform has less error"),))
    report = draft_report(study, FINISHED, data_checksums={}, command="x").write(tmp_path / "r")
    page, table = ((report.folder / name).read_text() for name in ("report.html", "table.md"))
    lead = page.index("Test error is lower for uniform than for erm, by ")
    assert lead < page.index("<h2>Results</h2>") < page.index("<h2>What was run</h2>")
    assert page.index("<h2>What was run</h2>") < page.index("Uniform has less error")
    assert "Every seed" in page
    assert "Every seed" not in report.markdown
    assert table.index("Uniform has less error") < table.index("| arm ")
    assert "holds" in (report.folder / "tables/verdicts.csv").read_text()


def test_a_page_and_a_site_name_the_seeds_that_looks_needed(tmp_path: Path) -> None:
    until = UntilDecided(at_most=5, until="decided")
    study = replace(SMALL, until=until, reached=dict.fromkeys(SMALL.arms, 3))
    draft = draft_report(study, [*map(finish, study.runs())], data_checksums={}, command="x")
    draft.write(tmp_path / "reports" / "small")
    page = (tmp_path / "reports" / "small" / "report.html").read_text()
    assert '<th scope="row">seeds</th><td>0-2</td>' in page
    (entry,) = write_site(tmp_path / "reports", tmp_path / "site")
    assert entry["seeds"] == 3


def test_a_site_contains_every_report_and_an_index_of_verdicts(tmp_path: Path) -> None:
    reports, out = tmp_path / "reports", tmp_path / "site"
    write_report(reports / "one")
    write_report(reports / "two@1a2b", finished=False, code={"commit": "0123456789"})
    (reports / ".hidden").mkdir()
    (reports / "empty").mkdir()
    one, two = write_site(reports, out)
    assert (one["name"], one["num_complete"], one["num_runs"]) == ("one", 1, 2)
    assert one["date"] == "2026-11-25"
    assert (two["is_finished"], two["commit"]) == (False, "0123456")
    assert (out / "one" / "figures" / "a.svg").read_bytes() == b"\x89svg"
    index = (out / "index.html").read_text()
    assert index.count("A is &lt;better&gt;, by far") == 2
    assert 'href="two%401a2b/report.html"' in index
    assert "Does A beat <code>B &lt; C</code>?" in index
    assert "unfinished" in index
    assert index.count("Test error is &lt;lower&gt;.") == 2
    assert '<img src="two%401a2b/figures/a.svg"' in index
    assert index.count("<summary>1 claim</summary>") == 2
    assert {path.name for path in out.iterdir()} == {".nojekyll", "index.html", "one", "two@1a2b"}


@pytest.mark.parametrize("place", ["index.html", "one", "one/report.html"])
def test_pipes_and_links_on_a_site_are_neither_read_nor_followed(
    tmp_path: Path, place: str
) -> None:
    write_report(tmp_path / "reports" / "one")
    other, path = tmp_path / "other", tmp_path / "site" / place
    path.parent.mkdir(parents=True)
    write_report(other)
    before = (other / "report.html").read_text()
    for make in (lambda: os.mkfifo(path), lambda: path.symlink_to(other)):
        make()
        with pytest.raises(OutputError, match=place):
            write_site(tmp_path / "reports", tmp_path / "site")
        path.unlink()
    assert (other / "report.html").read_text() == before


@pytest.mark.parametrize("content", ["a,b", "says,verdict\n1"])
def test_damaged_verdicts_raise_only_an_unreadable_error(tmp_path: Path, content: str) -> None:
    write_report(tmp_path / "reports" / "one")
    (tmp_path / "reports" / "one" / "tables" / "verdicts.csv").write_text(content)
    with suppress(UnreadableError):  # a row that lacks a column has no verdict
        write_site(tmp_path / "reports", tmp_path / "site")


def test_only_files_that_the_provenance_lists_are_published(tmp_path: Path) -> None:
    report = tmp_path / "reports" / "one"
    write_report(report)
    (report / "evil.html").write_text("<script>")
    (tmp_path / "secret").write_text("secret")
    (report / "linked.txt").symlink_to(tmp_path / "secret")
    write_site(tmp_path / "reports", tmp_path / "site")
    names = {path.name for path in (tmp_path / "site" / "one").rglob("*")}
    assert names == {
        "figures", "a.svg", "report.html", "tables", "verdicts.csv", "provenance.json",
    }  # fmt: skip


def test_the_provenance_is_the_first_published_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[str] = []
    monkeypatch.setattr(
        "reports.pages.html_pages.replace_files", lambda _, contents, **__: written.extend(contents)
    )
    write_report(tmp_path / "reports" / "one", files=["report.html", "provenance.json"])
    write_site(tmp_path / "reports", tmp_path / "site")
    assert written == ["provenance.json", "report.html", "index.html", ".nojekyll"]


@pytest.mark.parametrize("name", ["../secret", "/secret", "figures/../../secret", "", ".x", "a\n"])
def test_a_listed_file_outside_of_the_report_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "reports").mkdir()
    (tmp_path / "reports" / "secret").write_text("secret")
    write_report(tmp_path / "reports" / "one", files=["report.html", name])
    with pytest.raises(UnreadableError):
        write_site(tmp_path / "reports", tmp_path / "site")
    assert not (tmp_path / "site").exists()


@pytest.mark.parametrize("name", ["figures", "tables/verdicts.csv"])
def test_a_listed_file_that_is_a_link_or_below_one_is_refused(tmp_path: Path, name: str) -> None:
    report = tmp_path / "reports" / "one"
    write_report(report)
    (report / name).rename(tmp_path / "moved")
    (report / name).symlink_to(tmp_path / "moved")
    with pytest.raises(UnreadableError, match="link"):
        write_site(tmp_path / "reports", tmp_path / "site")
