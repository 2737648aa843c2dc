"""report: options that do not fit, comparisons, sources, and the site of all reports."""

import csv
import json
import re
from importlib.resources import files
from pathlib import Path

import pytest

from mixsweep.cli.report import works_of
from mixsweep.request import RefusedError
from mixup_core.store.checkpoints import Store
from sweeps.reading.study_file import bundled_names, load_study
from sweeps.state.statements import state
from tests.bundled import bundled
from tests.docs.test_documentation import PAGES
from tests.mixsweep.cli.conftest import type_in
from tests.mixsweep.cli.trained import error_of, train
from tests.reports.small_report import write_report


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["digits", "--arms", "uniform", "erm", "--out", "x"], "--arms cannot be used with --out"),
        (["digits", "--arms", "uniform", "erm", "--epochs", "x.csv"], "--arms cannot be used with"),
        (["digits", "--epochs", "x.csv", "--out", "x"], "--out cannot be used with --epochs"),
        (["digits", "--cite", "--predictions", "x.csv"], "--cite cannot be used with --predict"),
        (["digits", "table1", "--cite"], "a comparison cannot be used with --cite"),
        (["digits", "--metric", "test/error"], "--metric needs --arms"),
        (["digits", "--json"], "--json needs a comparison"),
        (["--out", "x", "--store", "y"], "a site of all reports cannot be used with --store"),
    ],
)
def test_options_that_do_not_go_together_are_refused(words: list[str], says: str) -> None:
    assert str(type_in("report", *words).exception).startswith(says)


def test_a_report_with_other_seeds_after_a_report_widens_the_interval(tmp_path: Path) -> None:
    claims = "claims: [{says: A, source: B, that: {less: [uniform, erm], metric: test/error}}]"
    file = tmp_path / "digits.yaml"
    file.write_text(load_study("digits", ()).source + claims)
    study = train(tmp_path / "runs", str(file), "seeds=4")
    state(study, Store(str(tmp_path / "runs" / "store")))

    def confidence(seeds: int) -> float:
        out = tmp_path / str(seeds)
        said = type_in("report", str(file), "--set", f"seeds={seeds}", "--out", str(out))
        assert said.return_value == 0, said.stderr
        with (out / "tables" / "verdicts.csv").open() as verdicts:
            (row,) = csv.DictReader(verdicts)
        return float(row["confidence"])

    assert confidence(3) == pytest.approx(0.95)
    assert confidence(4) == pytest.approx(0.975)
    assert confidence(3) == pytest.approx(0.975)
    train(tmp_path / "copy", str(file), "seeds=4")
    places = ("--home", str(tmp_path / "runs"), "--home", str(tmp_path / "copy"))
    assert type_in("report", str(file), "--set", "seeds=2", *places).return_value == 0
    assert confidence(4) == pytest.approx(1 - 0.05 / 3), "a comparison shows verdicts too"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    train(tmp_path / "runs", "digits", "seeds=4", but=("uniform", 3))
    return tmp_path / "runs"


def test_two_arms_of_a_study_are_paired_over_their_common_seeds(home: Path) -> None:
    words = ("report", "digits", "--set", "seeds=4", "--arms", "uniform", "erm")
    told = json.loads(type_in(*words, "--json").stdout)
    ours, theirs = ([error_of(place, seed, 2) for seed in range(3)] for place in (2, 0))
    assert told["n"] == 3
    assert told["difference"] == pytest.approx(sum(ours) / 3 - sum(theirs) / 3)
    assert told["values"][1].keys() == {"0", "1", "2", "3"}
    text = type_in(*words).stdout
    assert "minus erm, points" in text
    assert "| 3    | — " in text.replace("| 3   |", "| 3    |")


def test_arms_of_two_studies_are_compared_under_names_with_their_study(
    home: Path, tmp_path: Path
) -> None:
    file = tmp_path / "longer.yaml"
    source = train(home, "digits", "seeds=4", "base.epochs=2").source
    file.write_text(source.replace("study: digits", "study: longer"))
    studies = ("digits", str(file))
    which = type_in("report", *studies, "--arms", "erm", "midpoint")
    assert isinstance(which.exception, RefusedError)
    assert "digits/erm or longer/erm" in str(which.exception)
    said = type_in("report", *studies, "--arms", "digits/erm", "longer/erm")
    assert said.return_value == 0
    assert "longer/erm" in said.stdout


def test_one_study_of_two_homes_is_compared_in_two_columns(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    train(here, environment={"device": "Xeon", "instructions": "AVX512"})
    train(there, environment={"device": "Xeon", "instructions": "AVX2"}, shift=0.05)
    places = ("--home", str(here), "--home", str(there))
    said = type_in("report", "digits", *places, "--out", str(tmp_path / "out"))
    assert said.return_value == 0
    text = (tmp_path / "out" / "joined.md").read_text()
    assert said.stdout.strip() == text.strip()
    assert "AVX512" in text.splitlines()[2]
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        "joined.md", "joined.tex", "joined.csv", "joined_runs.csv", "joined_verdicts.csv",
        "provenance.json",
    }  # fmt: skip
    told = json.loads(type_in("report", "digits", *places, "--json").stdout)
    assert told["columns"] == ["AVX512", "AVX2"]
    assert {record["column"] for record in told["means"]} == {"AVX512", "AVX2"}


def test_a_column_that_lacks_runs_is_reported_with_exit_code_1(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    train(here)
    train(there, but=("erm", 1))
    said = type_in("report", "digits", "--home", str(here), "--home", str(there))
    assert said.return_value == 1
    assert "5/6 runs are finished" in said.stderr


def test_a_study_cites_each_source_once_before_its_methods() -> None:
    text = type_in("report", "mixing-operations", "--cite").stdout
    assert text.count("eprint = {1905.04899}") == 1
    assert "author = {Yun, Sangdoo and" in text
    assert "@software{mixsweep" in text
    works = works_of(load_study("over-training"))
    assert works[0] == "2303.01475"
    assert len(works) == len(set(works))
    assert "author = {Liu, Tiantian and" in type_in("report", "order-of-laws", "--cite").stdout
    assert "@misc{arxiv-1409.4842," in type_in("report", "openmixup-tiny-imagenet", "--cite").stdout


PAPER = re.compile(r"arXiv:(\d{4}\.\d{4,5})")


def test_the_bibliography_has_exactly_the_papers_that_studies_and_pages_cite() -> None:
    text = files("sweeps.studies").joinpath("sources.bib").read_text()
    entries = [
        dict(re.findall(r"^  (\w+) = \{(.+)\},$", entry, re.MULTILINE))
        for entry in text.split("\n@")
    ]
    assert all({"title", "author", "year"} <= entry.keys() for entry in entries)
    works = {entry["eprint"] for entry in entries}
    assert len(works) == len(entries)
    studies = [bundled(name) for name in bundled_names()]
    of_pages = {work for page in PAGES for work in PAPER.findall(page.read_text())}
    assert len(of_pages) > 30
    assert works <= of_pages | {work for study in studies for work in works_of(study)}
    assert works >= of_pages | {work for study in studies for work in PAPER.findall(study.source)}


def test_the_site_of_a_home_is_written(tmp_path: Path) -> None:
    write_report(tmp_path / "runs" / "reports" / "one")
    said = type_in("report", "--out", str(tmp_path / "site"))
    assert said.stdout.startswith("1 report  ")
    assert (tmp_path / "site" / "one" / "report.html").is_file()
