"""`mixsweep bench gpu` where there is no GPU: every step runs, and it says what that is worth."""

import json
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner

from sweeps.cli import commands


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.skipif(torch.cuda.is_available(), reason="takes ten minutes on a GPU")
def test_without_a_gpu_the_steps_are_rehearsed_and_no_figure_is_passed_for_a_gpus(
    tmp_path: Path,
) -> None:
    done = CliRunner().invoke(commands, ["bench", "gpu", "--out", str(tmp_path)])
    assert done.exit_code == 0, done.output
    assert "no GPU here" in done.output
    assert "REHEARSAL" in (tmp_path / "table.md").read_text()
    found = json.loads((tmp_path / "device.json").read_text())
    assert found["rehearsal"]
    assert found["deterministic kernels"]["resumed with equal bits"]
    rates = found["ladder, images per second"]
    assert rates["bfloat16, fused Adam"] > 0
    assert "CUDA graph: absent" in " ".join(rates)
    assert len(found["bfloat16 minus float32, test error"]["by seed"]) == 2
