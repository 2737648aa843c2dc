import numpy as np
import pytest
import torch

from mixup_core.mixing.pixel_saliency import fine_grained
from mixup_core.mixing.saliencymix import SaliencyMix


def test_the_box_is_centred_on_the_most_salient_pixel_of_the_partner() -> None:
    beside = torch.rand(8, 1, 20, 18, generator=torch.Generator().manual_seed(0)) + 1
    images, weight = SaliencyMix().mix(
        torch.zeros_like(beside), beside, torch.ones(8), torch.tensor([[6, 4]])
    )
    for index, saliency in enumerate(fine_grained(beside)):
        row, column = divmod(int(saliency.argmax()), 18)
        inside = torch.zeros(20, 18)
        inside[max(row - 3, 0) : row + 3, max(column - 2, 0) : column + 2] = 1
        assert torch.equal(images[index, 0], inside * beside[index, 0])
        assert float(weight[index]) == pytest.approx(1 - float(inside.mean()))


def test_the_box_has_the_sides_of_cutmix_and_no_random_position() -> None:
    rng = np.random.default_rng(0)
    assert SaliencyMix().draw(np.array([0.0, 0.75]), (28, 20), rng).tolist() == [[28, 20], [14, 10]]
    assert rng.random() == np.random.default_rng(0).random()
