"""Tests that every operation, built-in or registered by a plugin, has to pass."""

import itertools

import numpy as np
import pytest
import torch
from scipy.ndimage import correlate
from torch import Tensor
from torch.nn.functional import interpolate
from torchvision.transforms import v2

from mixup_core.config.building import parsed
from mixup_core.mixing.cutmix import CutMix
from mixup_core.mixing.fmix import FMix, highest, low_frequency
from mixup_core.mixing.gridmix import GridMix
from mixup_core.mixing.manifold import Manifold
from mixup_core.mixing.operation import Operation
from mixup_core.mixing.pixel_saliency import REACHES, fine_grained
from mixup_core.mixing.resizemix import ResizeMix
from mixup_core.mixing.saliencymix import SaliencyMix
from mixup_core.mixing.smoothmix import SmoothMix
from mixup_core.rules import RuleError

SIZE = (10, 12)
OPERATIONS = sorted(Operation.catalogue)


def _images(batch: int = 6) -> tuple[Tensor, Tensor]:
    rng = torch.Generator().manual_seed(0)
    own, beside = torch.randn(2, batch, 3, *SIZE, generator=rng)
    return own, beside


def _drawn(operation: Operation, lam: Tensor, seed: int = 0) -> Tensor:
    rng = np.random.default_rng(seed)
    return torch.from_numpy(operation.draw(lam.double().numpy(), SIZE, rng))


@pytest.mark.parametrize("name", OPERATIONS)
def test_one_drawn_row_per_batch_equals_the_same_row_for_each_image(name: str) -> None:
    operation = parsed(Operation, name)
    own, beside = _images()
    one = _drawn(operation, torch.tensor([0.3]))
    lam = torch.full((6,), 0.3)
    shared = operation.mix(own, beside, lam, one)
    each = operation.mix(own, beside, lam, one.repeat(6, *[1] * (one.dim() - 1)))
    assert torch.equal(shared[0], each[0])
    assert torch.equal(shared[1].expand(6), each[1].expand(6))


@pytest.mark.parametrize("name", OPERATIONS)
def test_an_image_mixed_with_itself_keeps_its_pixels_unless_it_is_resized(name: str) -> None:
    operation = parsed(Operation, name)
    own, _ = _images()
    lam = torch.full((6,), 0.4)
    images, _ = operation.mix(own, own.clone(), lam, _drawn(operation, lam))
    if name == "resizemix":
        assert not torch.equal(images, own)
    else:
        torch.testing.assert_close(images, own)


@pytest.mark.parametrize("name", OPERATIONS)
def test_the_mean_label_weight_increases_with_lam(name: str) -> None:
    """On average, a larger weight of an image never gives its label a smaller weight."""
    operation = parsed(Operation, name)
    own, beside = _images(200)
    means = []
    for value in (0.1, 0.5, 0.9):
        lam = torch.full((200,), value)
        means.append(float(operation.mix(own, beside, lam, _drawn(operation, lam))[1].mean()))
    assert means == sorted(means)
    assert means[0] < means[2]


def test_the_largest_decay_of_fmix_gives_finite_surfaces() -> None:
    noise = np.random.default_rng(0).normal(size=(1, 4, 4096))
    assert np.isfinite(low_frequency(noise, FMix(decay=50.0).decay)).all()
    with pytest.raises(RuleError, match="decay <= 50"):
        FMix(decay=300.0)


