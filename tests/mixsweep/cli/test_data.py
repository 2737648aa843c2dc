"""data check: every image is decoded, and all faults are reported together."""

import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from PIL import Image

from mixsweep.cli.main import commands
from mixsweep.request import BAD_INPUT, DONE
from mixup_core.images.data.file_faults import EMPTY_CLASS


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MIXSWEEP_DATA", str(tmp_path / "data"))
    for number, name in enumerate(
        ("train/cat/0", "train/cat/1", "train/dog/0", "test/dog/0", "test/cat/0")
    ):
        file = tmp_path / "pets" / f"{name}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (8, 8), (number, 0, 0)).save(file)
    return tmp_path / "pets"


def check(folder: Path, *more: str) -> Result:
    return CliRunner().invoke(
        commands, ["data", "check", str(folder), *more], standalone_mode=False
    )


def test_an_intact_folder_is_counted_by_class_with_unusual_images_reported(folder: Path) -> None:
    (folder / "train" / "dog" / "2.png").write_bytes((folder / "test/dog/0.png").read_bytes())
    Image.new("RGBA", (8, 8), (1, 2, 3, 4)).save(folder / "train" / "cat" / "2.png")
    said = check(folder)
    assert (said.return_value, said.stderr) == (DONE, "")
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


def test_folders_with_unequal_classes_or_one_class_are_refused(
    folder: Path,
) -> None:
    (folder / "validation").mkdir()
    assert "folders not used: validation/" in check(folder).output
    (folder / "test" / "cat").rename(folder / "test" / "zebra")
    found = check(folder)
    assert found.return_value == BAD_INPUT
    assert "only in train/: cat; only in test/: zebra" in found.output
    for place in ("train/cat", "test/zebra"):
        shutil.rmtree(folder / place)
    found = check(folder)
    assert found.return_value == BAD_INPUT
    assert "two classes or more" in found.output


def test_a_folder_without_test_images_gets_advice_on_holding_out_a_fraction(folder: Path) -> None:
    shutil.rmtree(folder / "test")
    said = check(folder)
    assert said.return_value == DONE
    assert said.stdout.splitlines()[-1] == (
        "no test images; data.test_fraction: 0.2 holds out a fifth of each class"
    )


def test_skipping_is_advised_only_for_faults_that_skipping_removes(folder: Path) -> None:
    (folder / "train" / "owl").mkdir()
    assert "leave the class out with data.skip" in check(folder).stderr
    assert check(folder, "--skip", "train/owl").return_value == DONE
    (folder / "train" / "labels.csv").write_text("x")
    assert "2 faults; data.skip of a study file" in check(folder).stderr
    (folder / "train" / "owl").rmdir()
    assert check(folder, "--skip", "train/labels.csv").return_value == DONE


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


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (
            b"version https://git-lfs.github.com/spec/v1\noid sha256:%d",
            "it begins with 'version https://git-lfs",
        ),
        (b"<html>%d</html>", "it begins with '<html>"),
        (b"no image %d", "it begins with 'no image 0"),
        (None, "'/gone/%d.png' that leads to no file"),
    ],
)
def test_many_files_with_the_same_fault_take_one_line_unless_all_are_requested(
    content: bytes | None, said: str, folder: Path
) -> None:
    for number in range(30):
        file = folder / "train" / "cat" / f"bad {number:02}.png"
        if content is None:
            file.symlink_to(f"/gone/{number}.png")
        else:
            file.write_bytes(content % number)
    first, how, last = check(folder).stderr.splitlines()
    names = ", ".join(f"train/cat/bad {number:02}.png" for number in range(3))
    assert first.startswith(f"{folder}: 30 files, {names} and 27 more: ")
    assert said.replace("%d", "0") in first
    assert how == f"`mixsweep data check {folder} --all` lists every file"
    assert last.startswith("30 faults")
    lines = check(folder, "--all").stderr.splitlines()
    assert [line.partition(": ")[0] for line in lines[:-1]] == [
        f"{folder}/train/cat/bad {number:02}.png" for number in range(30)
    ]


@pytest.mark.parametrize("places", [["train/owl"], ["test/owl"], ["train/owl", "test/owl"]])
def test_an_empty_class_is_one_fault_for_each_empty_folder(places: list[str], folder: Path) -> None:
    for place in places:
        (folder / place).mkdir()
    *lines, last = check(folder).stderr.splitlines()
    assert lines == [f"{folder / place}: {EMPTY_CLASS}" for place in places]
    assert last == ("1 fault" if len(places) == 1 else "2 faults")
