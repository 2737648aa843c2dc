"""Sets: tiny files in each original format are read correctly."""

import hashlib
import io
import re
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import pytest
import scipy.io
import torch
import torchvision.datasets
from PIL import Image

from mixup_core.images.data.data_config import DataConfig
from mixup_core.images.data.datasets import load
from mixup_core.images.data.facts import DataError
from mixup_core.images.data.fetching import fetch, files_of, is_present, verify
from mixup_core.images.data.sets import DATASETS, caltech101, corrupted
from tests.mixup_core.images.data.small_cifar import write_cifar10_c
from tests.mixup_core.small_files import NUM_TEST, NUM_TRAIN, put, set_counts, tar, write_idx

Written = Mapping[str, tuple[list[tuple[int, int, int]], list[int]]]
"""Colour and label of each written image, by split, in the expected order."""

Patch = pytest.MonkeyPatch


def jpeg(
    colour: tuple[int, int, int],
    size: tuple[int, int] = (12, 10),
    mode: str = "RGB",
    banner: int = 0,
) -> bytes:
    """Return an image of one colour; a banner of so many white rows at the bottom is added."""
    image = Image.new("RGB", (size[0], size[1] + banner), (255, 255, 255))
    image.paste(colour, (0, 0, *size))
    buffer = io.BytesIO()
    image.convert(mode).save(buffer, "JPEG", quality=95)
    return buffer.getvalue()


