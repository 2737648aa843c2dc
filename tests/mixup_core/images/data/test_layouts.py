"""Layouts: folders without test/, skipped files, copies, normalisation by measured statistics."""

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from mixup_core.images.config import TrainConfig
from mixup_core.images.data.data_config import DataConfig
from mixup_core.images.data.datasets import load, load_mapped
from mixup_core.images.data.facts import DataError
from mixup_core.images.feasibility import infeasible
from mixup_core.images.image_data import ImageData, data_remarks, described, facts_of, shared_images
from mixup_core.images.problem import IMAGES
from mixup_core.images.views import NormalisedPixels
from mixup_core.keys import run_key
from mixup_core.rules import RuleError
from tests.mixup_core.small_files import fill, prepared


@pytest.fixture
def pets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folder with 10 cats and 6 dogs to train on, all different, and no test images."""
    monkeypatch.setenv("MIXSWEEP_DATA", str(tmp_path / "data"))
    fill(tmp_path / "pets" / "train", cat=10, dog=6)
    return tmp_path / "pets"


def reds(config: TrainConfig) -> tuple[set[int], set[int]]:
    splits = load_mapped(config.data)
    assert splits.test is not None
    train, test = ({int(p[0, 0, 0]) for p in part.pixels} for part in (splits.train, splits.test))
    return train, test


def test_test_fraction_holds_out_images_of_each_class_that_stay_when_images_are_added(
    pets: Path,
) -> None:
    config = prepared(pets, test_fraction=0.2)
    info = described(config.data)
    assert (info.num_train, info.num_test, info.smallest_class) == (13, 3, 5)
    train, test = reds(config)
    assert train | test == set(range(1, 17))
    assert train.isdisjoint(test)
    splits = load(config.data)
    assert torch.bincount(splits.test.labels).tolist() == [2, 1]
    names = IMAGES.presentation.examples(config, "test")
    assert list(names) == ["cat/1.png", "cat/5.png", "dog/0.png"], "the choice is frozen"
    blind = load(prepared(pets, test_fraction=0.2, test=False).data)
    assert blind.test is None
    assert torch.equal(blind.train.pixels, splits.train.pixels)
    fill(pets / "train", first=100, owl=2)
    more = IMAGES.presentation.examples(prepared(pets, test_fraction=0.2), "test")
    assert set(names) < set(more)


def test_test_fraction_needs_two_images_of_each_class_and_no_test_folder(pets: Path) -> None:
    fill(pets / "train", first=50, owl=1)
    with pytest.raises(
        DataError, match="needs two images of each class in train/; only one in owl"
    ):
        prepared(pets, test_fraction=0.2)
    (pets / "train" / "owl" / "0.png").rename(pets / "train" / "cat" / "x.png")
    (pets / "train" / "owl").rmdir()
    fill(pets / "test", cat=1, dog=1)
    with pytest.raises(DataError, match="test_fraction would ignore"):
        prepared(pets, test_fraction=0.2)
    with pytest.raises(RuleError, match="test_fraction and test_folder must not both be given"):
        DataConfig(
            name="image-folder", folder="x", image_size=8, test_fraction=0.2, test_folder="val"
        )


@pytest.mark.parametrize("name", ["val", "valid", "validation"])
def test_a_val_folder_holds_the_test_images_when_there_is_no_test_folder(
    name: str, pets: Path
) -> None:
    untested = prepared(pets, test=False)
    fill(pets / name, first=40, cat=1, dog=2)
    config = prepared(pets)
    assert config.data.test_folder == name
    assert reds(config)[1] == {41, 42, 43}
    assert prepared(pets, test=False) == untested, "results of runs that are not tested stay"
    fill(pets / "test", first=60, cat=1, dog=1)
    assert prepared(pets).data.test_folder is None
    assert reds(prepared(pets, test_folder=name))[1] == {41, 42, 43}


def test_skipped_files_change_neither_the_digest_nor_the_run_key(pets: Path) -> None:
    plain = prepared(pets, test=False)
    (pets / "train" / "cat" / "notes.txt").write_text("x")
    (pets / "train" / "dog" / "bad.png").write_bytes(b"no image")
    with pytest.raises(DataError, match=r"notes\.txt: not an image file"):
        prepared(pets, test=False)
    skipping = prepared(pets, test=False, skip=("train/*/*.txt", "train/dog/bad.png"))
    assert skipping.data.digest == plain.data.digest
    assert run_key(skipping) == run_key(plain)
    ImageData().open(skipping)
    assert len(load(skipping.data).train) == 16
    fewer = prepared(
        pets, test=False, skip=("train/*/*.txt", "train/dog/bad.png", "train/dog/0.png")
    )
    assert run_key(fewer) != run_key(plain)
    with pytest.raises(DataError, match=r"the pattern 'train/owl/0\.png' of"):
        prepared(pets, test=False, skip=("train/owl/0.png",))


@pytest.mark.parametrize(
    "skip",
    [("train/owl/*", "test/owl/*"), ("train/owl", "test/owl"), ("*/owl/",), ("*/owl/**",)],
)
def test_a_skipped_class_changes_neither_the_classes_nor_the_run_key(
    skip: tuple[str, ...], pets: Path
) -> None:
    fill(pets / "test", first=60, cat=2, dog=1)
    plain = prepared(pets)
    loaded = reds(plain)
    fill(pets / "train", first=80, owl=3)
    fill(pets / "test", first=90, owl=1, owlet=1)
    (pets / "train" / "owl" / "notes.txt").write_text("x")
    with pytest.raises(DataError, match=r"leaves out a class, such as test/owlet"):
        prepared(pets, skip=skip)
    fill(pets / "train", first=100, owlet=1)
    skipping = prepared(pets, skip=(*skip, "*/owlet"))
    assert described(skipping.data).classes == ("cat", "dog")
    assert run_key(skipping) == run_key(plain)
    assert reds(skipping) == loaded
    assert described(prepared(pets, skip=skip).data).classes == ("cat", "dog", "owlet")
    (pets / "train" / "void").mkdir()
    with pytest.raises(DataError, match="leave the class out with"):
        prepared(pets, skip=(*skip, "*/owlet"))
    assert prepared(pets, skip=(*skip, "*/owlet", "train/void")).data.digest == plain.data.digest
    with pytest.raises(DataError, match="the pattern 'train/ow' of"):
        prepared(pets, skip=("train/ow",))


def test_faults_in_the_train_and_test_folders_are_reported_together(pets: Path) -> None:
    fill(pets / "test", cat=1, dog=1)
    for name in ("train/cat/notes.txt", "train/dog/bad.png", "test/dog/worse.png"):
        (pets / name).write_text("x")
    with pytest.raises(DataError) as caught:
        prepared(pets)
    lines = str(caught.value).split("\n")
    names = ("cat/notes.txt", "dog/bad.png", "dog/worse.png", "data.skip")
    for line, name in zip(lines, names, strict=True):
        assert name in line
    (pets / "test" / "dog").rename(pets / "test" / "Dog")
    skipping = ("train/*/notes.txt", "test/*/worse.png")
    with pytest.raises(DataError, match=r"same classes(.|\n)*bad\.png: cannot be decoded"):
        prepared(pets, skip=skipping)


def shared(data: DataConfig) -> list[str]:
    facts = facts_of(data)
    assert facts is not None
    return list(shared_images(data, facts))


def test_training_images_equal_to_held_out_images_give_a_warning(pets: Path) -> None:
    for index in range(10):
        content = (pets / "train" / "cat" / "0.png").read_bytes()
        (pets / "train" / "cat" / f"{index}.png").write_bytes(content)
    (said,) = shared(prepared(pets, test_fraction=0.2).data)
    assert said.startswith("WARNING, 2 of the 3 test images are among the training images too")
    (said,) = shared(prepared(pets, test=False, val_size=10).data)
    assert "of the 10 validation images are among the training images too" in said
    assert shared(prepared(pets, test=False).data) == []
    (said,) = shared(prepared(pets, test=False, folds=4).data)
    num_trained = sum(1 for _ in (pets / "train").glob("*/*"))
    assert f"10 of the {num_trained} validation images are among the training images" in said


def test_equal_images_in_two_classes_give_a_warning(pets: Path) -> None:
    fill(pets / "val", first=60, cat=2, dog=2)
    (pets / "val" / "dog" / "1.png").write_bytes((pets / "val" / "cat" / "0.png").read_bytes())
    usual = "the test images are those in val/"
    of_test = (
        "WARNING, 1 image is in two classes of val/ (the first: dog/1.png, like cat/0.png), "
        "so that a label is wrong"
    )
    assert list(data_remarks(prepared(pets).data)) == [usual, of_test]
    for index in range(2):
        content = (pets / "train" / "cat" / f"{index}.png").read_bytes()
        (pets / "train" / "dog" / f"{index}.png").write_bytes(content)
    assert list(data_remarks(prepared(pets).data))[1].startswith(
        "WARNING, 2 images are in two classes of train/ (the first: dog/0.png, like cat/0.png)"
    )
    (said,) = data_remarks(prepared(pets, test=False).data)
    assert "2 images are in two classes of train/" in said


@pytest.mark.parametrize("pool", [1, 2])
def test_measured_normalisation_gives_training_images_mean_0_and_standard_deviation_1(
    pets: Path, pool: int
) -> None:
    rng = np.random.default_rng(0)
    for file in (pets / "train").rglob("*.png"):
        Image.fromarray(rng.integers(0, 256, (8, 8, 3), dtype=np.uint8)).save(file)
    config = prepared(pets, test=False, normalise="measured", pool=pool, val_size=4)
    assert run_key(config) != run_key(prepared(pets, test=False, pool=pool, val_size=4))
    for splits in (load(config.data), load_mapped(config.data), load_mapped(config.data)):
        shown = NormalisedPixels(splits.train, splits.info, pool, torch.device("cpu"))
        pixels = shown[torch.arange(12)]
        torch.testing.assert_close(pixels.mean((0, 2, 3)), torch.zeros(3), atol=1e-5, rtol=0)
        deviation = pixels.std((0, 2, 3), correction=0)
        torch.testing.assert_close(deviation, torch.ones(3), atol=1e-5, rtol=0)


def test_given_normalisation_is_used_and_needs_one_value_per_channel(pets: Path) -> None:
    config = prepared(pets, test=False, pixel_mean=(0.1, 0.2, 0.3), pixel_std=(0.4, 0.5, 0.6))
    assert list(infeasible(config)) == []
    info = load(config.data).info
    assert (info.mean, info.std) == ((0.1, 0.2, 0.3), (0.4, 0.5, 0.6))
    digits = TrainConfig(
        data=DataConfig(name="digits", pixel_mean=(0.1, 0.2)), epochs=1, batch_size=2
    )
    error = next(infeasible(digits))
    assert "pixel_mean needs one value per channel" in str(error)
