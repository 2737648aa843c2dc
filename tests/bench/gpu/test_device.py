"""Device: every part of the GPU bench, in a size that a CPU can run."""

import json
from dataclasses import replace

import pytest
import torch

from mixup_core.images.choices.models import Mlp
from tests.bench.gpu import device as bench
from tests.bench.gpu.device import Figures
from tests.bench.gpu.rungs import LADDER
from tests.bench.gpu.workload import REHEARSAL

pytestmark = [pytest.mark.long]

TINY = replace(
    REHEARSAL, batch=20, steps=1, matrix=16, seeds=3, processes=(), limit=50,
    model=Mlp(hidden=(8,)), small=Mlp(hidden=(4,)),
)  # fmt: skip


@pytest.fixture(autouse=True)
def _no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(bench, "REHEARSAL", TINY)
    monkeypatch.setattr(bench.os, "environ", dict(bench.os.environ))


def test_measure_runs_every_part_and_writes_the_figures_after_each() -> None:
    written: list[Figures] = []
    found = bench.measure(lambda so_far: written.append(dict(so_far)))
    head = ["rehearsal", "batch", "blocks", "steps of a block", "images", "made_with"]
    parts = list(bench.PARTS)
    assert list(found) == head + parts
    assert (found["rehearsal"], found["batch"]) == (True, 20)
    assert [list(part) for part in written] == [
        head + parts[:number] for number in range(1, len(parts) + 1)
    ]
    assert all(found[part]["took seconds"] >= 0 and "failed" not in found[part] for part in parts)
    assert json.loads(json.dumps(found)) == found
    assert found["deterministic kernels"]["resumed with equal bits"] is True
    assert all(found["ladder, images per second"][name] > 0 for name in LADDER)
