"""Memory of a run: the bound."""

from dataclasses import replace

import pytest

from mixup_core.images.choices.models import Mlp, Model, ResNet18
from mixup_core.images.config import TrainConfig
from mixup_core.images.data.data_config import DataConfig
from mixup_core.images.memory import most_bytes


def digits(batch_size: int, side: int) -> TrainConfig:
    data = DataConfig(name="digits", image_size=side)
    return TrainConfig(
        data=data, model=Mlp(hidden=(8,)), epochs=40, batch_size=batch_size, eval_every=40
    )


@pytest.mark.parametrize(
    ("usual", "wide"),
    [(Mlp(hidden=(8,)), Mlp(hidden=(16000, 16000))), (ResNet18(), ResNet18(width=512))],
)
def test_most_bytes_grows_with_the_width_of_the_network(usual: Model, wide: Model) -> None:
    config = digits(64, 8)
    growth = most_bytes(replace(config, model=wide)) - most_bytes(replace(config, model=usual))
    assert growth > 4 * 4 * 16000**2  # weights, gradients and two moments of Adam
