import numpy as np

from mixup_core.mixing.cells import draw_kept


def test_parts_are_kept_with_probability_lam() -> None:
    lam = np.array([[0.0, 0.5], [1.0, 0.25]])
    kept = np.mean([draw_kept(lam, 50, np.random.default_rng(s)) for s in range(100)], axis=(0, 3))
    np.testing.assert_allclose(kept, lam, atol=0.03)
    assert kept[0, 0] == 0
    assert kept[1, 0] == 1
