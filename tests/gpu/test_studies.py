"""Whole studies on a real GPU by the command line, with the inline engine and no Ray."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import torch

from mixup_core.store.checkpoints import Store
from sweeps.reading.study_file import load_study
from sweeps.state.results import read_results
from tests.gpu.device import GPU, needs_gpu

pytestmark = needs_gpu

STUDY = """\
study: on-gpu
description: Three laws on digits.
base:
  data: {name: digits}
  model: {name: narrow-resnet}
  epochs: 12
  batch_size: 32
  deterministic: true
arms:
  erm: {mix.law: erm}
  uniform: {mix.law: {beta: 1.0}}
  stopped:
    mix.schedule: {phases: [{law: {beta: 1.0}, until: 6}, erm]}
seeds: 2
baseline: erm
"""


WIDE = "  wide: {mix.law: erm, model: {name: narrow-resnet, width: 512}}\n"
"""An arm whose weights and optimizer state take more than a gigabyte."""


def _start(folder: Path, study: str = STUDY, **variables: str) -> "subprocess.Popen[str]":
    folder.mkdir(exist_ok=True)
    (folder / "on-gpu.yaml").write_text(study)
    run = [sys.executable, "-m", "mixsweep", "run", str(folder / "on-gpu.yaml")]
    return subprocess.Popen(
        [*run, "--engine", "inline", "--home", str(folder / "home")], text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env={**os.environ, **variables},
    )  # fmt: skip


def _run(folder: Path, study: str = STUDY, *, code: int = 0, **variables: str) -> str:
    launch = _start(folder, study, **variables)
    said, _ = launch.communicate()
    assert launch.returncode == code, said
    return said


def _metrics(folder: Path) -> dict[tuple[str, int], list[dict[str, float]]]:
    study = load_study(str(folder / "on-gpu.yaml"))
    results = read_results(study.runs(), Store(str(folder / "home" / "store")))
    ended = [result for result in results if result.outcome == "complete"]
    assert len(ended) == 6
    return {
        (result.run.arm, result.run.seed): [dict(record.metrics) for record in result.records]
        for result in ended
    }


def _environments(folder: Path) -> list[dict[str, Any]]:
    stages = (folder / "home" / "store" / "stages").rglob("*.json")
    return [json.loads(file.read_text())["environment"] for file in stages]


def test_a_study_ends_on_the_gpu_and_the_same_command_trains_nothing(tmp_path: Path) -> None:
    _run(tmp_path)
    _metrics(tmp_path)
    for environment in _environments(tmp_path):
        assert environment["device"] == torch.cuda.get_device_name(GPU)
        assert environment["cuda"] == torch.version.cuda
        assert environment["cudnn"].isdigit()
        assert re.fullmatch(r"\d+\.[\d.]+", environment["gpu_driver"])
        assert environment["gpu_allowed"] == "deterministic"
    stages = (tmp_path / "home" / "store" / "stages").rglob("*.json")
    files = {file: file.stat().st_mtime_ns for file in stages}
    _run(tmp_path)
    assert {file: file.stat().st_mtime_ns for file in files} == files


def test_a_study_killed_three_times_on_the_gpu_ends_with_equal_records(tmp_path: Path) -> None:
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    _run(whole)
    for stages in (2, 4, 6):
        launch = _start(killed)
        until = time.monotonic() + 60
        store = killed / "home" / "store" / "stages"
        while len(list(store.rglob("*.json"))) < stages and launch.poll() is None:
            assert time.monotonic() < until
            time.sleep(0.02)
        launch.send_signal(signal.SIGKILL)
        launch.communicate()
    _run(killed)
    assert _metrics(killed) == _metrics(whole)


def test_a_run_that_needs_more_memory_than_the_gpu_has_fails_alone(tmp_path: Path) -> None:
    """The limit stands for a smaller GPU: PyTorch reads it when the process first allocates."""
    limit = {"PYTORCH_CUDA_ALLOC_CONF": "per_process_memory_fraction:0.002"}
    said = _run(tmp_path, STUDY.replace("arms:\n", f"arms:\n{WIDE}"), code=1, **limit)
    assert "memory" in said
    assert "Traceback" not in said
    _metrics(tmp_path)
