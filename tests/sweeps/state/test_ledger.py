import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mixup_core.config.building import with_values
from mixup_core.images.config import TrainConfig
from mixup_core.keys import stage_keys
from mixup_core.store.checkpoints import Store
from sweeps.state.ledger import Launch, enter, launches, settings_of, spell_differences
from sweeps.study.study import Study
from tests.damages import DAMAGES


def _study(name: str = "small", seeds: tuple[int, ...] = (0, 1), **values: object) -> Study:
    erm = with_values(TrainConfig(epochs=3, batch_size=8), values)
    arms = {"erm": erm, "midpoint": with_values(erm, {"mix.law": "midpoint"})}
    return Study(name=name, description="", arms=arms, seeds=seeds, baseline="erm", source="")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(str(tmp_path / "store"))


def test_a_store_lists_every_launched_study_and_its_settings(store: Store) -> None:
    short, long, other = _study(), _study(epochs=5), _study("other")
    for study in (short, long, other, long):
        enter(study, store, f"mixsweep run {study.name}")
    assert {(launch.study, launch.settings) for launch in launches(store)} == {
        (study.name, study.settings) for study in (short, long, other)
    }
    assert [launch.study for launch in launches(store, "small")] == ["small"] * 2
    assert launches(store, "none") == ()


def test_the_ledger_of_a_store_returns_its_entries(store: Store) -> None:
    study = _study()
    enter(study, store, "mixsweep run small --home ~")
    (told,) = launches(store)
    assert told == Launch(
        study="small",
        settings=study.settings,
        command="mixsweep run small --home ~",
        at_ms=told.at_ms,
        seeds=(0, 1),
        arms=json.loads(json.dumps(settings_of(study))),
        ends=tuple(stage_keys(run.config)[-1] for run in study.runs()),
        runs=tuple(f"{run.key} {run.seed} {run.arm}" for run in study.runs()),
        source=study.source,
    )
    assert told.num_finished([told.ends[2], "another"]) == 1


def test_a_launch_that_has_ended_keeps_its_start_time(store: Store) -> None:
    began = enter(_study(), store, "mixsweep run small")
    assert enter(_study(), store, "mixsweep run small", began - 60_000) == began - 60_000
    (told,) = launches(store)
    assert told.at_ms == began - 60_000


def test_settings_ignore_the_number_of_seeds_but_not_other_values() -> None:
    assert _study().settings == _study(seeds=(0, 1, 2)).settings
    assert _study().settings != _study(epochs=4).settings


@pytest.mark.parametrize("damage", sorted(DAMAGES.keys() - {"bit flipped", "unreadable"}))
def test_an_unreadable_launch_record_is_skipped_and_rewritten(
    store: Store, tmp_path: Path, damage: str
) -> None:
    enter(_study("other"), store, "mixsweep run other")
    (told,) = launches(store)
    enter(_study(), store, "mixsweep run small")
    (path,) = (tmp_path / "store" / "studies" / "small").glob("*.json")
    DAMAGES[damage](path)
    assert launches(store) == (told,)
    enter(_study(), store, "mixsweep run small")
    assert len(launches(store)) == (1 if damage == "a folder" else 2)


CHANGES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "nothing": lambda plain: None,
    "nested": lambda plain: [],
    "another study": lambda plain: plain | {"study": "Small"},
    "other settings": lambda plain: plain | {"settings": "0" * 32},
    "a time as text": lambda plain: plain | {"at_ms": "noon"},
    "a time after all dates": lambda plain: plain | {"at_ms": 10**17},
    "a time before all dates": lambda plain: plain | {"at_ms": -(10**17)},
    "no time": lambda plain: {key: value for key, value in plain.items() if key != "at_ms"},
    "arms as a list": lambda plain: plain | {"arms": [1]},
    "an arm as text": lambda plain: plain | {"arms": {"erm": "erm"}},
    "seeds as text": lambda plain: plain | {"seeds": ["0", "1"]},
    "ends as numbers": lambda plain: plain | {"ends": [0, 1]},
    "no command": lambda plain: plain | {"command": None},
    "an arm that clears the terminal": lambda plain: plain | {"arms": {"\x1b[2J": {}}},
    "a path that rings": lambda plain: plain | {"arms": {"erm": {"\a": 1}}},
    "half of a character": lambda plain: plain | {"command": "\ud800"},
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_launch_record_with_wrong_types_or_study_is_skipped(
    store: Store, tmp_path: Path, change: str
) -> None:
    enter(_study(), store, "mixsweep run small")
    (path,) = (tmp_path / "store" / "studies").glob("*/*.json")
    path.write_text(json.dumps(CHANGES[change](json.loads(path.read_text()))))
    assert launches(store) == ()


