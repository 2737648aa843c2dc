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
from tests.mixsweep.cli.photos import STUDY, forget
from tests.mixsweep.cli.trained import train

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


def test_an_image_record_of_an_earlier_version_can_be_read(
    launched: Path, tmp_path: Path, type_in: Type
) -> None:
    shutil.rmtree(tmp_path / "place")
    (record,) = (launched / "store" / "data").glob("*.json")
    facts = json.loads(record.read_text())
    required = {"digest", "classes", "train", "test"}
    added = {"shared", "copies", "test_copies", "transparent", "unreadable", "decoder"}
    assert facts.keys() == required | added, "a field that is added has a default"
    record.write_text(json.dumps({name: facts[name] for name in required}))
    forget()
    said = type_in("status", "signs")
    assert said.return_value == DONE, said.exception


def test_a_study_file_moved_away_from_its_images_gets_advice_to_use_the_study_name(
    launched: Path, tmp_path: Path, type_in: Type
) -> None:
    del launched
    shutil.rmtree(tmp_path / "place" / "photos")
    file = (tmp_path / "place" / "signs.yaml").rename(tmp_path / "signs.yaml")
    forget()
    refused = type_in("report", str(file), "--set", "seeds=3")
    assert f"{tmp_path}/photos/train: not found; this store has results" in str(refused.exception)
    assert "give the name of the study instead of its file" in str(refused.exception)
    assert type_in("report", "signs", "--out", str(tmp_path / "after")).return_value == DONE
    forget()
    refused = type_in("status", "signs", "--set", f"base.data.folder={tmp_path}/none")
    assert "none/train: not found; an image-folder contains" in str(refused.exception)


def test_a_plan_reports_missing_images_only_if_runs_need_them(
    launched: Path, tmp_path: Path, type_in: Type
) -> None:
    del launched
    photos, moved = tmp_path / "place" / "photos", tmp_path / "moved"
    photos.rename(moved)
    missing = f"{photos}: these images are not on this machine, and training needs them; "
    for seeds, place, told in (
        (3, None, ""),
        (4, None, missing + "if they are in another folder, add --set base.data.folder=FOLDER"),
        (4, moved, ""),
    ):
        forget()
        words = [] if place is None else ["--set", f"base.data.folder={place}"]
        planned = type_in("plan", "signs", "--set", f"seeds={seeds}", *words)
        assert planned.return_value == DONE
        assert planned.stderr.strip() == told
        assert f"{2 * (seeds - 3)} to run" in planned.stdout
    forget()
    inline = ("--engine", "inline")
    refused = type_in("run", "signs", "--set", "seeds=4", *inline)
    assert str(refused.exception).startswith(missing)
    finished = type_in("run", "signs", *inline)
    assert finished.return_value == DONE, (finished.stderr, finished.exception)
    assert "nothing to train" in finished.stderr


def test_run_reports_a_finished_study_whose_dataset_was_deleted(
    tmp_path: Path, type_in: Type, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("reg-mixup", "--set", "seeds=1", "--home", str(tmp_path / "other"))
    train(tmp_path / "other", "reg-mixup", "seeds=1")
    monkeypatch.setenv("MIXSWEEP_DATA", str(tmp_path / "empty"))
    said = type_in("run", *words, "--engine", "inline")
    assert said.return_value == DONE, (said.stderr, said.exception)
    refused = type_in("run", *words, "--set", "seeds=2", "--engine", "inline")
    assert "get it with mixsweep data fetch fashion-mnist" in str(refused.exception)


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


def test_an_unknown_study_name_is_refused_with_the_studies_of_the_store(
    launched: Path, type_in: Type
) -> None:
    store = str(launched / "store")
    settings = launches(Store(store))[-1].settings[:8]
    for name, told in {
        "none": f"lists these; launched in the store {store} are signs",
        "sign": "(did you mean signs?); `mixsweep studies` lists these; launched",
        "signs@ffff": f"signs was launched in the store {store} with the settings {settings}",
    }.items():
        with pytest.raises(StudyError) as caught:
            load_study(name, (), store)
        assert told in str(caught.value)
    for name in ("none", "signs@ffffffffffff", "../signs"):
        assert isinstance(type_in("status", name).exception, StudyError)


@pytest.mark.parametrize("reference", ["signs", "signs@e9", "signs.yaml"])
def test_a_missing_or_empty_store_is_reported_for_an_unknown_study(
    reference: str, tmp_path: Path, type_in: Type
) -> None:
    place = tmp_path / "away" / "store"
    with pytest.raises(StudyError, match=f"; the store {place} does not exist"):
        mixsweep.load(reference, home=tmp_path / "away")
    place.mkdir(parents=True)
    said = type_in("status", reference, "--home", str(place.parent))
    assert f"; no study was launched in the store {place}" in str(said.exception)


@pytest.mark.parametrize("command", ["report", "share", "sync", "status"])
def test_a_command_on_a_missing_home_is_refused_and_creates_no_file(
    command: str, tmp_path: Path, type_in: Type
) -> None:
    said = type_in(command, *([] if command == "status" else ["digits"]))
    told = f"{tmp_path}/runs/store: this store does not exist"
    assert (said.stderr if command == "status" else str(said.exception)).startswith(told)
    assert not (tmp_path / "runs").exists()


def test_a_folder_with_the_name_of_a_stored_study_does_not_hide_the_study(
    launched: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "signs").mkdir()
    assert load_study("signs", (), str(launched / "store")).name == "signs"
    with pytest.raises(StudyError, match="signs: is a folder; expected a study file"):
        load_study("signs")


def test_images_missing_from_disk_and_store_are_reported(tmp_path: Path, type_in: Type) -> None:
    del type_in
    (tmp_path / "signs.yaml").write_text(STUDY)
    with pytest.raises(StudyError, match="photos/train: not found"):
        load_study(str(tmp_path / "signs.yaml"), (), str(tmp_path / "runs" / "store"))


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
