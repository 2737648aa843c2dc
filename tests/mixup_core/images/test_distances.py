"""Distances of images from mixed images of other classes: by brute force."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from mixup_core.images.data.data_config import DataConfig
from mixup_core.images.data.datasets import Splits, load
from mixup_core.images.data.folders import folder_digest
from mixup_core.images.distances import measure
from mixup_core.images.sufficiency import SufficiencyConfig, infeasible
from mixup_core.laws import Beta, Law, Midpoint
from mixup_core.seeding import stream
from tests.mixup_core.small_files import fill, folder_config, prepared, write_images

CPU = torch.device("cpu")
LEVELS = {"ant": 0, "bee": 255, "cow": 51, "dog": 204}
"""Grey level of the single image of each class."""


def by_brute_force(splits: Splits, law: Law, seed: int) -> dict[str, float]:
    """Return the distances of all images from all mixed images of other classes.

    Images are normalised to [-1, 1]. One that shares a class with every mixed image is left out.
    """
    shown = {
        name: images.pixels.double().numpy().reshape(len(images), -1) / 127.5 - 1
        for name, images in splits.parts().items()
    }
    rng, train = stream(seed, "mixing"), shown["train"]
    ends = rng.integers(len(train), size=(2, len(train)))
    lam = law.draw(len(train), rng)[:, None]
    mixed = lam * train[ends[0]] + (1 - lam) * train[ends[1]]
    mixed_labels = splits.train.labels.numpy()[ends]
    expected = {}
    for name, images in shown.items():
        own = splits.parts()[name].labels.numpy()
        squares = (images**2).sum(1)[:, None] + (mixed**2).sum(1) - 2 * images @ mixed.T
        squares[(mixed_labels[:, None, :] == own[None, :, None]).any(0)] = np.inf
        distances = np.sqrt(np.maximum(squares.min(1), 0))
        if (known := distances[np.isfinite(distances)]).size:
            expected[f"distance/{name}_smallest"] = known.min()
            expected[f"distance/{name}_average"] = known.mean()
    return expected


@pytest.mark.parametrize("law", [Beta(alpha=1.0), Midpoint()], ids=["uniform", "midpoint"])
def test_distances_match_a_direct_computation_on_normalised_pixels(law: Law) -> None:
    config = SufficiencyConfig(data=DataConfig(name="digits"), law=law, seed=3)
    expected = by_brute_force(load(config.data), law, 3)
    assert len(expected) == 4
    assert measure(config, None, CPU) == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("classes", [["ant", "bee"], ["ant", "bee", "cow"], list(LEVELS)])
def test_images_that_share_a_class_with_every_mixed_image_are_left_out(
    tmp_path: Path, classes: list[str]
) -> None:
    pictures = {name: Image.new("L", (8, 8), LEVELS[name]) for name in classes}
    write_images(tmp_path / "images", "train", **pictures)
    data = folder_config(tmp_path / "images", test=False)
    data = dataclasses.replace(data, digest=folder_digest(tmp_path / "images", tmp_path))
    config = SufficiencyConfig(data=data, law=Midpoint())
    seen = []
    for seed in range(12):
        found = measure(dataclasses.replace(config, seed=seed), tmp_path, CPU)
        expected = by_brute_force(load(data), Midpoint(), seed)
        assert found == pytest.approx(expected, rel=1e-5, abs=1e-5)
        seen.append(bool(found))
    assert any(seen)
    assert all(seen) == (len(classes) > 2), "of two classes each mixed image may have both"


def test_a_balanced_subset_that_cannot_be_drawn_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two of five images of each class are left over, and one class alone has more than five."""
    monkeypatch.setenv("MIXSWEEP_DATA", str(tmp_path / "data"))
    fill(tmp_path / "train", ant=5, bee=5, cow=8)
    data = prepared(tmp_path, test=False, num_train=17, balanced=True).data
    reasons = list(infeasible(SufficiencyConfig(data=data)))
    assert [reason.fields[0] for reason in reasons] == ["data.balanced"]
    fitting = dataclasses.replace(data, num_train=16)
    assert list(infeasible(SufficiencyConfig(data=fitting))) == []


def test_a_subset_larger_than_the_training_images_is_refused() -> None:
    """`tests/contracts/test_keys_fail_closed.py` has laws and views that are always refused."""
    many = SufficiencyConfig(data=DataConfig(name="digits", num_train=2000))
    assert "num_train must be at most" in str(next(infeasible(many)))
    assert list(infeasible(SufficiencyConfig(data=DataConfig(name="digits", num_train=60)))) == []
