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
MEASURED = RunMemory(per_run=2 * GB, is_measured=True)


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


def test_other_errors_of_the_measured_step_are_ignored(
    digits: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subprocess, "Popen", ends(1, "ValueError: no such file"))
    monkeypatch.setattr(run_memory, "free_bytes", lambda: GB)
    assert RunMemory.of(digits, 4, "cpu") is None


@pytest.mark.parametrize(
    ("gigabytes", "share"), [(1, 1 / 8), (9, 1 / 8), (10, 1 / 4), (30, 1 / 2), (60, 1), (100, 1)]
)
def test_the_gpu_share_covers_the_memory_of_a_run(gigabytes: int, share: float) -> None:
    found = RunMemory(per_run=gigabytes * GB, is_measured=True, device="cuda", total=80 * GB)
    assert found.share(1 / 8) == share
    assert found.placed(Placement().auto()).gpus_per_run == share
    assert found.placed(Placement(gpus_per_run=1)) == Placement(gpus_per_run=1)


def test_memory_of_a_gpu_does_not_limit_slots_on_cpus(digits: Study) -> None:
    on_gpu = RunMemory(per_run=GB, is_measured=True, device="cuda", total=80 * GB)
    assert on_gpu.side_by_side(digits) is None
    assert (
        "1.0 GB per run, measured, of 80.0 GB on a GPU; --gpus-per-run 0.125 fits"
        in on_gpu.says(digits)
    )


def test_a_slow_measured_step_is_stopped_and_its_memory_is_a_lower_bound(
    digits: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_memory, "free_bytes", lambda: GB)
    monkeypatch.setattr(run_memory, "_PATIENCE", 1.0)
    real, sleeps = subprocess.Popen, "import time; time.sleep(60)"
    monkeypatch.setattr(
        subprocess, "Popen", lambda _, **given: real([sys.executable, "-c", sleeps], **given)
    )
    for _ in range(2):  # it is not kept: another time may be enough
        found = RunMemory.of(digits, 4, "cpu")
        assert found is not None
        assert found.is_least
        assert 10**6 < found.per_run < 10**8
        assert "at least 0.0 GB per run, held by a training step after 1 s" in found.says(digits)


def test_a_warning_is_shown_if_a_run_takes_more_than_the_free_memory(
    digits: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_memory, "free_bytes", lambda: GB)
    said = RunMemory(per_run=2 * GB, is_measured=True, device="cpu").says(digits)
    assert said.startswith("WARNING, a run takes 2.0 GB, measured in a training step, and only ")
    assert "reduce batch_size" in said
    assert "at a time" not in said


def test_at_least_one_slot_is_used_despite_too_little_memory(
    digits: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_memory, "free_bytes", lambda: GB)
    assert MEASURED.side_by_side(digits) == 1


@pytest.mark.parametrize(
    ("memory", "free", "warns"),
    [
        (MEASURED, 1, True),
        (MEASURED, 3, False),
        (RunMemory(per_run=2 * GB, is_measured=False), 1, False),
        (RunMemory(per_run=2 * GB, is_measured=True, device="cuda", total=80 * GB), 1, False),
    ],
)
def test_a_launch_warns_where_a_run_takes_more_memory_than_is_free(
    memory: RunMemory, free: int, warns: bool, digits: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_memory, "free_bytes", lambda: free * GB)
    assert bool(memory.warning(digits)) == warns
    assert memory.warning(digits) in {"", memory.says(digits)}


def test_memory_is_measured_separately_for_each_address_space_limit(
    digits: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_memory, "free_bytes", lambda: 100 * GB)
    measured: list[int] = []

    def measure(*_: object) -> RunMemory:
        measured.append(1)
        return MEASURED

    monkeypatch.setattr(RunMemory, "_measured", measure)
    for limit, number in ((9 * GB, 1), (9 * GB, 1), (7 * GB, 2), (None, 2)):
        monkeypatch.setattr(run_memory, "limited_bytes", lambda limit=limit: limit)
        RunMemory.of(digits, 1, "cpu")
        assert len(measured) == number
