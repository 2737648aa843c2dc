"""`mixsweep bench gpu` without a GPU: all steps run, and the output calls it a rehearsal."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from click.testing import CliRunner

from mixsweep.cli.main import commands
from mixup_core.bench import device
from mixup_core.bench.device import PARTS
from mixup_core.bench.rungs import LADDER
from mixup_core.bench.workload import REHEARSAL
from mixup_core.images.choices.models import Mlp

pytestmark = pytest.mark.skipif(torch.cuda.is_available(), reason="takes ten minutes on a GPU")


def _rehearsed(folder: Path) -> dict[str, Any]:
    """Run the command, check what it says and its page, and return the figures."""
    done = CliRunner().invoke(commands, ["bench", "gpu", "--out", str(folder)])
    assert done.exit_code == 0, done.output
    assert "this machine has no GPU" in done.output
    page = (folder / "bench-gpu.md").read_text()
    assert "**REHEARSAL ON A CPU**" in page
    assert "| tf32, channels_last |" in page
    assert "| 35,000 |" in page, "predictions are beside the measurements"
    found: dict[str, Any] = json.loads((folder / "bench-gpu.json").read_text())
    assert found["rehearsal"]
    assert all("failed" not in found[part] for part in PARTS)
    assert all(f"## {part}\n" in page for part in PARTS)
    assert found["deterministic kernels"]["resumed with equal bits"]
    rates = found["ladder, images per second"] | found["CUDA graphs, images per second"]
    for name in device.LADDER:
        assert rates.get(name, 0) > 0 or "a CUDA graph needs a GPU" in rates[f"{name}: absent"]
    assert rates["+ fused Adam"] > 0
    assert rates["+ fused Adam, ERM"] > 0
    return found


@pytest.mark.long
def test_the_command_writes_every_part_and_marks_cpu_figures_as_a_rehearsal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A smaller size than users get, without the variants that compile for seconds."""
    tiny = replace(REHEARSAL, batch=20, steps=1, processes=(), limit=50, model=Mlp(hidden=(8,)))
    monkeypatch.setattr(device, "REHEARSAL", tiny)
    eager = {name: rung for name, rung in LADDER.items() if rung.compiled is None}
    assert 0 < len(eager) < len(LADDER)
    monkeypatch.setattr(device, "LADDER", eager)
    monkeypatch.setattr(device, "in_own_process", lambda part, *given: part(*given))
    _rehearsed(tmp_path)


@pytest.mark.long
@pytest.mark.timeout(600)
def test_bench_on_a_cpu_rehearses_the_steps_in_full_size(tmp_path: Path) -> None:
    found = _rehearsed(tmp_path)
    shared = found["runs side by side, images per second of all"]
    assert all(
        shared[f"{network} network, {k}"] > 0 for network in ("large", "small") for k in (1, 2)
    )
    errors = found["bfloat16 minus float32, test error"]
    assert all(0 < error < 0.8 for name in ("bfloat16", "float32") for error in errors[name])
    assert len(errors["by seed"]) == 2
