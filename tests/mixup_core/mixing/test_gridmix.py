import numpy as np
import pytest
import torch

from mixup_core.mixing.gridmix import GridMix


@pytest.mark.parametrize(("cells", "size"), [(2, (4, 6)), (4, (28, 28)), (3, (7, 8)), (5, (3, 3))])
def test_each_grid_cell_shows_pixels_of_one_image(cells: int, size: tuple[int, int]) -> None:
    own, beside = torch.zeros(1, 1, *size), torch.ones(1, 1, *size)
    kept = torch.from_numpy(np.random.default_rng(0).random((1, cells, cells)) < 0.5)
    images, weight = GridMix(cells=cells).mix(own, beside, torch.ones(1), kept)
    for row in range(size[0]):
        for column in range(size[1]):
            stays = bool(kept[0, row * cells // size[0], column * cells // size[1]])
            assert float(images[0, 0, row, column]) == (0 if stays else 1)
    assert float(weight[0]) == pytest.approx(1 - float(images.mean()))


def test_cells_stay_independently_with_probability_lam() -> None:
    kept = GridMix().draw(np.full(4000, 0.3), (28, 28), np.random.default_rng(0))
    assert kept.shape == (4000, 4, 4)
    assert kept.mean(axis=0) == pytest.approx(np.full((4, 4), 0.3), abs=0.03)
    together = np.corrcoef(kept.reshape(4000, 16).T)
    assert abs(together - np.eye(16)).max() < 0.07
