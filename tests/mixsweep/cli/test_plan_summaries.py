from collections import Counter
from pathlib import Path

import pytest
from PIL import Image

from mixsweep.cli.plan_summary import plan_summary, spell_plan
from mixsweep.cli.status_summary import status_summary
from mixup_core.store.checkpoints import Store
from mixup_core.store.folder import Folder
from sweeps.reading.study_file import load_study, study_of
from sweeps.study.search import SearchHistory
from tests.bench.stored import fill


def test_a_plan_shows_the_memory_of_its_images(tmp_path: Path) -> None:
    store = Store(str(tmp_path))
    images = load_study("digits", ["base.data.image_size=16"])
    summary = plan_summary(images, SearchHistory(), store, slots=1)
    assert summary["memory_bytes"] == {"digits": (1437 + 360) * 16 * 16}
    assert spell_plan(summary).endswith("\nmemory    0.5 MB of digits once per machine")
    theory = plan_summary(load_study("support-vectors-two"), SearchHistory(), store, slots=1)
    assert theory["memory_bytes"] == {}
    assert "memory" not in spell_plan(theory)


def test_plan_and_status_read_each_stored_run_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, study = Store(str(tmp_path)), load_study("digits", ["seeds=2"])
    fill(store, study)
    opened: Counter[str] = Counter()
    read = Folder.read

    def counted(folder: Folder, name: str) -> bytes:
        opened[name] += name.startswith("stages/")
        return read(folder, name)

    monkeypatch.setattr(Folder, "read", counted)
    assert plan_summary(study, SearchHistory(), store, slots=1)["to_run"] == 0
    assert set(opened.values()) == {1}
    opened.clear()
    assert status_summary(study, store)["seconds_left"] == 0
    assert set(opened.values()) == {1}


def test_a_plan_shows_the_value_of_each_code_in_the_name_of_an_arm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MIXSWEEP_DATA", str(tmp_path / "data"))
    for number, folder in enumerate(("фото", "кони")):
        for place in ("train/a", "train/b", "test/a", "test/b"):
            (tmp_path / folder / place).mkdir(parents=True)
            Image.new("RGB", (8, 8), (number, 0, 0)).save(tmp_path / folder / place / "0.png")
    study = study_of(
        {
            "study": "x",
            "base": {
                "data": {"name": "image-folder", "image_size": 8},
                "model": {"name": "mlp"},
                "epochs": 1,
                "batch_size": 2,
            },
            "grid": {"data.folder": [str(tmp_path / name) for name in ("фото", "кони")]},
            "seeds": 1,
        }
    )
    store = Store(str(tmp_path / "store"))
    lines = spell_plan(plan_summary(study, SearchHistory(), store, slots=1)).splitlines()
    named = [line.split() for line in lines if line.startswith("name ")]
    assert [Path(place).name for _, _, _, _, place in named] == ["фото", "кони"]
    for arm, (_, code, *_) in zip(study.arms, named, strict=True):
        assert arm == f"folder={code}"
