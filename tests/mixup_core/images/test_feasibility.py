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
        ({"data.val_size": 1437}, "val_size < training images"),
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
