"""RunMemory: measured if it matters, cached, and used for slots and GPU fractions."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sweeps.reading.study_file import load_study
from sweeps.running import run_memory
from sweeps.running.placement import Placement, PlacementError
from sweeps.running.run_memory import RunMemory
from sweeps.study.study import Study

GB = 10**9


@pytest.fixture
def digits(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Study:
    monkeypatch.setenv("MIXSWEEP_DATA", str(tmp_path))
    return load_study("digits")


def ends(code: int, err: str) -> Any:
    """Return a function that replaces a process by one with a given exit code and output."""
    script = "import os,sys;sys.stderr.write(sys.argv[1]);sys.stderr.flush();c=int(sys.argv[2]);"
    script += "os.kill(os.getpid(),-c) if c<0 else sys.exit(c)"
    real = subprocess.Popen
    return lambda _, **given: real([sys.executable, "-c", script, err, str(code)], **given)


def never(*_: object, **__: object) -> None:
    raise AssertionError("a step was measured")


def test_memory_is_not_measured_if_every_slot_has_enough_memory(
    digits: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subprocess, "Popen", never)
    monkeypatch.setattr(run_memory, "free_bytes", lambda: 100 * GB)
    found = RunMemory.of(digits, 2, "cpu")
    assert found is not None
    assert not found.is_measured
    assert found.placed(Placement()) == Placement()
    assert "at most 1.5 GB" in found.says(digits)


def test_a_training_step_is_measured_once_and_limits_the_slots(
    digits: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_memory, "free_bytes", lambda: 3 * GB)
    found = RunMemory.of(digits, 4, "cpu")
    assert found is not None
    assert found.is_measured
    assert 10**8 < found.per_run < 1.5 * GB
    assert found.side_by_side(digits) == int(3 * GB - 115_008) // int(found.per_run * 1.1)
    assert found.placed(Placement()).memory_per_run == int(found.per_run * 1.1)
    monkeypatch.setattr(subprocess, "Popen", never)
    assert RunMemory.of(digits, 4, "cpu") == found


@pytest.mark.parametrize(
    ("code", "err", "reason"),
    [
        (-9, "", "the system killed the process"),
        (1, "RuntimeError: [enforce fail] can't allocate memory", "can't allocate memory"),
        (1, "MemoryError", "MemoryError"),
        (1, "ImportError: x.so: failed to map segment from shared object", "failed to map"),
    ],
)
def test_a_step_that_lacks_memory_is_reported_with_advice(
    code: int, err: str, reason: str, digits: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subprocess, "Popen", ends(code, err))
    monkeypatch.setattr(run_memory, "free_bytes", lambda: GB)
    found = RunMemory.of(digits, 4, "cpu")
    assert found is not None
    assert reason in found.says(digits)
    arm = found.fault.partition(": ")[0]
    assert arm in digits.arms
    assert "reduce batch_size" in found.says(digits)
    with pytest.raises(PlacementError, match="lacks memory even if it trains alone"):
        found.placed(Placement())


@pytest.mark.parametrize(
    ("gigabytes", "share"), [(1, 1 / 8), (9, 1 / 8), (10, 1 / 4), (30, 1 / 2), (60, 1), (100, 1)]
)
def test_the_gpu_share_covers_the_memory_of_a_run(gigabytes: int, share: float) -> None:
    found = RunMemory(per_run=gigabytes * GB, is_measured=True, device="cuda", total=80 * GB)
    assert found.share(1 / 8) == share
    assert found.placed(Placement().auto()).gpus_per_run == share
    assert found.placed(Placement(gpus_per_run=1)) == Placement(gpus_per_run=1)
