import json

import pytest

from tests.golden.freeze import FILE, losses


def test_losses_are_the_frozen_ones() -> None:
    """Tolerance: processors differ in their last bits, and 24 steps carry that to about 1e-4."""
    frozen = json.loads(FILE.read_text())
    now = losses()
    for law, epochs in frozen.items():
        for epoch, metrics in enumerate(epochs):
            for name in ("train/loss", "train/excess_loss", "val/nll", "test/nll"):
                assert now[law][epoch][name] == pytest.approx(metrics[name], rel=5e-3), (law, epoch)