@pytest.mark.parametrize("lam", [0.0, 0.19, 0.51, 1.0])
def test_box_sides_before_clipping_follow_from_lam(lam: float) -> None:
    drawn = CutMix().draw(np.full(500, lam), (32, 32), np.random.default_rng(0))
    lengths = drawn[:, 1::2] - drawn[:, ::2]
    assert lengths.max(initial=0) == 2 * (int(32 * (1 - lam) ** 0.5) // 2)


def test_cutmix_agrees_with_torchvision() -> None:
    """v2.CutMix pairs by roll(1) and does not report its box, which is where pixels changed."""
    images = torch.rand(5, 3, 16, 16, generator=torch.Generator().manual_seed(0))
    compared = 0
    for seed in range(20):
        with torch.random.fork_rng():
            torch.random.default_generator.manual_seed(seed)
            expected, targets = v2.CutMix(num_classes=5)(images, torch.arange(5))
        changed = (expected != images).any(1).any(0)
        if not changed.any():
            continue
        rows, columns = torch.nonzero(changed.any(1)), torch.nonzero(changed.any(0))
        box = [int(rows[0]), int(rows[-1]) + 1, int(columns[0]), int(columns[-1]) + 1]
        found, weight = CutMix().mix(images, images.roll(1, 0), torch.ones(5), torch.tensor([box]))
        assert torch.equal(found, expected)
        assert float(weight[0]) == pytest.approx(float(targets[0, 0]))
        compared += 1
    assert compared > 10


@pytest.mark.parametrize("box", [[2, 8, 3, 13], [0, 5, 0, 4], [0, 12, 0, 16], [7, 8, 1, 2]])
def test_the_box_shows_the_whole_partner_resized_by_nearest_pixels(box: list[int]) -> None:
    rng = torch.Generator().manual_seed(0)
    own, beside = torch.randn(2, 3, 2, 12, 16, generator=rng)
    images, weight = ResizeMix().mix(own, beside, torch.ones(3), torch.tensor([box]))
    top, bottom, left, right = box
    expected = own.clone()
    expected[:, :, top:bottom, left:right] = interpolate(beside, (bottom - top, right - left))
    assert torch.equal(images, expected)
    assert float(weight[0]) == pytest.approx(1 - (bottom - top) * (right - left) / (12 * 16))


def test_box_sides_range_from_the_smallest_at_lam_1_to_the_largest_at_lam_0() -> None:
    for lam, side in ((1.0, 4), (0.0, 32), (0.5, 18)):
        drawn = ResizeMix().draw(np.full(300, lam), (40, 40), np.random.default_rng(0))
        assert (drawn[:, 1] - drawn[:, 0]).max() == side


def test_a_mask_keeps_the_share_lam_rounded_up_or_down() -> None:
    lam = np.repeat([0.0, 0.25, 0.333, 1.0], 200)
    masks = FMix().draw(lam, (9, 8), np.random.default_rng(0))
    kept = masks.reshape(len(lam), -1).sum(1)
    assert (abs(kept - lam * 72) < 1).sum() + (kept - lam * 72 == 1).sum() == len(lam)
    third = kept[400:600]
    assert set(third.tolist()) == {23, 24}, "0.333 * 72 = 23.98"
    assert 60 < (third == 24).sum() < 140


def test_highest_keeps_the_largest_values_of_a_surface() -> None:
    surface = np.array([[[3.0, 1.0], [4.0, 2.0]]])
    assert highest(surface, np.array([2])).tolist() == [[[True, False], [True, False]]]
    assert not highest(surface, np.array([0])).any()
    assert highest(surface, np.array([4])).all()


def test_low_frequency_surfaces_are_noise_with_a_damped_spectrum() -> None:
    noise = np.random.default_rng(0).standard_normal((2, 12, 9))
    rows, columns = np.fft.fftfreq(12)[:, None], np.fft.fftfreq(9)
    frequency = np.maximum(np.sqrt(rows**2 + columns**2), 1 / 12)
    expected = np.fft.ifft2(np.fft.fft2(noise) / frequency**3)
    assert abs(expected.imag).max() < 1e-9
    np.testing.assert_allclose(low_frequency(noise, 3.0), expected.real, atol=1e-9)
    np.testing.assert_allclose(low_frequency(noise, 0.0), noise, atol=1e-12)


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


def test_the_weight_of_the_partner_is_gaussian_in_the_distance_from_the_centre() -> None:
    own, beside = torch.zeros(1, 1, 5, 4), torch.ones(1, 1, 5, 4)
    images, weight = SmoothMix().mix(own, beside, torch.ones(1), torch.tensor([[1.0, 2.0, 1.5]]))
    rows, columns = np.mgrid[:5, :4]
    expected = np.exp(-((rows - 1) ** 2 + (columns - 2) ** 2) / (2 * 1.5**2))
    np.testing.assert_allclose(images[0, 0].numpy(), expected, rtol=1e-6)
    assert float(weight[0]) == pytest.approx(1 - expected.mean())


def test_widths_range_from_the_narrowest_at_lam_1_to_the_widest_at_lam_0() -> None:
    drawn = SmoothMix().draw(np.array([1.0, 0.5, 0.0]), (32, 28), np.random.default_rng(0))
    assert drawn[:, 2].tolist() == [8, 12, 16]
    assert (drawn[:, :2] < [32, 28]).all()


def test_the_narrowest_spot_is_a_pixel_and_a_narrower_one_is_refused() -> None:
    own, beside = torch.ones(1, 1, 3, 3), torch.zeros(1, 1, 3, 3)
    spot = SmoothMix(narrowest=1e-6)
    drawn = spot.draw(np.ones(1), (3, 3), np.random.default_rng(0))
    images, weight = spot.mix(own, beside, torch.ones(1), torch.from_numpy(drawn))
    assert images.isfinite().all()
    assert float(weight[0]) == pytest.approx(8 / 9)
    with pytest.raises(RuleError, match="narrowest"):
        SmoothMix(narrowest=1e-30, widest=1e-30)


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


def _slowly(image: np.ndarray) -> np.ndarray:
    """Compute the saliency by its definition, pixel by pixel."""
    gray = image.mean(0)
    for _ in range(2):
        gray = correlate(gray, np.outer([1, 2, 1], [1, 2, 1]) / 16, mode="mirror")
    above, below = np.zeros_like(gray), np.zeros_like(gray)
    for (y, x), reach in itertools.product(np.ndindex(gray.shape), REACHES):
        square = gray[max(y - reach + 1, 0) : y + reach + 1, max(x - reach + 1, 0) : x + reach + 1]
        rest = gray[y, x] - (square.sum() - gray[y, x]) / (square.size - 1)
        above[y, x] += max(rest, 0)
        below[y, x] += max(-rest, 0)
    both = above / (above.max() or 1) + below / (below.max() or 1)
    return both / (both.max() or 1)


def test_the_saliency_equals_its_definition_pixel_by_pixel() -> None:
    images = np.random.default_rng(0).random((2, 3, 15, 18))
    found = fine_grained(torch.from_numpy(images)).numpy()
    for image, saliency in zip(images, found, strict=True):
        np.testing.assert_allclose(saliency, _slowly(image), atol=1e-12)


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
