"""export --to: files for TensorBoard and Weights & Biases; also cite and logs."""

import re
import struct
import sys
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from mixsweep.cli.cite import works_of
from mixsweep.cli.main import commands
from mixsweep.cli.request import RefusedError
from mixup_core.store.checkpoints import Store
from mixup_core.store.manifests import Failure
from sweeps.reading.study_file import bundled_names, load_study
from sweeps.state.results import read_results
from sweeps.study.study import Study
from tests.bundled import bundled
from tests.mixsweep.cli.trained import train


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Study:
    monkeypatch.setenv("MIXSWEEP_HOME", str(tmp_path))
    return train(tmp_path)


def said(*words: str) -> str:
    result = CliRunner().invoke(commands, words, standalone_mode=False, catch_exceptions=False)
    return result.stdout


def test_every_epoch_of_every_run_is_an_event_of_tensorboard(study: Study, tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    said("export", "digits", "--to", "tensorboard", "--out", str(tmp_path / "tb"))
    for result in read_results(study.runs(), Store(str(tmp_path / "store"))):
        place = tmp_path / "tb" / result.run.arm / f"seed {result.run.seed}"
        found = EventAccumulator(str(place))
        found.Reload()
        for name in result.records[-1].metrics:
            events = found.Scalars(name)
            values = [record.metrics[name] for record in result.records]
            assert [event.value for event in events] == pytest.approx(values)
            assert [event.step for event in events] == [1, 2, 3]
            times = [facts.stored_at_ms / 1000 for facts in result.facts]
            assert [event.wall_time for event in events] == pytest.approx(times)


def _records_of_wandb(file: Path) -> Iterator[Any]:
    """Yield the records of a small offline run file, which is a LevelDB log with a header."""
    from wandb.proto import wandb_internal_pb2

    content, at = file.read_bytes(), 7
    while at < len(content):
        _, length, kind = struct.unpack("<IHB", content[at : at + 7])
        assert kind == 1, "a record in one piece"
        record = wandb_internal_pb2.Record()  # type: ignore[attr-defined,unused-ignore]
        record.ParseFromString(content[at + 7 : at + 7 + length])
        yield record
        at += 7 + length


def test_every_epoch_of_every_run_is_in_an_offline_run_of_wandb(
    study: Study, tmp_path: Path
) -> None:
    pytest.importorskip("wandb")
    said("export", "digits", "--to", "wandb", "--out", str(tmp_path / "wb"))
    for result in read_results(study.runs(), Store(str(tmp_path / "store"))):
        (file,) = (tmp_path / "wb").glob(f"wandb/offline-run-*-{result.run.key}/*.wandb")
        records = list(_records_of_wandb(file))
        (run,) = (r.run for r in records if r.WhichOneof("record_type") == "run")
        assert (run.project, run.run_group) == ("digits", result.run.arm)
        rows = [
            {(item.key or item.nested_key[0]): item.value_json for item in r.history.item}
            for r in records
            if r.WhichOneof("record_type") == "history"
        ]
        assert [int(row["_step"]) for row in rows] == [1, 2, 3]
        assert [
            {name: float(row[name]) for name in record.metrics}
            for row, record in zip(rows, result.records, strict=True)
        ] == [dict(record.metrics) for record in result.records]


def test_a_program_that_is_not_installed_is_named_with_its_extra(
    study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    del study
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(RefusedError, match=r"pip install 'mixsweep\[wandb\]'"):
        said("export", "digits", "--to", "wandb", "--out", str(tmp_path / "wb"))
    assert not (tmp_path / "wb").exists()
    (tmp_path / "tb").mkdir()
    with pytest.raises(RefusedError, match="exists and is not replaced; remove it"):
        said("export", "digits", "--to", "tensorboard", "--out", str(tmp_path / "tb"))


def test_a_study_cites_each_source_once_before_its_methods(study: Study) -> None:
    del study
    text = said("cite", "mixing-operations")
    assert text.count("eprint = {1905.04899}") == 1
    assert "author = {Yun, Sangdoo and" in text
    assert "@software{mixsweep" in text
    works = works_of(load_study("over-training"))
    assert works[0] == "2303.01475"
    assert len(works) == len(set(works))
    assert "author = {Liu, Tiantian and" in said("cite", "order-of-laws")
    assert "@misc{arxiv-1409.4842," in said("cite", "openmixup-tiny-imagenet")


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


def test_first_authors_and_years_of_the_bibliography_equal_those_on_the_page_of_equations() -> None:
    page = " ".join((DOCS / "explanation" / "equations.md").read_text().split())
    cited = re.findall(
        r"(\w+)(?:,? (?:et al\.|and [A-Z]\w+|[A-Z]\w+ and [A-Z]\w+))? (\d{4}),(?: OpenMixup,)? "
        r"\[arXiv:([\d.]+)\]",
        page,
    )
    entries = {entry["eprint"]: entry for entry in _bibliography()}
    assert len({work for *_, work in cited}) > 25
    assert {(work, author, year) for author, year, work in cited} == {
        (work, entries[work]["author"].partition(",")[0], entries[work]["year"])
        for *_, work in cited
    }


def test_logs_show_each_epoch_and_the_full_traceback(study: Study, tmp_path: Path) -> None:
    lines = said("logs", "digits", "erm", "0").splitlines()
    assert lines[0].startswith("erm seed 0, run ")
    assert [line.split("epoch ")[1].split()[0] for line in lines[1:]] == ["1", "2", "3"]
    assert all("test/error 0." in line for line in lines[1:])
    run = load_study("digits", ["seeds=3"]).runs_of("erm")[2]
    failure = Failure(
        run_key=run.key, kind="failed", message="KeyError: 'x'", epoch=None, attempts=2,
        trace="Traceback (most recent call last):\n  File \"a.py\"\n"
        "\x1b[31mKeyError: 'x' at https://h/",
    )  # fmt: skip
    Store(str(tmp_path / "store")).failures.write(failure)
    text = said("logs", "digits", "erm", "2", "--set", "seeds=3")
    assert "failed after 2 attempts: KeyError: 'x'\n  Traceback" in text
    assert "\x1b" not in text
    assert "KeyError: 'x' at https://h/" in text
    with pytest.raises(RefusedError, match="no seed 7"):
        said("logs", "digits", "erm", "7")
