import math

import numpy as np
import pytest

from mixup_core.images.augmentations.random_resized_crop import draw_windows


def test_drawn_windows_have_the_requested_areas_and_aspect_ratios() -> None:
    windows, found = draw_windows(
        (20_000,), (64, 64), (0.1, 0.5), (0.5, 2.0), np.random.default_rng(0)
    )
    assert found.all()
    height, width = windows[:, 1] - windows[:, 0], windows[:, 3] - windows[:, 2]
    area, ratio = height * width / 64**2, width / height
    assert 0.09 < area.min() < area.max() < 0.52
    assert area.mean() == pytest.approx(0.3, abs=0.01)
    assert np.log(ratio).mean() == pytest.approx(0, abs=0.02)
    assert abs(np.log(ratio)).max() < math.log(2) + 0.1
    assert (windows >= 0).all()
    assert (windows <= 64).all()


def test_the_window_is_the_whole_image_when_no_window_fits() -> None:
    windows, found = draw_windows((3,), (4, 5), (1.0, 1.0), (9.0, 9.0), np.random.default_rng(0))
    assert not found.any()
    assert windows.tolist() == [[0, 4, 0, 5]] * 3
