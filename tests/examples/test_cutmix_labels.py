"""The example study of CutMix's labels: its operation against CutMix, and by brute force."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from mixup_core.mixing.cutmix import CutMix
from sweeps.reading.study_file import load_study

FOLDER = Path(__file__).parents[2] / "examples" / "cutmix_labels"


@pytest.fixture
def operations() -> tuple[Any, Any]:
    """Return the operation of the example, without and with shuffled corrections."""
    configs = load_study(str(FOLDER / "study.yaml")).arms
    return configs["visible-400"].mix.operation, configs["shuffled-400"].mix.operation


def _drawn(operation: Any, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    lam = np.random.default_rng(0).random(count)
    drawn = operation.draw(lam, (6, 6), np.random.default_rng(1))
    return torch.from_numpy(lam).float(), torch.from_numpy(drawn)


def _images(count: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    pixels = torch.rand(2, count, 1, 6, 6, generator=generator)
    pixels[pixels < 0.6] = 0
    return pixels[0] - 0.3, pixels[1] - 0.3


def test_images_equal_those_of_cutmix_at_equal_seeds(operations: tuple[Any, Any]) -> None:
    own, beside = _images(40)
    for operation in operations:
        lam, drawn = _drawn(operation, 40)
        boxes = CutMix().draw(lam.double().numpy(), (6, 6), np.random.default_rng(1))
        expected, _ = CutMix().mix(own, beside, lam, torch.from_numpy(boxes))
        assert torch.equal(operation.mix(own, beside, lam, drawn)[0], expected)


def test_a_label_weight_is_the_own_share_of_visible_object_pixels(
    operations: tuple[Any, Any],
) -> None:
    own, beside = _images(40)
    lam, drawn = _drawn(operations[0], 40)
    mixed, weight = operations[0].mix(own, beside, lam, drawn)
    for index in range(40):
        first, end, left, right = drawn[index, :4].int().tolist()
        is_object = mixed[index, 0] > -0.3
        both = is_object.sum()
        is_object[first:end, left:right] = False
        assert weight[index] == pytest.approx(float(is_object.sum() / both))


def test_images_without_an_object_have_the_weight_of_cutmix(operations: tuple[Any, Any]) -> None:
    black = torch.zeros(20, 1, 6, 6)
    lam, drawn = _drawn(operations[0], 20)
    _, weight = operations[0].mix(black, black, lam, drawn)
    _, expected = CutMix().mix(black, black, lam, drawn[:, :4].long())
    assert torch.allclose(weight, expected)


def test_shuffled_corrections_come_from_other_images(operations: tuple[Any, Any]) -> None:
    own, beside = _images(400)
    lam, drawn = _drawn(operations[0], 400)
    _, area = CutMix().mix(own, beside, lam, drawn[:, :4].long())
    right, other = (operation.mix(own, beside, lam, drawn)[1] for operation in operations)
    moved = right[drawn[:, 4].argsort()] - area[drawn[:, 4].argsort()]
    assert torch.allclose(other, (area + moved).clamp(0, 1))
    correlation = np.corrcoef((right - area).numpy(), (other - area).numpy())[0, 1]
    assert abs(correlation) < 0.15  # 3 standard errors at 400 images
