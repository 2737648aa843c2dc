"""Site: reports are copied completely, and the index shows every verdict, escaped."""

import os
from contextlib import suppress
from pathlib import Path

import pytest

from mixup_core.store.errors import UnreadableError
from mixup_core.temporary import OutputError
from reports.pages.site import write_site
from tests.reports.small_report import write_report


def test_a_site_contains_every_report_and_an_index_of_verdicts(tmp_path: Path) -> None:
    reports, out = tmp_path / "reports", tmp_path / "site"
    write_report(reports / "one")
    write_report(reports / "two@1a2b", finished=False, code={"commit": "0123456789"})
    (reports / ".hidden").mkdir()
    (reports / "empty").mkdir()
    one, two = write_site(reports, out)
    assert (one.name, one.num_complete, one.num_runs, one.date) == ("one", 1, 2, "2026-11-25")
    assert (two.is_finished, two.commit) == (False, "0123456")
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


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("provenance.json", "["), ("provenance.json", "[]"), ("provenance.json", "{}"),
        ("provenance.json", "null"), ("tables/verdicts.csv", "a,b"),
        ("tables/verdicts.csv", "says,verdict\n1"),
    ],
)  # fmt: skip
def test_a_damaged_report_raises_only_an_unreadable_error(
    tmp_path: Path, file: str, content: str
) -> None:
    write_report(tmp_path / "reports" / "one")
    (tmp_path / "reports" / "one" / file).write_text(content)
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