def zipped(members: Mapping[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def grey(value: int) -> tuple[int, int, int]:
    return (value, value, value)


def write_mnist(root: Path, patch: Patch) -> Written:
    write_idx(root, "mnist", "MNIST", patch)
    return {
        split: ([grey(value) for value in range(count)], [value % 10 for value in range(count)])
        for split, count in (("train", NUM_TRAIN), ("test", NUM_TEST))
    }


def write_svhn(root: Path, patch: Patch) -> Written:
    """Write SVHN files: digit 0 has label 10, and pixels are (row, column, channel, image)."""
    set_counts(patch, "svhn", num_train=3, num_test=2, num_classes=2)
    lists, written = {}, {}
    for split, labels in (("train", [1, 10, 1]), ("test", [10, 1])):
        colours = [(10 * i, 20 * i, 30 * i) for i in range(len(labels))]
        pixels = np.empty((32, 32, 3, len(labels)), np.uint8)
        pixels[:] = np.array(colours).T
        buffer = io.BytesIO()
        scipy.io.savemat(buffer, {"X": pixels, "y": np.array(labels, np.uint8)[:, None]})
        name = f"{split}_32x32.mat"
        digest = put(root, f"svhn/{name}", buffer.getvalue(), "svhn", patch)
        lists[split] = ["http://127.0.0.1:9/", name, digest]
        written[split] = (colours, [label % 10 for label in labels])
    patch.setattr(torchvision.datasets.SVHN, "split_list", lists)
    return written


def write_stl10(root: Path, patch: Patch) -> Written:
    """Write STL-10 files: pixels are stored by column, and labels start at 1."""
    set_counts(patch, "stl10", num_train=3, num_test=2, num_classes=2)
    written = {}
    for split, labels in (("train", [1, 2, 2]), ("test", [2, 1])):
        colours = [(5 * i, 6 * i, 7 * i) for i in range(1, 1 + len(labels))]
        pixels = np.empty((len(labels), 3, 96, 96), np.uint8)
        pixels[:] = np.array(colours)[:, :, None, None]
        pixels[0, 0, 95, 0] = 255  # column 95, row 0
        files = {f"{split}_X.bin": pixels.tobytes(), f"{split}_y.bin": bytes(labels)}
        listed = [
            [name, put(root, f"stl10_binary/{name}", content, "stl10", patch)]
            for name, content in files.items()
        ]
        patch.setattr(torchvision.datasets.STL10, f"{split}_list", listed)
        written[split] = (colours, [label - 1 for label in labels])
    return written


def write_caltech101(root: Path, patch: Patch) -> Written:
    """Write two classes of three and four images, some grey, and the background folder."""
    set_counts(patch, "caltech101", num_train=4, num_test=3, num_classes=2)
    patch.setattr(caltech101, "_NUM_TRAIN_PER_CLASS", 2)
    members = {}
    for name, count, base in (("BACKGROUND_Google", 2, 0), ("ant", 3, 60), ("wild_cat", 4, 120)):
        for number in range(1, count + 1):
            path = f"101_ObjectCategories/{name}/image_{number:04d}.jpg"
            members[path] = jpeg(grey(base + 10 * number), mode="L" if number == 2 else "RGB")
    inner = {"caltech-101/101_ObjectCategories.tar.gz": tar(members)}
    put(root, "caltech101/caltech-101.zip", zipped(inner), "caltech101", patch)
    splits = load(DataConfig(name="caltech101", image_size=8), root)
    assert splits.test is not None
    colours = [
        [int(value) for value in images.pixels.float().mean((1, 2, 3)).round().tolist()]
        for images in (splits.train, splits.test)
    ]
    assert colours == [[80, 90, 130, 140], [70, 150, 160]], "the split is frozen"
    train, test = ([grey(value) for value in values] for values in colours)
    return {"train": (train, [0, 0, 1, 1]), "test": (test, [0, 1, 1])}


def write_dtd(root: Path, patch: Patch) -> Written:
    set_counts(patch, "dtd", num_train=4, num_test=2, num_classes=2)
    files = {"train1": ["banded/a.jpg", "woven/b.jpg"], "val1": ["banded/c.jpg", "woven/d.jpg"],
             "test1": ["woven/e.jpg", "banded/f.jpg"]}  # fmt: skip
    names = [name for listed in files.values() for name in listed]
    colour = {name: (30 * i, 200, 10) for i, name in enumerate(names)}
    members = {f"dtd/images/{name}": jpeg(colour[name], (9, 20)) for name in names}
    members |= {f"dtd/labels/{name}.txt": "\n".join(f).encode() for name, f in files.items()}
    put(root, "dtd/dtd-r1.0.1.tar.gz", tar(members), "dtd", patch)
    train, test = files["train1"] + files["val1"], files["test1"]
    return {
        "train": ([colour[name] for name in train], [0, 1, 0, 1]),
        "test": ([colour[name] for name in test], [1, 0]),
    }


def write_fgvc_aircraft(root: Path, patch: Patch) -> Written:
    """Write images that end in a banner of 20 rows."""
    set_counts(patch, "fgvc-aircraft", num_train=3, num_test=2, num_classes=2)
    variants = ["707-320", "A380 x"]
    listed = {"trainval": [("001", 0), ("002", 1), ("003", 1)], "test": [("004", 1), ("005", 0)]}
    data = "fgvc-aircraft-2013b/data"
    members = {f"{data}/variants.txt": "\n".join(variants).encode()}
    colours = {f"00{i}": (20 * i, 20, 250 - 20 * i) for i in range(1, 6)}
    for split, rows in listed.items():
        lines = "\n".join(f"{image} {variants[label]}" for image, label in rows)
        members[f"{data}/images_variant_{split}.txt"] = lines.encode()
    for name, colour in colours.items():
        members[f"{data}/images/{name}.jpg"] = jpeg(colour, (30, 32), banner=20)
    put(root, "fgvc-aircraft/fgvc-aircraft-2013b.tar.gz", tar(members), "fgvc-aircraft", patch)
    return {
        split: ([colours[image] for image, _ in rows], [label for _, label in rows])
        for split, rows in (("train", listed["trainval"]), ("test", listed["test"]))
    }


def write_tiny_imagenet(root: Path, patch: Patch) -> Written:
    set_counts(patch, "tiny-imagenet", num_train=4, num_test=3, num_classes=2)
    inside, wnids = "tiny-imagenet-200", ["n02", "n01"]
    members = {f"{inside}/wnids.txt": "\n".join(wnids).encode()}
    train = [("n01", 0), ("n01", 1), ("n02", 0), ("n02", 1)]
    colours = [(40 * i + 5, 90, 33) for i in range(7)]
    for (wnid, number), colour in zip(train, colours[:4], strict=True):
        path = f"{inside}/train/{wnid}/images/{wnid}_{number}.JPEG"
        members[path] = jpeg(colour, (64, 64))
        members[f"{inside}/train/{wnid}/{wnid}_boxes.txt"] = b"0"
    rows = [("val_0.JPEG", "n02"), ("val_1.JPEG", "n01"), ("val_2.JPEG", "n02")]
    for (name, _), colour in zip(rows, colours[4:], strict=True):
        members[f"{inside}/val/images/{name}"] = jpeg(colour, (64, 64))
    annotations = "".join(f"{name}\t{wnid}\t0\t0\t62\t62\n" for name, wnid in rows)
    members[f"{inside}/val/val_annotations.txt"] = annotations.encode()
    members[f"{inside}/test/images/test_0.JPEG"] = b"not labelled, not read"
    put(root, "tiny-imagenet/tiny-imagenet-200.zip", zipped(members), "tiny-imagenet", patch)
    return {"train": (colours[:4], [1, 1, 0, 0]), "test": (colours[4:], [0, 1, 0])}


WRITERS: Mapping[str, Callable[[Path, Patch], Written]] = {
    "mnist": write_mnist,
    "svhn": write_svhn,
    "stl10": write_stl10,
    "caltech101": write_caltech101,
    "dtd": write_dtd,
    "fgvc-aircraft": write_fgvc_aircraft,
    "tiny-imagenet": write_tiny_imagenet,
}
TESTED_ELSEWHERE = {"fashion-mnist", "cifar10", "cifar100", "digits"}


def test_every_published_dataset_has_a_test_that_reads_its_original_format() -> None:
    assert set(WRITERS) | TESTED_ELSEWHERE == set(DATASETS)


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("size", [None, 8])
def test_images_and_labels_are_read_as_written(
    name: str, size: int | None, tmp_path: Path, monkeypatch: Patch
) -> None:
    written = WRITERS[name](tmp_path, monkeypatch)
    splits = load(DataConfig(name=name, image_size=size), tmp_path)
    assert splits.test is not None
    for images, (colours, labels) in ((splits.train, written["train"]),
                                      (splits.test, written["test"])):  # fmt: skip
        assert images.labels.tolist() == labels
        assert images.pixels.dtype == torch.uint8
        assert images.pixels.shape[2] == (size or DATASETS[name].info.image_size)
        centre = images.pixels.shape[2] // 2
        seen = images.pixels[:, :, centre, centre].int()
        expected = torch.tensor(colours)[:, : images.pixels.shape[1]]
        assert (seen - expected).abs().max() <= 4, "JPEG keeps a flat colour to a few levels"


def test_stl10_pixels_are_read_in_column_order(tmp_path: Path, monkeypatch: Patch) -> None:
    write_stl10(tmp_path, monkeypatch)
    image = load(DataConfig(name="stl10"), tmp_path).train.pixels[0]
    assert image[0, 0, 95] == 255
    assert image[0, 95, 0] != 255


@pytest.mark.parametrize("name", ["svhn", "stl10", "mnist"])
def test_test_files_are_not_needed_when_test_is_false(
    name: str, tmp_path: Path, monkeypatch: Patch
) -> None:
    WRITERS[name](tmp_path, monkeypatch)
    for path in files_of(name)["test"]:
        (tmp_path / path).unlink()
    assert load(DataConfig(name=name, test=False), tmp_path).test is None
    with pytest.raises(DataError, match=f"get it with `mixsweep data fetch {name}`"):
        load(DataConfig(name=name), tmp_path)


@pytest.mark.parametrize("name", WRITERS)
def test_a_file_with_another_digest_is_refused_before_it_is_read(
    name: str, tmp_path: Path, monkeypatch: Patch
) -> None:
    WRITERS[name](tmp_path, monkeypatch)
    path = next(iter(files_of(name)["train"]))
    (tmp_path / path).write_bytes((tmp_path / path).read_bytes() + b"\0")
    with pytest.raises(DataError, match=r"(md5|sha256) differs"):
        load(DataConfig(name=name), tmp_path)


@pytest.mark.parametrize(
    ("published", "unused"),
    [("DTD", 0), ("SVHN", 1), ("STL10", 1), ("CIFAR10", 0), ("CIFAR100", 0)],
)
def test_digests_match_torchvision(published: str, unused: int) -> None:
    """Files of images that belong to neither split are not used."""
    of_library = vars(getattr(torchvision.datasets, published))
    names = ("_MD5", "split_list", "train_list", "test_list", "meta")
    theirs = set(re.findall(r"\b[0-9a-f]{32}\b", str([of_library.get(name) for name in names])))
    splits = files_of(published.lower()).values()
    ours = {digest.removeprefix("md5:") for split in splits for digest in split.values()}
    assert ours <= theirs
    assert len(theirs - ours) == unused


def test_an_archive_is_downloaded_and_its_digest_checked(
    tmp_path: Path, monkeypatch: Patch
) -> None:
    server, root = tmp_path / "server", tmp_path / "root"
    write_dtd(server, monkeypatch)
    archive = server / "dtd" / "dtd-r1.0.1.tar.gz"
    monkeypatch.setattr(torchvision.datasets.DTD, "_URL", archive.as_uri())
    assert fetch("dtd", root) == archive.as_uri()
    assert is_present("dtd", root)
    verify("dtd", root, "train")
    archive.write_bytes(b"another")
    (root / "dtd" / "dtd-r1.0.1.tar.gz").unlink()
    with pytest.raises(DataError, match=r"md5 differs(?s:.*)By hand: download"):
        fetch("dtd", root)


def test_corrupted_images_are_selected_by_name_and_severity(cifar_c: Path) -> None:
    names = ("fog", "snow")
    data = DataConfig(name="cifar10", corruptions=names, severity=3)
    splits = load(data, cifar_c)
    assert list(splits.held_out(data)) == ["test", "test_fog", "test_snow"]
    for name in names:
        images = splits.corrupted[name]
        assert images.pixels[:, 0].unique().tolist() == [3]
        assert images.pixels[:, 1].unique().tolist() == [corrupted.CORRUPTIONS.index(name)]
        assert images.pixels[:, 2, 0, 0].tolist() == [0, 1, 2, 3]
        assert images.labels.tolist() == [0, 1, 0, 1]
    every = load(DataConfig(name="cifar10", corruptions=("fog",)), cifar_c).corrupted["fog"]
    assert len(every) == 20
    assert every.pixels[:, 0, 0, 0].unique().tolist() == [1, 2, 3, 4, 5]
    small = load(DataConfig(name="cifar10", corruptions=("fog",), image_size=8), cifar_c)
    assert small.corrupted["fog"].pixels.shape == (20, 3, 8, 8)


def test_corrupted_images_are_not_opened_when_test_is_false(cifar_c: Path) -> None:
    (cifar_c / "CIFAR-10-C" / "fog.npy").unlink()
    blind = DataConfig(name="cifar10", corruptions=("fog",), test=False)
    assert load(blind, cifar_c).corrupted == {}
    seeing = DataConfig(name="cifar10", corruptions=("fog",))
    with pytest.raises(DataError, match=r"fog\.npy: not found; get it with .*cifar10-c"):
        load(seeing, cifar_c)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (b"no array", "not a readable NumPy file"),
        (np.zeros((5, 32, 32, 3), np.uint8), r"expected an array of shape \(20, 32, 32, 3\)"),
        (np.zeros((20, 32, 32, 3), np.float32), "expected uint8, got float32"),
    ],
    ids=["bytes", "shape", "type"],
)
def test_a_damaged_corrupted_set_is_refused(cifar_c: Path, damage: Any, message: str) -> None:
    path = cifar_c / "CIFAR-10-C" / "fog.npy"
    if isinstance(damage, bytes):
        path.write_bytes(damage)
    else:
        np.save(path, damage)
    with pytest.raises(DataError, match=message):
        load(DataConfig(name="cifar10", corruptions=("fog",)), cifar_c)


