import numpy as np
import pytest
import torch
from torchvision.transforms import v2

from mixup_core.images.augmentations.moves import PADDING
from mixup_core.images.augmentations.rand_augment import (
    TRANSFORMATIONS,
    RandAugment,
    transformations,
)


@pytest.mark.parametrize("magnitude", [0, 9, 15, 30])
@pytest.mark.parametrize("channels", [1, 3])
def test_every_result_of_torchvision_randaugment_equals_one_of_our_transformations(
    magnitude: int, channels: int
) -> None:
    """v2.RandAugment does not report its choice, so each of its results must equal one of ours."""
    rng = torch.Generator().manual_seed(0)
    image = torch.randint(0, 256, (channels, 20, 24), dtype=torch.uint8, generator=rng)
    ours = [image]
    for sign in (1, -1):
        functions = transformations(magnitude, sign, (20, 24))
        assert tuple(functions) == TRANSFORMATIONS[1:]
        ours += [function(image[None])[0] for function in functions.values()]
    theirs = v2.RandAugment(num_ops=1, magnitude=magnitude)
    met = set()
    for seed in range(150):
        with torch.random.fork_rng():
            torch.random.default_generator.manual_seed(seed)
            result = theirs(image)
        same = [index for index, own in enumerate(ours) if torch.equal(own, result)]
        assert same, seed
        met.add(same[0])
    distinct = {index for index, own in enumerate(ours)
                if not any(torch.equal(own, other) for other in ours[:index])}  # fmt: skip
    assert met == distinct


def test_transformations_are_applied_in_the_order_drawn() -> None:
    rng = torch.Generator().manual_seed(0)
    pixels = torch.randint(0, 256, (3, 3, 16, 16), dtype=torch.uint8, generator=rng)
    rotate, solarise = TRANSFORMATIONS.index("rotate"), TRANSFORMATIONS.index("solarise")
    still = [PADDING, PADDING, 0]
    drawn = torch.tensor(
        [[*still, rotate, solarise, -1, 1], [*still, 0, 0, 1, -1], [*still, 0, rotate, 1, 1]]
    )
    seen = RandAugment(magnitude=12).on_pixels(pixels, drawn)
    right, left = (transformations(12, sign, (16, 16)) for sign in (1, -1))
    assert torch.equal(seen[:1], right["solarise"](left["rotate"](pixels[:1])))
    assert torch.equal(seen[1], pixels[1])
    assert torch.equal(seen[2:], right["rotate"](pixels[2:]))


def test_transformations_and_signs_are_uniform() -> None:
    drawn = RandAugment(number=3).draw((5000,), (8, 8), np.random.default_rng(0))
    assert drawn is not None
    assert drawn.shape == (5000, 9)
    counts = np.bincount(drawn[:, 3:6].ravel(), minlength=14)
    assert len(counts) == 14
    assert abs(counts - 15_000 / 14).max() < 4.5 * (15_000 / 14) ** 0.5
    assert drawn[:, 6:].mean() == pytest.approx(0, abs=0.03)
    assert set(np.unique(drawn[:, 6:])) == {-1, 1}
