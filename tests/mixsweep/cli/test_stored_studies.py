"""Stored studies: named from a store, without their file, `--set` and photos."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import Result
from PIL import Image

import mixsweep
from mixsweep.request import DONE
from mixup_core.store.checkpoints import Store
from sweeps.reading.study_file import StudyError, load_study
from sweeps.state.ledger import enter, launches
from tests.mixsweep.cli.photos import forget

Type = Callable[..., Result]


@pytest.mark.parametrize("reference", ["signs", "signs@", "file"])
def test_a_finished_study_is_reported_without_its_images_cache_or_overrides(
    reference: str, launched: Path, tmp_path: Path, type_in: Type
) -> None:
    file = str(tmp_path / "place" / "signs.yaml")
    report = type_in("report", file, "--set", "seeds=3", "--out", str(tmp_path / "before"))
    assert report.return_value == DONE, report.stderr
    shutil.rmtree(tmp_path / "place" / "photos")
    shutil.rmtree(tmp_path / "data")
    (launch,) = launches(Store(str(launched / "store")))
    named = {"signs": ["signs"], "signs@": [f"signs@{launch.settings[:8]}"]}
    words = named.get(reference, [file, "--set", "seeds=3"])
    for command in (
        ["report", *words, "--out", str(tmp_path / "after")],
        ["report", *words, "--epochs", str(tmp_path / "epochs.csv")],
        ["status", *words],
        ["report", *words, "--arms", "uniform", "erm"],
        ["status", *words, "erm", "0"],
        ["status"],
        ["plan", *words],
    ):
        forget()
        said = type_in(*command)
        assert said.return_value == DONE, (command, said.stderr, said.exception)
    for name in ("table.csv", "runs.csv", "table.md"):
        before, after = (tmp_path / place / name for place in ("before", "after"))
        assert before.read_bytes() == after.read_bytes()
    forget()
    arms = mixsweep.load(
        words[0], *(["seeds=3"] if reference == "file" else []), home=launched
    ).arms
    assert list(arms["n"]) == [3, 3]


def test_a_stored_study_keeps_its_settings_and_run_keys_after_a_move(
    launched: Path, tmp_path: Path, type_in: Type
) -> None:
    own = load_study(str(tmp_path / "place" / "signs.yaml"), ["seeds=3"])
    shutil.rmtree(tmp_path / "place")
    moved = launched.rename(tmp_path / "elsewhere")
    forget()
    stored = load_study("signs", (), str(moved / "store"))
    assert stored.settings == own.settings
    assert [run.key for run in stored.runs()] == [run.key for run in own.runs()]
    assert load_study("signs", ["seeds=1"], str(moved / "store")).seeds == (0,)
    said = type_in("status", "signs", "--home", str(moved), "--json")
    assert json.loads(said.stdout)["arms"]["erm"]["finished"] == 3


def test_changed_images_do_not_affect_a_stored_study_but_change_its_file(
    launched: Path, tmp_path: Path
) -> None:
    store = str(launched / "store")
    file = str(tmp_path / "place" / "signs.yaml")
    before = load_study("signs", (), store)
    Image.new("RGB", (8, 8)).save(tmp_path / "place" / "photos" / "train" / "left" / "9.png")
    assert load_study("signs", (), store).settings == before.settings
    assert load_study(file, (), store).settings != before.settings


@pytest.mark.parametrize("command", ["report", "share", "sync", "status"])
def test_a_command_on_a_missing_home_is_refused_and_creates_no_file(
    command: str, tmp_path: Path, type_in: Type
) -> None:
    said = type_in(command, *([] if command == "status" else ["digits"]))
    told = f"{tmp_path}/runs/store: this store does not exist"
    assert (said.stderr if command == "status" else str(said.exception)).startswith(told)
    assert not (tmp_path / "runs").exists()


def test_a_stored_study_that_needs_a_plugin_is_refused_with_the_option(tmp_path: Path) -> None:
    study = load_study("digits")
    unknown = study.source.replace("digits}", "corners}").replace("name: digits", "name: corners")
    assert unknown != study.source
    store = Store(str(tmp_path / "store"))
    command = "mixsweep run first/study.yaml --plugin 'my methods/plugin.py' --plugin=more.py"
    enter(replace(study, source=unknown), store, command)
    with pytest.raises(StudyError) as caught:
        load_study("digits@" + study.settings, (), store.url)
    first, *others = caught.value.faults
    assert "launched with --plugin 'my methods/plugin.py' --plugin=more.py; add this" in first
    assert any("base.data.name" in fault for fault in others)
