"""Injection: texts of a study file, an error or a shared store are shown, never interpreted."""

import csv
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from mixup_core.rules import printable
from reports.pages.build import draft_report
from tests.reports.html_tags import Tags
from tests.reports.synthetic import claim, finish, make_study

HOSTILE = (
    "<script>alert(1)</script>", "<img src=x onerror=alert(1)>", '"><svg onload=alert(1)>',
    "</td></table></main><h1>x", "'-alert(1)-'", "&lt;script&gt;", "{{ 7 * 7 }}", "{% if %}",
    '=HYPERLINK("http://elsewhere.example")', "+1+cmd|' /C calc'!A0", "-2+3", "@SUM(1)", " =1+1",
    "\t=1+1", "\n=1+1", "\\input{/etc/passwd}", "\\write18{id}", "100% of $x$ & a_b #1 ~ ^2 {",
    "}\\end{table}\\begin{verbatim}", "\\\\[9cm] \\verb|x|", "a | b | c", "`code", "**bold*",
    "[x](javascript:alert(1))", "![x](http://elsewhere.example/x.png)", "<!-- x", "<?php x",
    "one\ntwo", "\N{NARROW NO-BREAK SPACE}x",
)  # fmt: skip
UNSEEN = ("\x1b[2J\x1b]0;x\x07", "one\r\ntwo\x0b", "\N{RIGHT-TO-LEFT OVERRIDE}txt.exe")
"""Characters that study files may not contain, but texts of workers and shared stores may."""


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Return two reports: one with harmless texts, one with malicious ones."""
    harmless = [f"text {number}" for number in range(len(HOSTILE))]
    place = tmp_path_factory.mktemp("reports")
    return _written(place / "harmless", harmless), _written(place / "hostile", HOSTILE)


def _written(out: Path, texts: Sequence[str]) -> Path:
    errors = [*texts, *(UNSEEN if texts is HOSTILE else ("text",) * len(UNSEEN))]
    study = make_study(arms=("erm", "midpoint"), seeds=tuple(range(len(errors) + 2)))
    claims = tuple(
        replace(claim("less", left="midpoint", says=text), source=text) for text in texts
    )
    study = replace(study, description=" ".join(texts), claims=claims, source="\n".join(texts))
    results = [
        finish(run, epochs=3, failure=printable(errors[run.seed]))
        if run.arm == "midpoint" and run.seed < len(errors)
        else finish(run)
        for run in study.runs()
    ]
    command = f"mixsweep run {' '.join(texts)}"
    return draft_report(study, results, data_checksums={}, command=command).write(out).folder


def test_hostile_texts_do_not_change_the_tags_of_the_page(folders: tuple[Path, Path]) -> None:
    harmless, hostile = (Tags((folder / "report.html").read_text()) for folder in folders)
    assert hostile.found == harmless.found
    assert all(address.startswith(("data:", "#")) for address in hostile.addresses)
    for text in HOSTILE:
        assert " ".join(text.split()) in " ".join(hostile.words.split()), text


def test_figures_contain_no_scripts_and_no_external_references(folders: tuple[Path, Path]) -> None:
    drawn = list((folders[1] / "figures").glob("*.svg"))
    assert drawn
    for file in drawn:
        for element in ElementTree.parse(file).iter():
            assert element.tag.rpartition("}")[2] not in {"script", "foreignObject", "image", "a"}
            for name, value in element.attrib.items():
                assert not name.startswith("on"), (file, name)
                assert "href" not in name or value.startswith("#"), (file, value)


def _rows(file: Path) -> list[list[str]]:
    with file.open(newline="") as lines:
        return list(csv.reader(lines))


def test_no_cell_of_an_export_starts_a_formula(folders: tuple[Path, Path]) -> None:
    for file in sorted(folders[1].rglob("*.csv")):
        rows = _rows(file)
        before = _rows(folders[0] / file.relative_to(folders[1]))
        assert [len(row) for row in rows] == [len(row) for row in before], file
        for cell in (cell for row in rows for cell in row):
            if not re.fullmatch(r"[+-]?[\d.]+(e[+-]?\d+)?", cell):
                assert not cell.lstrip().startswith(("=", "+", "-", "@")), (file, cell)
                assert not cell.startswith(("\t", "\r")), (file, cell)


def test_hostile_texts_do_not_change_the_commands_of_the_latex_table(
    folders: tuple[Path, Path],
) -> None:
    harmless, hostile = ((folder / "table.tex").read_text() for folder in folders)
    spelled = {"\\textbackslash", "\\textasciitilde", "\\textasciicircum"}
    known = set(re.findall(r"\\[A-Za-z]+", harmless))
    assert set(re.findall(r"\\[A-Za-z]+", hostile)) - known <= spelled
    for special in "&%#~^":
        pattern = rf"(?<!\\){re.escape(special)}"
        assert len(re.findall(pattern, hostile)) == len(re.findall(pattern, harmless)), special
    bare = re.sub(r"\\[{}]", "", hostile)
    assert bare.count("{") == bare.count("}")
    assert hostile.count("\n\n") == harmless.count("\n\n")
    assert all(letter.isprintable() or letter == "\n" for letter in hostile)


@pytest.mark.parametrize("name", ["table.md", "tables/sensitivity.md"])
def test_hostile_texts_do_not_change_the_cells_of_markdown(
    folders: tuple[Path, Path], name: str
) -> None:
    harmless, hostile = ((folder / name).read_text().splitlines() for folder in folders)
    columns = [len(re.findall(r"(?<!\\)\|", line)) for line in hostile]
    assert columns == [len(re.findall(r"(?<!\\)\|", line)) for line in harmless]
    for line in hostile:
        assert not re.search(r"(?<!\\)<[A-Za-z/!?]", line), line
        assert not re.search(r"(?<!\\)\]\(", line), line
        assert line.replace("\N{NARROW NO-BREAK SPACE}", "").isprintable()
