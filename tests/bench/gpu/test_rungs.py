"""Rungs: each step of the ladder changes only what it names."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from itertools import islice
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from mixup_core.images.batch import Batch
from mixup_core.images.choices.models import Mlp
from mixup_core.images.views import TrainingImages
from tests.bench.gpu import rungs
from tests.bench.gpu.rungs import LADDER, Rung, build
from tests.bench.gpu.workload import REHEARSAL, config_of, images_of

CPU = torch.device("cpu")
TINY = replace(REHEARSAL, batch=20, limit=50, model=Mlp(hidden=(8,)), small=Mlp(hidden=(4,)))


def test_rungs_of_the_ladder_are_distinct_and_cover_every_feature() -> None:
    assert len(set(LADDER.values())) == len(LADDER)
    assert {rung.precision for rung in LADDER.values()} == {"float32", "tf32", "bfloat16"}
    for feature in ("fused", "channels_last", "searched", "graphed", "mixes", "is_small"):
        assert {getattr(rung, feature) for rung in LADDER.values()} == {True, False}


def test_steps_use_only_whole_batches_and_reduce_the_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    losses: list[tuple[int, float]] = []
    loss = rungs._loss

    def noted(config: Any, network: Any, batch: Any) -> torch.Tensor:
        found = loss(config, network, batch)
        losses.append((len(batch), float(found.detach())))
        return found

    monkeypatch.setattr(rungs, "_loss", noted)
    step = build(Rung(precision="float32", mixes=False), TINY, CPU)
    for _ in range(40):
        step()
    assert {size for size, _ in losses} == {20}
    assert losses[-1][1] < losses[0][1]


@pytest.mark.parametrize("channels_last", [True, False])
def test_convolutions_see_images_in_the_layout_of_the_rung(
    monkeypatch: pytest.MonkeyPatch, channels_last: bool
) -> None:
    seen: list[tuple[bool, bool]] = []
    convolve = torch.nn.Conv2d.forward

    def noted(layer: torch.nn.Conv2d, images: torch.Tensor) -> torch.Tensor:
        weight = torch.channels_last if channels_last else torch.contiguous_format
        if min(images.shape[1:3]) > 1:  # of fewer, both layouts are one
            is_last = images.is_contiguous(memory_format=torch.channels_last)
            seen.append((is_last, layer.weight.is_contiguous(memory_format=weight)))
        return convolve(layer, images)

    monkeypatch.setattr(torch.nn.Conv2d, "forward", noted)
    build(Rung(channels_last=channels_last), replace(TINY, model=REHEARSAL.model), CPU)()
    assert len(seen) > 3
    assert set(seen) == {(channels_last, True)}


def test_a_cuda_graph_is_refused_on_a_cpu() -> None:
    with pytest.raises(RuntimeError, match=r"a CUDA graph needs a GPU, got \(device=cpu\)"):
        build(Rung(without_graph="+ fused Adam"), TINY, CPU)


class _Graph:
    """A CUDA graph without CUDA: a replay runs the captured computation again."""

    captured: Any = None

    def replay(self) -> None:
        self.captured()


def test_each_replay_of_a_cuda_graph_computes_the_next_batch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[list[float]] = []

    def compute(batch: Batch) -> None:
        if capturing:
            capturing[0].captured = lambda: compute(batch)
            return
        tensors = (batch.mixed, batch.labels, batch.partner_labels, batch.lam)
        seen.append([float(tensor.double().sum()) for tensor in tensors])

    capturing: list[_Graph] = []

    @contextmanager
    def capture(graph: _Graph) -> Iterator[None]:
        capturing.append(graph)
        yield
        capturing.clear()

    stream = SimpleNamespace(wait_stream=lambda other: None)
    for name, value in {
        "Stream": lambda: stream,
        "current_stream": lambda: stream,
        "stream": nullcontext,
        "CUDAGraph": _Graph,
        "graph": capture,
    }.items():
        monkeypatch.setattr(torch.cuda, name, value)
    step = rungs._graphed(compute, _batches())
    before = len(seen)
    assert seen == seen[:1] * before, "it warms up on the first batch"
    for _ in range(3):
        step()
    replayed = seen[before:]
    for batch in islice(_batches(), 1, 4):
        compute(batch)
    assert replayed == seen[before + 3 :]
    assert len(replayed) == 3


def _batches() -> Iterator[Batch]:
    config, (data, _) = config_of(TINY, "digits"), images_of(TINY, "digits")
    return rungs._endless(config, TrainingImages(data.train, data.info, config.data, 0, CPU))
