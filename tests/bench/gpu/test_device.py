"""Device: every part of the GPU bench, in the size of its rehearsal on a CPU."""

import pytest
import torch

from tests.bench.gpu import device as bench
from tests.bench.gpu.rungs import LADDER


@pytest.mark.long
def test_measure_runs_every_part_and_writes_the_figures_after_each(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    monkeypatch.setattr(bench.os, "environ", dict(bench.os.environ))
    written: list[list[str]] = []
    found = bench.measure(lambda so_far: written.append(list(so_far)))
    parts = list(bench.PARTS)
    assert [names[-1] for names in written] == list(found)[-len(parts) :] == parts
    failed = {part: found[part] for part in parts if "failed" in found[part]}
    assert not failed
    assert found["rehearsal"]
    assert all(found["ladder, images per second"][name] > 0 for name in LADDER)
