"""One set of promises for every entry of every registry."""

import typing
from typing import Any

import pytest
import torch

from mixup_core.images.config import (
    DataConfig,
    MixConfig,
    Model,
    TrainConfig,
)
from mixup_core.images.data.catalog import CATALOG, DATA_NAMES
from mixup_core.images.data.datasets import DATASETS, Images, Splits
from mixup_core.images.models import MODELS
from mixup_core.images.training import fit
from mixup_core.laws import Law
from mixup_core.tree import parsed

SPELLINGS: list[Any] = ["erm", "midpoint", {"beta": 0.5}]


def test_the_names_a_configuration_accepts_are_the_registries_entries() -> None:
    assert set(DATA_NAMES) == set(DATASETS)
    assert [kind.name for kind in typing.get_args(Model)] == list(MODELS)
    assert set(CATALOG) == set(DATASETS) - {"image-folder"}


def test_every_law_has_a_spelling_under_test() -> None:
    assert {type(parsed(Law, spelling)) for spelling in SPELLINGS} == set(typing.get_args(Law))


@pytest.mark.parametrize("dataset", CATALOG)
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("views", ["single", "concat"])
def test_every_data_set_trains_a_step_of_every_model_under_every_law(
    dataset: str, model: str, views: str
) -> None:
    info = CATALOG[dataset]
    shape = (2 * info.num_classes, info.channels, info.image_size, info.image_size)
    pixels = torch.randint(0, 256, shape, dtype=torch.uint8, generator=torch.Generator())
    images = Images(pixels=pixels, labels=torch.arange(len(pixels)) % info.num_classes)
    first = slice(0, 8)
    few = Images(pixels=pixels[first], labels=images.labels[first])
    width = {"width": 2} if model != "mlp" else {}
    for spelling in SPELLINGS:
        config = TrainConfig(
            data=DataConfig(name=dataset, views=views),  # type: ignore[arg-type]
            model=parsed(Model, {"name": model, **width}),
            mix=MixConfig(law=parsed(Law, spelling)),
            epochs=1,
            batch_size=len(images),
        )
        (record,) = fit(config, Splits(info=info, train=images, val=few, test=few))
        assert 0 < record.metrics["train/loss"] < 20
        assert 0 <= record.metrics["val/error"] <= 1
        assert 0 <= record.metrics["test/calibration_error"] <= 1
