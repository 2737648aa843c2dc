"""Resources: affinity, control groups, Slurm and limits each reduce what a process may use."""

import os
import resource
from pathlib import Path

import pytest

from sweeps.machine import resources as machine
from sweeps.machine.resources import (
    free_bytes,
    gpu_slices,
    sign_of_gpus,
    spell_lack_of_memory,
    too_small_for_ray,
    usable_cpus,
)
from sweeps.running.retries import advice


@pytest.mark.parametrize(
    ("slurm", "quotas", "cpus"),
    [
        ("", [], 9),
        ("", [2.5], 2),
        ("", [0.5], 1),
        ("", [16.0, 3.0], 3),
        ("4", [], 4),
        ("64", [], 12),
        ("no", [], 9),
    ],
)
def test_usable_cpus_are_the_minimum_of_affinity_cgroups_and_slurm(
    monkeypatch: pytest.MonkeyPatch, slurm: str, quotas: list[float], cpus: int
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(12)))
    monkeypatch.setattr(machine, "_quotas", lambda: iter(quotas))
    monkeypatch.setenv("SLURM_CPUS_PER_TASK", slurm)
    monkeypatch.setenv("SLURM_CPUS_ON_NODE", "9")
    assert usable_cpus() == cpus


@pytest.mark.parametrize(
    ("membership", "files", "quotas"),
    [
        ("0::/a/b\n", {"a/b/cpu.max": "max 100000\n", "a/cpu.max": "250000 100000\n"}, [2.5]),
        (
            "4:cpu,cpuacct:/job\n0::/\n",
            {"cpu/job/cpu.cfs_quota_us": "150000\n", "cpu/job/cpu.cfs_period_us": "100000\n"},
            [1.5],
        ),
        ("4:cpu:/\n", {"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, []),
        ("", {}, []),
    ],
)
def test_quotas_are_read_from_both_versions_of_control_groups(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    membership: str,
    files: dict[str, str],
    quotas: list[float],
) -> None:
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content)
    (tmp_path / "own").write_text(membership)
    monkeypatch.setattr(machine, "_TOP", tmp_path)
    monkeypatch.setattr(machine, "_OWN", tmp_path / "own")
    assert list(machine._quotas()) == quotas


@pytest.mark.parametrize(
    ("slurm", "visible", "file", "sign"),
    [
        ("2", None, "", "SLURM_GPUS_ON_NODE=2"),
        ("0", None, "nvidiactl", "nvidiactl"),
        (None, "0,1", "nvidiactl", "nvidiactl"),
        (None, "", "nvidiactl", None),
        (None, "-1", "nvidiactl", None),
        (None, "NoDevFiles", "nvidiactl", None),
        (None, "none", "nvidiactl", None),
        (None, "-1,0", "nvidiactl", None),
        (None, "GPU-8932f937", "nvidiactl", "nvidiactl"),
        (None, "MIG-GPU-8932f937/1/0", "nvidiactl", "nvidiactl"),
        ("2", "", "nvidiactl", None),
        ("2", "NoDevFiles", "", None),
        ("2", "0,1", "", "SLURM_GPUS_ON_NODE=2"),
        ("9" * 5000, None, "", None),
        (None, None, "", None),
    ],
)
def test_the_sign_of_a_gpu_is_an_allocation_or_a_device_file_that_is_not_hidden(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    slurm: str | None,
    visible: str | None,
    file: str,
    sign: str | None,
) -> None:
    for variable, value in (("SLURM_GPUS_ON_NODE", slurm), ("CUDA_VISIBLE_DEVICES", visible)):
        monkeypatch.delenv(variable, raising=False)
        if value is not None:
            monkeypatch.setenv(variable, value)
    (tmp_path / "nvidiactl").touch()
    monkeypatch.setattr(machine, "_GPU_FILE", str(tmp_path / file))
    found = sign_of_gpus()
    assert found == (str(tmp_path / sign) if sign == "nvidiactl" else sign)


GB = 10**9


@pytest.fixture
def groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the root of control groups (version 2), with this process in `jobs/7`."""
    monkeypatch.setattr(machine, "_TOP", tmp_path)
    monkeypatch.setattr(machine, "_OWN", tmp_path / "own")
    (tmp_path / "own").write_text("0::/jobs/7\n")
    monkeypatch.delenv("RAY_memory_usage_threshold", raising=False)
    (tmp_path / "jobs" / "7").mkdir(parents=True)
    return tmp_path


@pytest.mark.parametrize("place", ["jobs", "jobs/7"])
def test_the_limit_of_each_parent_cgroup_counts_without_reclaimable_memory(
    place: str, groups: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for group in ("jobs", "jobs/7"):
        (groups / group / "memory.max").write_text("max\n")
    (groups / place / "memory.max").write_text(f"{GB}\n")
    (groups / place / "memory.current").write_text(f"{6 * GB // 10}\n")
    (groups / place / "memory.stat").write_text(f"anon 1\ninactive_file {2 * GB // 10}\n")
    monkeypatch.setattr("sweeps.machine.resources.memory_of_machine", lambda: (99 * GB, 0))
    assert free_bytes() == 95 * GB // 100 - 4 * GB // 10
    monkeypatch.setenv("RAY_memory_usage_threshold", "0.5")
    assert free_bytes() == GB // 10
    monkeypatch.setenv("RAY_memory_usage_threshold", "0.1")
    assert free_bytes() == 0
    for invalid in ("nan", "inf", "-inf", "0", "-1", "1.5", "1e400", "half", ""):
        monkeypatch.setenv("RAY_memory_usage_threshold", invalid)
        assert free_bytes() == 95 * GB // 100 - 4 * GB // 10, invalid
    monkeypatch.setenv("RAY_memory_usage_threshold", "1")
    assert free_bytes() == 6 * GB // 10


@pytest.mark.parametrize(
    ("visible", "slices"),
    [(None, None), ("", None), ("0,1", None), ("MIG-a,MIG-b", 2), ("MIG-a,none,MIG-b", 1)],
)
def test_mig_slices_are_counted_up_to_the_first_name_that_cuda_refuses(
    monkeypatch: pytest.MonkeyPatch, visible: str | None, slices: int | None
) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert gpu_slices() == slices


LIMIT = 4_000_000 * 1024
UNMAPPED = "libtorch_cpu.so: failed to map segment from shared object"


ADVICE = (
    "the address space of each process is limited to 4.1 GB (ulimit -v 4000000): start from a "
    "shell or job without this limit"
)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (MemoryError(), "MemoryError"),
        (ImportError(UNMAPPED), UNMAPPED),
        (OSError(12, "Cannot allocate memory"), "[Errno 12] Cannot allocate memory"),
    ],
)
def test_a_failed_allocation_is_explained_by_the_limit_on_the_address_space(
    monkeypatch: pytest.MonkeyPatch, error: Exception, reason: str
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (LIMIT, LIMIT))
    outer = RuntimeError("a library failed")
    outer.__cause__ = error
    message = spell_lack_of_memory(outer)
    assert message == f"this process lacks memory ({reason}); stored results are kept; {ADVICE}"
    assert advice().startswith(f"{ADVICE}; or reduce batch_size")
    assert f"{ADVICE}, or train with --engine inline" in (too_small_for_ray() or "")
