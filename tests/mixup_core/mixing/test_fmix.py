import numpy as np
import torch

from mixup_core.mixing.fmix import FMix, highest, low_frequency


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


def test_fmix_takes_pixels_by_the_mask_and_weights_the_label_by_lam() -> None:
    own, beside = torch.zeros(2, 1, 2, 2), torch.ones(2, 1, 2, 2)
    mask = torch.tensor([[[True, False], [False, True]]])
    images, weight = FMix().mix(own, beside, torch.tensor([0.3, 0.3]), mask)
    assert images[0, 0].tolist() == [[0, 1], [1, 0]]
    assert weight.tolist() == torch.tensor([0.3, 0.3]).tolist()