def test_a_corrupted_set_is_fetched_and_unpacked(tmp_path: Path, monkeypatch: Patch) -> None:
    server, root = tmp_path / "server", tmp_path / "root"
    write_cifar10_c(server, num_test=2)
    members = {f"CIFAR-10-C/{file.name}": file.read_bytes()
               for file in sorted((server / "CIFAR-10-C").iterdir())}  # fmt: skip
    content = tar(members)
    (server / "CIFAR-10-C.tar").write_bytes(content)
    of = corrupted.CORRUPTED["cifar10"]
    url = (server / "CIFAR-10-C.tar").as_uri()
    served = corrupted.CorruptedSet(folder=of.folder, url=url, md5=hashlib.md5(content).hexdigest())
    monkeypatch.setitem(corrupted.CORRUPTED, "cifar10", served)
    assert fetch("cifar10-c", root) == url
    assert is_present("cifar10-c", root)


@pytest.mark.parametrize("name", DATASETS)
def test_the_facts_and_files_of_each_dataset_are_consistent(name: str) -> None:
    info, files = DATASETS[name].info, DATASETS[name].files
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name)
    assert info.channels in {1, 3}
    assert all(0 < mean < 1 for mean in info.mean)
    assert all(std <= 0.5 for std in info.std), "0.5 is as far as pixels in [0, 1] spread"
    assert 1 <= info.smallest_class <= info.num_train // info.num_classes
    assert bool(files) == (DATASETS[name].bundle is None)
    for path in (PurePosixPath(path) for split in files.values() for path in split):
        assert not path.is_absolute()
        assert ".." not in path.parts
