import numpy as np
import pytest
import torch

from mixup_core.images.augmentations.crop import PADDING, draw_moves, moved


@pytest.mark.parametrize("mode", ["constant", "reflect"])
@pytest.mark.parametrize("size", [(9, 7), (28, 28), (5, 6)])
def test_moved_crops_equal_crops_of_the_padded_image(mode: str, size: tuple[int, int]) -> None:
    rng = torch.Generator().manual_seed(0)
    pixels = torch.randint(0, 256, (30, 2, *size), dtype=torch.uint8, generator=rng)
    moves = torch.from_numpy(draw_moves((30,), np.random.default_rng(0), mirrors=True))
    found = moved(pixels, moves, "black" if mode == "constant" else "reflect")
    assert found.dtype == torch.uint8
    padded = torch.nn.functional.pad(pixels.float(), [PADDING] * 4, mode=mode)
    for image, around, (row, column, mirrored) in zip(found, padded, moves.tolist(), strict=True):
        expected = around[:, row : row + size[0], column : column + size[1]]
        assert torch.equal(image.float(), expected.flip(-1) if mirrored else expected)


def test_reflection_repeats_when_a_side_is_shorter_than_the_padding() -> None:
    column = torch.tensor([[0], [1], [2]], dtype=torch.uint8).view(1, 1, 3, 1)
    first = moved(column, torch.tensor([[0, PADDING, 0]]), "reflect")
    assert first.flatten().tolist() == [0, 1, 2], "rows -4, -3, -2 of 0 1 2 1 0 1 2"
    last = moved(column, torch.tensor([[PADDING + 2, 0, 1]]), "reflect")
    assert last.flatten().tolist() == [2, 1, 0], "rows 2, 3, 4"
