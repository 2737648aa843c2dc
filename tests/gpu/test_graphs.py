"""CUDA graphs on a real GPU: a replayed step computes the bits of the same step without a graph."""

import os
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

import pytest
import torch

from mixup_core.images.batch import Batch
from mixup_core.images.precision import kernels
from mixup_core.images.views import TrainingImages
from mixup_core.numeric_settings import fix_precision
from tests.bench.gpu import rungs
from tests.bench.gpu.device import graphs
from tests.bench.gpu.rungs import LADDER
from tests.bench.gpu.workload import REHEARSAL, config_of, images_of
from tests.gpu.device import GPU, needs_gpu

fix_precision(os.environ)
pytestmark = needs_gpu
SIZE = replace(REHEARSAL, batch=50, limit=1010)


def _batches() -> Iterator[Batch]:
    config, (data, _) = config_of(SIZE, "digits"), images_of(SIZE, "digits")
    return rungs._endless(config, TrainingImages(data.train, data.info, config.data, 0, GPU))


def _weights(*, graphed: bool, steps: int) -> list[torch.Tensor]:
    """Return the weights after a number of steps; the first batch is used four times."""
    config, (data, _) = config_of(SIZE, "digits"), images_of(SIZE, "digits")
    network = SIZE.model.initialised(
        in_channels=2 * data.info.channels,
        num_classes=data.info.num_classes,
        image_size=data.info.image_size,
        seed=0,
    ).to(GPU)
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3, fused=True, capturable=True)

    def compute(batch: Batch) -> None:
        optimizer.zero_grad(set_to_none=True)
        logits = network(batch.mixed)
        loss = config.loss.per_image(logits, batch.labels, batch.partner_labels, batch.lam)
        loss.mean().backward()
        optimizer.step()

    rows = _batches()
    with kernels(deterministic=True):
        if graphed:
            step = rungs._graphed(compute, rows)
            torch.cuda.empty_cache()
            for _ in range(steps):
                step()
        else:
            first = next(rows)
            for _ in range(3):
                compute(first)
            for batch in islice(rows, steps):
                compute(batch)
    return [weight.detach().clone() for weight in network.parameters()]


def test_replayed_steps_give_the_bits_of_plain_steps() -> None:
    pairs = zip(_weights(graphed=True, steps=25), _weights(graphed=False, steps=25), strict=True)
    assert all(torch.equal(one, other) for one, other in pairs)


@pytest.mark.filterwarnings("ignore")
def test_every_graphed_rung_is_measured() -> None:
    found = graphs(SIZE, GPU)
    assert all(found[name] > 0 for name, rung in LADDER.items() if rung.graphed), found
