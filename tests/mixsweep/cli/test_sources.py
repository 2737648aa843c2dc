"""Sources of studies: BibTeX entries of `report --cite`, and the bibliography."""

import re
from functools import cache
from importlib.resources import files
from pathlib import Path

from click.testing import CliRunner

from mixsweep.cli.main import commands
from mixsweep.cli.report import works_of
from sweeps.reading.study_file import bundled_names, load_study
from tests.bundled import bundled


def said(*words: str) -> str:
    result = CliRunner().invoke(commands, words, standalone_mode=False, catch_exceptions=False)
    return result.stdout


def test_a_study_cites_each_source_once_before_its_methods() -> None:
    text = said("report", "mixing-operations", "--cite")
    assert text.count("eprint = {1905.04899}") == 1
    assert "author = {Yun, Sangdoo and" in text
    assert "@software{mixsweep" in text
    works = works_of(load_study("over-training"))
    assert works[0] == "2303.01475"
    assert len(works) == len(set(works))
    assert "author = {Liu, Tiantian and" in said("report", "order-of-laws", "--cite")
    assert "@misc{arxiv-1409.4842," in said("report", "openmixup-tiny-imagenet", "--cite")


PAPER = re.compile(r"arXiv:(\d{4}\.\d{4,5})")
DOCS = Path(__file__).parents[3] / "docs"
PAGES = [page for page in DOCS.rglob("*.md") if not {"_generated", "_build"} & {*page.parts}]


@cache
def _cited_by_studies() -> frozenset[str]:
    return frozenset(work for name in bundled_names() for work in works_of(bundled(name)))


@cache
def _cited_by_pages() -> frozenset[str]:
    """Return the numbers of the papers that pages of the documentation cite."""
    return frozenset(work for page in PAGES for work in PAPER.findall(page.read_text()))


def _bibliography() -> list[dict[str, str]]:
    """Return the fields of each entry of the bibliography."""
    text = files("sweeps.studies").joinpath("sources.bib").read_text()
    return [dict(re.findall(r"^  (\w+) = \{(.+)\},$", e, re.MULTILINE)) for e in text.split("\n@")]


def test_every_entry_of_the_bibliography_is_cited_by_a_bundled_study_or_a_page() -> None:
    entries = _bibliography()
    works = {entry["eprint"] for entry in entries}
    assert works <= _cited_by_studies() | _cited_by_pages()
    assert len(works) == len(entries)
    assert all({"title", "author", "year"} <= entry.keys() for entry in entries)


def test_every_paper_that_a_page_or_a_bundled_study_names_is_in_the_bibliography() -> None:
    named = {work for name in bundled_names() for work in PAPER.findall(bundled(name).source)}
    assert len(_cited_by_pages()) > 30
    works = {entry["eprint"] for entry in _bibliography()}
    assert (named | _cited_by_pages()) - works == set()
