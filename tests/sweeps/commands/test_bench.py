"""`mixsweep bench gpu` without a GPU: all steps run, and the output calls it a rehearsal."""

import json
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner

from mixup_core.bench.device import PARTS
from mixup_core.bench.rungs import LADDER
from sweeps.cli import commands


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.skipif(torch.cuda.is_available(), reason="takes ten minutes on a GPU")
def test_without_a_gpu_the_steps_are_rehearsed_and_no_figure_is_passed_for_a_gpus(
    tmp_path: Path,
) -> None:
    done = CliRunner().invoke(commands, ["bench", "gpu", "--out", str(tmp_path)])
    assert done.exit_code == 0, done.output
    assert "this machine has no GPU" in done.output
    page = (tmp_path / "bench-gpu.md").read_text()
    assert "**REHEARSAL ON A CPU**" in page
    assert "| tf32, channels_last |" in page
    assert "| 35,000 |" in page, "predictions are beside the measurements"
    found = json.loads((tmp_path / "bench-gpu.json").read_text())
    assert found["rehearsal"]
    assert all("failed" not in found[part] for part in PARTS)
    assert all(f"## {part}\n" in page for part in PARTS)
    assert found["deterministic kernels"]["resumed with equal bits"]
    rates = found["ladder, images per second"]
    for name in LADDER:
        assert rates.get(name, 0) > 0 or "a CUDA graph needs a GPU" in rates[f"{name}: absent"]
    assert rates["+ fused Adam"] > 0
    assert rates["+ fused Adam, ERM"] > 0
    shared = found["runs side by side, images per second of all"]
    assert all(
        shared[f"{network} network, {k}"] > 0 for network in ("large", "small") for k in (1, 2)
    )
    errors = found["bfloat16 minus float32, test error"]
    assert all(0 < error < 0.8 for name in ("bfloat16", "float32") for error in errors[name])
    assert len(errors["by seed"]) == 2
