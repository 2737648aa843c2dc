"""data check: every image is decoded, and all faults are reported together."""

from pathlib import Path

import pytest
from click.testing import Result
from PIL import Image

from mixsweep.request import BAD_INPUT, DONE
from tests.mixsweep.cli.conftest import type_in
from tests.mixup_core.small_files import fill


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    fill(tmp_path / "pets" / "train", cat=2, dog=1)
    fill(tmp_path / "pets" / "test", first=3, cat=1, dog=1)
    return tmp_path / "pets"


def check(folder: Path, *more: str) -> Result:
    return type_in("data", "check", str(folder), *more)


def test_an_intact_folder_is_counted_by_class_with_unusual_images_reported(folder: Path) -> None:
    (folder / "train" / "dog" / "2.png").write_bytes((folder / "test/dog/0.png").read_bytes())
    Image.new("RGBA", (8, 8), (1, 2, 3, 4)).save(folder / "train" / "cat" / "2.png")
    said = check(folder)
    assert said.return_value == DONE
    assert said.stdout.splitlines() == [
        "cat: 3 training, 1 test images",
        "dog: 2 training, 1 test images",
        "1 images have transparent pixels; set data.background; the first: train/cat/2.png",
        "1 test images are training images too; the first: dog/0.png",
    ]


def test_all_unreadable_files_are_listed_unless_skipped(folder: Path) -> None:
    whole = Image.effect_noise((8, 8), 50).convert("RGB")
    whole.save(folder / "train" / "cat" / "cut.png")
    content = (folder / "train" / "cat" / "cut.png").read_bytes()
    (folder / "train" / "cat" / "cut.png").write_bytes(content[:-40])
    (folder / "test" / "dog" / "none.png").write_bytes(b"none")
    (folder / "test" / "dog" / "notes.txt").write_bytes(b"none")
    said = check(folder)
    assert said.return_value == BAD_INPUT
    for name in ("train/cat/cut.png", "test/dog/none.png", "test/dog/notes.txt"):
        assert str(folder / name) in said.stderr
    words = [w for n in ("train/cat/c*", "test/dog/n*") for w in ("--skip", n)]
    assert check(folder, *words).return_value == DONE


def test_a_test_image_that_is_a_recompressed_training_image_is_reported(folder: Path) -> None:
    photos = [Image.effect_noise((6, 6), 80).resize((96, 96)).convert("RGB") for _ in range(3)]
    photos[0].save(folder / "train" / "cat" / "9.png")
    photos[1].save(folder / "train" / "dog" / "9.png")
    photos[0].resize((64, 64)).save(folder / "test" / "dog" / "8.jpg", quality=60)
    photos[2].save(folder / "test" / "dog" / "7.png")
    (folder / "test").rename(folder / "val")  # it is found all the same
    said = check(folder)
    assert said.return_value == DONE
    assert said.stdout.splitlines()[-1] == (
        "1 test images look like a training image; the first: val/dog/8.jpg, like train/cat/9.png"
    )


def test_identical_images_and_names_that_differ_in_case_only_are_listed_in_pairs(
    folder: Path,
) -> None:
    cats = folder / "train" / "cat"
    dog = folder / "train" / "dog" / "0.png"
    original = dog.read_bytes()
    dog.write_bytes((cats / "1.png").read_bytes())
    assert check(folder).stdout.splitlines()[2:] == [
        "1 training images are identical files of another; the first: dog/0.png, like cat/1.png",
        "1 images are in two classes of train/, so that a label is wrong; "
        "the first: dog/0.png, like cat/1.png",
    ]
    dog.write_bytes(original)
    (cats / "2.png").write_bytes((cats / "1.png").read_bytes())
    (cats / "1.PNG").write_bytes((cats / "1.png").read_bytes())
    assert check(folder).stdout.splitlines()[2:] == [
        "2 training images are identical files of another; the first: cat/1.png, like cat/1.PNG",
        "1 names differ only in capitals or in how an accent is written; "
        "the first: cat/1.PNG and cat/1.png",
    ]
