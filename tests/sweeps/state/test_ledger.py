import dataclasses
import json
from pathlib import Path

import pytest

from mixup_core.config.building import with_values
from mixup_core.images.config import TrainConfig
from mixup_core.keys import stage_keys
from mixup_core.store.checkpoints import Store
from sweeps.state.ledger import Launch, enter, launches, note, settings_of, spell_differences
from sweeps.study.study import Study
from tests.damages import DAMAGES


def _study(name: str = "small", seeds: tuple[int, ...] = (0, 1), **values: object) -> Study:
    erm = with_values(TrainConfig(epochs=3, batch_size=8), values)
    arms = {"erm": erm, "midpoint": with_values(erm, {"mix.law": "midpoint"})}
    return Study(name=name, description="", arms=arms, seeds=seeds, baseline="erm", source="")


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


def test_an_archive_replaces_only_the_record_of_an_earlier_archive(store: Store) -> None:
    of_launch = Launch.of(_study(), "mixsweep run small", 2)
    facts = {"0" * 64: {"classes": ["a"]}}
    for at_ms, archive, known in (
        (2, "b", "b"),
        (3, "c", "c"),
        (1, "d", "c"),
        (2, "", ""),
        (4, "e", ""),
    ):
        told = dataclasses.replace(of_launch, at_ms=at_ms, archive=archive)
        note(told, facts if at_ms == 2 else {"0" * 64: {"classes": ["z"]}}, store)
        assert [launch.archive for launch in launches(store)] == [known]
        assert json.loads(store.files.read(f"data/{'0' * 64}.json")) == facts["0" * 64]


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


def test_differences_common_to_all_arms_are_stated_once() -> None:
    stored = json.loads(json.dumps(settings_of(_study(epochs=50))))
    assert spell_differences(stored, _study()) == "base.epochs=50; you asked for 3"
    stored["erm"]["epochs"] = 7
    assert spell_differences(stored, _study()) == (
        "arms.erm.epochs=7, arms.midpoint.epochs=50; you asked for arms.erm.epochs=3, "
        "arms.midpoint.epochs=3"
    )
    del stored["erm"]
    assert spell_differences(stored, _study()) == (
        "base.epochs=50, no arm erm; you asked for base.epochs=3, arm erm"
    )


def test_changed_images_are_a_difference_and_a_moved_folder_is_not() -> None:
    stored = json.loads(json.dumps(settings_of(_study())))
    for values in stored.values():
        values["data.folder"] = "~/photos"
    assert spell_differences(stored, _study()) == ""
    for values in stored.values():
        values["data.digest"] = "0" * 64
    told = spell_differences(stored, _study())
    assert told.startswith("base.data.digest=other files in ~/photos (00000000)")
