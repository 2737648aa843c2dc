"""Workload: true sizes, a smaller last batch, and images that a network can or cannot classify."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from mixup_core.images.data.catalog import DATASETS
from tests.bench.gpu.workload import GPU, REHEARSAL, config_of, images_of
from tests.bundled import bundled

TABLE_1 = ("table1-fmnist", "table1-cifar10", "table1-cifar100")


def test_the_gpu_size_uses_all_images_of_the_table_1_datasets() -> None:
    assert GPU.data == tuple(bundled(name).arms["erm"].data.name for name in TABLE_1)
    assert GPU.limit is None
    assert GPU.epochs >= 2, "a run is cut after the first and goes on"


@pytest.mark.parametrize("name", ["fashion-mnist", "cifar10"])
def test_missing_images_are_replaced_by_noise_images_in_the_published_number(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MIXSWEEP_DATA", str(tmp_path))
    data, kind = images_of(GPU, name)
    assert kind == "noise around weak patterns"
    assert data.test is not None
    assert (len(data.train), len(data.test)) == (
        DATASETS[name].info.num_train,
        DATASETS[name].info.num_test,
    )
    with_ragged = len(data.train) % GPU.batch
    assert with_ragged == {"fashion-mnist": 0, "cifar10": 500}[name]


def test_class_means_classify_most_but_not_all_noise_images(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MIXSWEEP_DATA", str(tmp_path))
    data, _ = images_of(replace(GPU, limit=20_000), "fashion-mnist")
    assert data.test is not None
    train, test = (part.pixels.flatten(1).float() for part in (data.train, data.test))
    means = torch.stack([train[data.train.labels == label].mean(0) for label in range(10)])
    error = (torch.cdist(test, means).argmin(1) != data.test.labels).float().mean()
    assert 0.005 < error < 0.7


def test_the_rehearsal_uses_published_images_and_a_smaller_last_batch() -> None:
    data, kind = images_of(REHEARSAL, "digits")
    assert kind == "published images"
    assert len(data.train) == 1010
    assert len(data.train) % REHEARSAL.batch


@pytest.mark.parametrize("table", TABLE_1)
def test_benchmark_runs_have_the_laws_and_batch_size_of_table_1(table: str) -> None:
    for arm, mixes in (("uniform", True), ("erm", False)):
        config = bundled(table).arms[arm]
        found = config_of(GPU, config.data.name, mixes=mixes)
        assert found == replace(config, epochs=GPU.epochs)
