import numpy as np
import pytest
import torch

from mixup_core.mixing.manifold import Manifold
from mixup_core.rules import RuleError


def test_layers_are_drawn_uniformly() -> None:
    drawn = Manifold(layers=(0, 2, 3)).draw(np.ones(3000), (8, 8), np.random.default_rng(0))
    values, counts = np.unique(drawn, return_counts=True)
    assert values.tolist() == [0, 2, 3]
    assert counts == pytest.approx([1000] * 3, abs=110)


def test_a_batch_uses_the_first_of_its_layers() -> None:
    assert Manifold().layer(torch.tensor([[2], [0], [1]])) == 2
    assert Manifold(layers=(1, 3)).deepest_layer == 3


@pytest.mark.parametrize("layers", [(), (0, 0), (4,), (-1,)])
def test_empty_repeated_or_out_of_range_layers_are_refused(layers: tuple[int, ...]) -> None:
    with pytest.raises(RuleError, match="layers"):
        Manifold(layers=layers)
