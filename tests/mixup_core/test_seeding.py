"""Seeding: streams by seed, purpose and epoch, and a watch over the global generators."""

import hashlib
import random
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
import torch

from mixup_core.seeding import seeded_globally, stream_seed, watched


def test_the_seed_of_a_stream_is_the_start_of_a_sha256_hash() -> None:
    digest = hashlib.sha256(b"3/mixing/7").hexdigest()
    assert stream_seed(3, "mixing", 7) == int(digest[:16], 16) // 2
    assert 0 <= stream_seed(3, "mixing", 7) < 2**63


@pytest.mark.parametrize(
    ("draw", "module"),
    [
        (random.random, "random"),
        (np.random.rand, "numpy.random"),
        (np.random.normal, "numpy.random"),
        (partial(np.random.rand, 312), "numpy.random"),
        (lambda: torch.rand(1), "torch"),
        (lambda: torch.nn.Dropout()(torch.ones(3)), "torch"),
    ],
)
def test_a_draw_from_a_global_generator_is_detected_with_its_module(
    draw: Callable[[], object], module: str
) -> None:
    with seeded_globally(0), watched() as found:
        draw()
    assert found == [module]


def test_seeded_globally_restores_the_global_generators() -> None:
    before = random.getstate(), torch.default_generator.get_state()
    with seeded_globally(3):
        first = random.random(), float(torch.rand(()))
    with seeded_globally(3):
        assert (random.random(), float(torch.rand(()))) == first
    assert random.getstate() == before[0]
    assert torch.equal(torch.default_generator.get_state(), before[1])