def test_a_launch_record_nested_too_deeply_is_skipped(store: Store, tmp_path: Path) -> None:
    enter(_study(), store, "mixsweep run small")
    (path,) = (tmp_path / "store" / "studies").glob("*/*.json")
    path.write_bytes(b"[" * 100_000)
    assert launches(store) == ()


def test_a_record_with_a_field_of_a_later_version_is_read(store: Store, tmp_path: Path) -> None:
    enter(_study(), store, "mixsweep run small")
    (told,) = launches(store)
    (path,) = (tmp_path / "store" / "studies").glob("*/*.json")
    path.write_text(json.dumps(json.loads(path.read_text()) | {"cluster": [1]}))
    assert launches(store) == (told,)


def test_differences_common_to_all_arms_are_stated_once() -> None:
    stored = json.loads(json.dumps(settings_of(_study(epochs=50))))
    assert spell_differences(stored, _study()) == "base.epochs=50; you asked for 3"
    stored["erm"]["epochs"] = 7
    assert spell_differences(stored, _study()) == (
        "arms.erm.epochs=7, arms.midpoint.epochs=50; you asked for 3, 3"
    )
    del stored["erm"]
    assert spell_differences(stored, _study()) == (
        "base.epochs=50, no arm erm; you asked for 3, arm erm"
    )


def test_only_missing_seeds_are_listed_as_a_difference() -> None:
    stored = json.loads(json.dumps(settings_of(_study())))
    assert spell_differences(stored, _study(), seeds=(0, 1, 2)) == ""
    assert spell_differences(stored, _study(seeds=(0, 1, 2)), seeds=(0, 1)) == (
        "seeds 0-1; you asked for seeds 0-2"
    )


def test_a_long_list_of_differences_is_shortened_with_a_count() -> None:
    other = _study(epochs=4, batch_size=9, eval_every=2)
    stored = json.loads(json.dumps(settings_of(other)))
    asked = _study(**{"optimizer.lr": 0.5})
    assert spell_differences(stored, asked).count("and 1 more") == 2


def test_changed_images_are_a_difference_and_a_moved_folder_is_not() -> None:
    stored = json.loads(json.dumps(settings_of(_study())))
    for values in stored.values():
        values["data.folder"] = "~/photos"
    assert spell_differences(stored, _study()) == ""
    for values in stored.values():
        values["data.digest"] = "0" * 64
    assert spell_differences(stored, _study()).startswith("base.data.digest=other files (00000000)")


def test_a_changed_plugin_source_is_a_difference_and_a_renamed_file_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def plugins(**names: str) -> dict[str, dict[str, Any]]:
        return {arm: {f"plugin {n}.py": of for n, of in names.items()} for arm in ("erm", "mid")}

    other = "another version of the plugin mine.py (source aaaaaaaa); you asked for "
    cases = {
        "": (plugins(mine="a" * 64), plugins(theirs="a" * 64)),
        f"{other}the version with source bbbbbbbb": (
            plugins(mine="a" * 64),
            plugins(mine="b" * 64),
        ),
        f"{other}the plugin theirs.py with source bbbbbbbb": (
            plugins(mine="a" * 64),
            plugins(theirs="b" * 64),
        ),
        f"{other}no plugin": (
            plugins(mine="a" * 64, more="c" * 64),
            plugins(more="c" * 64),
        ),
        "no plugin; you asked for the plugin mine.py with source aaaaaaaa": (
            plugins(),
            plugins(mine="a" * 64),
        ),
    }
    for told, (stored, asked) in cases.items():
        monkeypatch.setattr("sweeps.state.ledger.settings_of", lambda _, asked=asked: asked)
        assert spell_differences(stored, _study()) == told


def test_plugin_options_are_read_from_the_recorded_command_line() -> None:
    command = "mixsweep run s.yaml --plugin 'my methods/p.py' --set seeds=3 --plugin=more.py"
    launch = Launch.of(_study(), command)
    assert launch.plugins == ("--plugin 'my methods/p.py'", "--plugin=more.py")
    assert Launch.of(_study(), "mixsweep run s.yaml").plugins == ()
