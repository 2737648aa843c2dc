"""ImageData: which data this machine lacks; each image folder is read only once."""

from dataclasses import replace
from pathlib import Path

import pytest
from PIL import Image

from mixup_core.images.config import TrainConfig
from mixup_core.images.data.data_config import DataConfig
from mixup_core.images.data.datasets import load_mapped
from mixup_core.images.data.facts import DataError
from mixup_core.images.data.fetching import checksums, statuses
from mixup_core.images.data.folders import folder_digest
from mixup_core.images.image_data import ImageData
from tests.mixup_core.small_files import folder_config, write_images


def config_of(data: DataConfig) -> TrainConfig:
    return TrainConfig(data=data, epochs=1, batch_size=2)


@pytest.fixture
def pets(tmp_path: Path) -> Path:
    """Folder of two classes with one training image each."""
    folder = tmp_path / "pets"
    write_images(folder, "train", a=Image.new("RGB", (8, 8)), b=Image.new("RGB", (8, 8), (9, 9, 9)))
    return folder


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Empty folder for datasets."""
    root = tmp_path / "data"
    root.mkdir()
    monkeypatch.setenv("MIXSWEEP_DATA", str(root))
    return root


def test_a_present_dataset_is_not_missing_and_has_checksums(
    fashion: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MIXSWEEP_DATA", str(fashion))
    config, needs = config_of(DataConfig()), ImageData()
    assert needs.missing(config) is None
    assert needs.checksums(config) == {"fashion-mnist": checksums(config.data, fashion)}


def test_a_missing_dataset_is_reported_with_the_fetch_command(root: Path) -> None:
    config, needs = config_of(DataConfig()), ImageData()
    assert needs.sets() == statuses(root)
    assert needs.missing(config) == (
        f"fashion-mnist: not found in {root}; get it with mixsweep data fetch fashion-mnist"
    )
    assert needs.checksums(config) == {}


def test_missing_corrupted_images_of_a_study_are_named(
    cifar_c: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MIXSWEEP_DATA", str(cifar_c))
    data = DataConfig(name="cifar10", corruptions=("fog",))
    config = config_of(data)
    assert ImageData().missing(config) is None
    checksums = ImageData().checksums(config)["cifar10"]
    assert {name for name in checksums if "CIFAR-10-C" in name} == {
        "CIFAR-10-C/fog.npy", "CIFAR-10-C/labels.npy",
    }  # fmt: skip
    (cifar_c / "CIFAR-10-C" / "fog.npy").unlink()
    assert "mixsweep data fetch cifar10-c" in str(ImageData().missing(config))


def test_a_folder_is_found_relative_to_the_study_and_digested_once(
    pets: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs = ImageData()
    config = config_of(folder_config(Path("pets"), test=False))
    prepared = needs.prepare(config, pets.parent)
    assert prepared.data.folder == str(pets)
    assert prepared.data.digest == folder_digest(pets, root)
    assert needs.missing(prepared) is None
    elsewhere = replace(prepared, data=replace(prepared.data, folder=str(root / "none")))
    assert str(needs.missing(elsewhere)).startswith(f"{root}/none: these images are not on this")
    assert needs.checksums(prepared) == {"image-folder": {"pets/": prepared.data.digest}}
    monkeypatch.setattr("mixup_core.images.image_data.describe", None)
    monkeypatch.setattr("mixup_core.images.image_data.scan_folder", None)
    assert needs.prepare(config, pets.parent) == prepared


def test_opening_a_folder_decodes_it_once_and_reports_every_bad_file(
    pets: Path, root: Path
) -> None:
    config = config_of(folder_config(pets, test=False))
    files = [pets / "train" / name / "1.png" for name in ("a", "b")]
    for file in files:
        file.write_bytes(b"no image")
    prepared = ImageData().prepare(config, pets)
    needs = ImageData()
    for look in (needs.check, needs.open):
        with pytest.raises(DataError) as refused:
            look(prepared)
        *named, advice = str(refused.value).splitlines()
        assert [line.partition(": ")[0] for line in named] == list(map(str, files))
        assert "data.skip" in advice
    for file in files:
        file.unlink()
    needs.open(config)
    decoded = sorted(root.glob("decoded-*/*"))
    needs.open(config)
    load_mapped(config.data)
    assert sorted(root.glob("decoded-*/*")) == decoded
    assert len(decoded) == 1
