"""Memory of a run: the bound, and the peak of a step."""

from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context

import pytest

from mixup_core.images.choices.models import Mlp, Model, ResNet18
from mixup_core.images.config import TrainConfig
from mixup_core.images.data.data_config import DataConfig
from mixup_core.images.memory import most_bytes, peak_bytes


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


@pytest.mark.long
def test_peak_bytes_counts_the_memory_of_the_batches() -> None:
    # A process each: the peak of this one may be that of another test.
    context = get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context, max_tasks_per_child=1) as alone:
        small, large = alone.map(peak_bytes, (digits(16, 8), digits(700, 256)), ("cpu", "cpu"))
    assert small > 10**8
    pixels = 700 * 2 * 256**2  # two batches, in float32 beside their integers
    assert large > small + 4 * pixels // 2
