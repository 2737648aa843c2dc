from typing import Any

import pytest

from mixup_core.config.building import with_values
from mixup_core.images.config import TrainConfig
from mixup_core.images.feasibility import infeasible


@pytest.mark.parametrize(
    ("values", "rule"),
    [
        ({"data.num_train": 1438}, "num_train must be at most the number of training images"),
        ({"data.train_fraction": 0.001}, "batch_size <= training images"),
        ({"data.image_size": 9, "data.pool": 2}, "pool must divide the image size"),
        ({"data.num_train": 9}, "BatchNorm needs two images or more in every batch"),
        ({"data.val_size": 1437}, "val_size < training images"),
        (
            {"mix.law": "midpoint", "mix.operation": "puzzlemix", "data.image_size": 9},
            "puzzlemix needs images with an even height and an even width, got (image size=9)",
        ),
        (
            {"mix.law": "midpoint", "mix.second": "saliencymix", "data.pool": 8},
            "saliencymix needs images of at least 2 x 2 pixels",
        ),
        ({"data.pool": 4, "data.views": "orthogonal"}, "as many pixel values in an image as"),
        ({"data.num_train": 1360, "data.balanced": True}, "(images wanted of each class=136, "),
    ],
)
def test_a_configuration_that_does_not_fit_the_data_is_reported(
    values: dict[str, Any], rule: str
) -> None:
    base = TrainConfig(epochs=4, batch_size=8)
    digits = with_values(base, {"data.name": "digits"})
    assert list(infeasible(digits)) == []
    assert rule in str(next(infeasible(with_values(digits, values))))
