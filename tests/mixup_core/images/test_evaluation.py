from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from mixup_core.config.building import with_values
from mixup_core.images.config import TrainConfig
from mixup_core.images.data.datasets import Images, Splits
from mixup_core.images.evaluation import (
    PREDICTED_SPLITS,
    calibration_error,
    corrupted_means,
    evaluate,
    predict,
)
from mixup_core.predictions import images_digest


@pytest.mark.parametrize("sharpness", [0.1, 1.0, 8.0, 1e4])
def test_error_nll_and_calibration_error_match_pytorch(sharpness: float) -> None:
    # Loaded here, because it takes half a second in each process that collects the tests.
    from torchmetrics.functional.classification import multiclass_calibration_error

    rng = torch.Generator().manual_seed(0)
    logits = sharpness * torch.randn(2000, 10, generator=rng)
    # Half right at any confidence, so too bold in some bins and too shy in others.
    is_right = torch.rand(2000, generator=rng) < 0.5
    labels = logits.argmax(1).where(is_right, torch.randint(0, 10, (2000,), generator=rng))
    reference = multiclass_calibration_error(
        logits.double().softmax(1), labels, num_classes=10, n_bins=15, norm="l1"
    )
    assert evaluate(logits, labels) == {
        "error": pytest.approx(0.45, abs=0.05),
        "nll": pytest.approx(float(nn.functional.cross_entropy(logits, labels)), rel=1e-5),
        "calibration_error": pytest.approx(float(reference), abs=1e-5),
    }


def test_the_lowest_confidences_have_a_bin_of_their_own() -> None:
    shares = torch.tensor([[0.06] + 19 * [0.94 / 19], [0.1] + 19 * [0.9 / 19]])
    found = calibration_error(shares.log(), torch.tensor([0, 1]))
    assert float(found) == pytest.approx((0.94 + 0.1) / 2), "one right, one wrong"


def test_corruptions_are_averaged_metric_by_metric() -> None:
    metrics = {
        "test/error": 0.1, "test_fog/error": 0.2, "test_snow/error": 0.4, "test_fog/nll": 1.0,
        "test_fog/error_averaged": 0.5, "val/error": 0.9,
    }  # fmt: skip
    assert corrupted_means(metrics) == pytest.approx(
        {"test_corrupted/error": 0.3, "test_corrupted/nll": 1.0,
         "test_corrupted/error_averaged": 0.5}
    )  # fmt: skip
    assert corrupted_means({"test/error": 0.1}) == {}


CPU = torch.device("cpu")


def linear(channels: int, seed: int = 0) -> nn.Module:
    """Return a network whose logits are a product with known weights."""
    built = nn.Sequential(nn.Flatten(), nn.Linear(64 * channels, 4, bias=False))
    weights = np.random.default_rng(seed).normal(size=(4, 64 * channels))
    with torch.no_grad():
        built[1].weight.copy_(torch.from_numpy(weights))
    return built


def images_of(num: int, seed: int) -> Images:
    rng = np.random.default_rng(seed)
    pixels = rng.integers(0, 256, (num, 1, 8, 8), dtype=np.uint8)
    return Images.of_arrays(pixels, rng.integers(0, 4, num))


@pytest.fixture
def single(config: TrainConfig) -> TrainConfig:
    return with_values(config, {"data.views": "single"})


def test_predict_returns_logits_of_normalised_images_in_the_order_of_the_split(
    single: TrainConfig, splits: Splits
) -> None:
    data = replace(splits, val=images_of(7, 1), test=images_of(2500, 2))
    network = linear(1)
    weights = network[1].weight.detach().double().numpy()
    found = predict(single, data, {"": network}, CPU)
    assert list(found.splits) == list(PREDICTED_SPLITS) == ["val", "test"]
    for images, split in zip((data.val, data.test), found.splits.values(), strict=True):
        shown = (images.pixels.double().numpy().reshape(len(images), 64) / 255 - 0.5) / 0.5
        np.testing.assert_allclose(split.logits[""], shown @ weights.T, rtol=1e-4, atol=1e-4)
        assert split.logits[""].dtype == np.float32
        np.testing.assert_array_equal(split.labels, images.labels)
        assert split.images == images_digest(images.pixels.numpy(), images.labels.numpy())


def test_corrupted_images_and_missing_splits_are_not_predicted(
    single: TrainConfig, splits: Splits
) -> None:
    corrupted = replace(splits, corrupted={"fog": images_of(5, 3)})
    assert list(predict(single, corrupted, {"": linear(1)}, CPU).splits) == ["test"]
    blind = replace(splits, test=None)
    assert predict(single, blind, {"": linear(1)}, CPU).splits == {}
    held_out = replace(blind, val=images_of(5, 4))
    assert list(predict(single, held_out, {"": linear(1)}, CPU).splits) == ["val"]


class Noisy(nn.Module):
    """A network that answers at random in training mode.

    In evaluation mode its answer shows its precision.
    """

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(64, 4)

    def forward(self, images: Tensor) -> Tensor:
        logits: Tensor = self.layer(images.flatten(1))
        return logits + torch.rand_like(logits) if self.training else logits


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_networks_run_in_evaluation_mode_and_in_the_precision_of_the_run(
    single: TrainConfig, splits: Splits, precision: str
) -> None:
    config = with_values(single, {"precision": precision})
    network = Noisy().train()
    first, second = (predict(config, splits, {"": network}, CPU) for _ in range(2))
    logits = first.splits["test"].logits[""]
    np.testing.assert_array_equal(logits, second.splits["test"].logits[""])
    assert logits.dtype == np.float32
    coarse = torch.from_numpy(logits).bfloat16().float().numpy()
    assert np.array_equal(logits, coarse) == (precision == "bfloat16")
