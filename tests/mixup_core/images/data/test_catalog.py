"""Catalogue: every dataset that has a file is listed, with consistent facts."""

import importlib
import pkgutil
import re
from pathlib import PurePosixPath

import pytest

from mixup_core.images.data import sets
from mixup_core.images.data.facts import Dataset
from mixup_core.images.data.sets import DATASETS

NUM_DIGITS = {"md5": 32, "sha256": 64}


def test_every_dataset_defined_in_a_module_is_published_under_its_name() -> None:
    modules = [
        importlib.import_module(f"{sets.__name__}.{module.name}")
        for module in pkgutil.iter_modules(sets.__path__)
    ]
    written = {
        id(value): value
        for module in modules
        for value in vars(module).values()
        if isinstance(value, Dataset)
    }
    assert len(written) == len(DATASETS)
    assert all(DATASETS[dataset.name] is dataset for dataset in written.values())
    assert [dataset.name for dataset in DATASETS.values()] == list(DATASETS)


@pytest.mark.parametrize("name", DATASETS)
def test_the_facts_of_each_dataset_are_consistent(name: str) -> None:
    info = DATASETS[name].info
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name)
    assert info.channels in {1, 3}
    assert len(info.mean) == len(info.std) == info.channels
    assert all(0 < mean < 1 for mean in info.mean)
    assert all(0 < std <= 0.5 for std in info.std), "0.5 is as far as pixels in [0, 1] spread"
    assert info.num_test > 0
    assert info.num_classes >= 2
    assert 1 <= info.smallest_class <= info.num_train // info.num_classes
    assert info.image_size >= 8


@pytest.mark.parametrize("name", DATASETS)
def test_dataset_files_have_relative_paths_and_valid_digests(name: str) -> None:
    files = DATASETS[name].files
    if not files:
        assert DATASETS[name].bundle is not None, "it comes with a package"
        return
    assert set(files) == {"train", "test"}
    for split in files.values():
        assert split
        for path, stated in split.items():
            assert not PurePosixPath(path).is_absolute()
            assert ".." not in PurePosixPath(path).parts
            algorithm, _, digest = stated.partition(":")
            assert re.fullmatch(rf"[0-9a-f]{{{NUM_DIGITS[algorithm]}}}", digest)


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("fashion-mnist", (60_000, 10_000, 10, 6_000, 28)),
        ("mnist", (60_000, 10_000, 10, 5_421, 28)),
        ("cifar10", (50_000, 10_000, 10, 5_000, 32)),
        ("cifar100", (50_000, 10_000, 100, 500, 32)),
        ("svhn", (73_257, 26_032, 10, 4_659, 32)),
        ("stl10", (5_000, 8_000, 10, 500, 96)),
        ("tiny-imagenet", (100_000, 10_000, 200, 500, 64)),
    ],
)
def test_counts_classes_and_sizes_match_the_published_values(
    name: str, counts: tuple[int, ...]
) -> None:
    info = DATASETS[name].info
    sizes = info.num_train, info.num_test, info.num_classes, info.smallest_class, info.image_size
    assert sizes == counts
