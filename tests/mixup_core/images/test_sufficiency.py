import dataclasses
import math

import pytest
import torch

from mixup_core.images.config import DataConfig
from mixup_core.images.distances import nearest
from mixup_core.images.sufficiency import SufficiencyConfig, infeasible
from mixup_core.laws import Erm, Midpoint
from mixup_core.problem import problem_of
from mixup_core.rules import RuleError

CONFIG = SufficiencyConfig(data=DataConfig(name="digits", num_train=60))


def measured(config: SufficiencyConfig) -> dict[str, float]:
    (record,) = problem_of(config).start(config, None, "cpu")
    return dict(record.metrics)


def test_the_nearest_mixed_image_has_two_other_classes() -> None:
    images = torch.tensor([[0.0, 0.0], [3.0, 4.0]])
    mixed = torch.tensor([[0.0, 0.0], [0.0, 1.0], [6.0, 8.0]])
    classes = torch.tensor([[0, 1, 2], [2, 2, 2]])
    found = nearest(images, torch.tensor([0, 1]), mixed, classes)
    # of class 0: not the first, which coincides; of class 1: not the second
    assert found.tolist() == pytest.approx([1.0, 5.0])
    assert nearest(images, torch.tensor([2, 2]), mixed, classes).tolist() == [math.inf] * 2


def test_distances_repeat_at_a_seed_and_the_least_is_below_the_mean() -> None:
    metrics = measured(CONFIG)
    assert metrics == measured(CONFIG)
    assert metrics != measured(dataclasses.replace(CONFIG, seed=1))
    for split in ("train", "test"):
        assert 0 < metrics[f"distance/{split}_smallest"] < metrics[f"distance/{split}_average"]


def test_without_test_images_those_of_training_are_measured_alone() -> None:
    blind = dataclasses.replace(CONFIG, data=dataclasses.replace(CONFIG.data, test=False))
    assert set(measured(blind)) == {"distance/train_smallest", "distance/train_average"}
    of_midpoint = measured(dataclasses.replace(blind, law=Midpoint()))
    assert of_midpoint["distance/train_average"] == pytest.approx(
        measured(blind)["distance/train_average"], rel=0.02
    )


def test_what_cannot_be_measured_is_refused() -> None:
    with pytest.raises(RuleError, match="a law that mixes"):
        dataclasses.replace(CONFIG, law=Erm())
    with pytest.raises(RuleError, match=r"data\.views is single"):
        SufficiencyConfig(data=DataConfig(views="concat"))
    many = SufficiencyConfig(data=DataConfig(name="digits", num_train=2000))
    assert "num_train <= training images" in str(next(infeasible(many)))
    assert list(infeasible(CONFIG)) == []
