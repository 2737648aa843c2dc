import os
from pathlib import Path

import pytest

from sweeps.machine import processor as machine
from sweeps.machine.processor import (
    sign_of_gpus,
    usable_cpus,
)


def test_usable_cpus_follow_the_cpu_affinity(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "_quotas", lambda: iter(()))
    for variable in ("SLURM_CPUS_PER_TASK", "SLURM_CPUS_ON_NODE"):
        monkeypatch.delenv(variable, raising=False)
    assert usable_cpus() == len(os.sched_getaffinity(0))
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(12)))
    assert usable_cpus() == 12


@pytest.mark.parametrize(
    ("slurm", "quotas", "cpus"),
    [
        ("", [2.5], 2),
        ("", [0.5], 1),
        ("", [16.0, 3.0], 3),
        ("4", [], 4),
        ("64", [], 12),
        ("no", [], 12),
    ],
)
def test_usable_cpus_are_the_minimum_of_affinity_cgroups_and_slurm(
    monkeypatch: pytest.MonkeyPatch, slurm: str, quotas: list[float], cpus: int
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(12)))
    monkeypatch.setattr(machine, "_quotas", lambda: iter(quotas))
    monkeypatch.setenv("SLURM_CPUS_PER_TASK", slurm)
    monkeypatch.setenv("SLURM_CPUS_ON_NODE", "9")
    assert usable_cpus() == min(cpus, 9) if slurm in {"", "no"} else cpus


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
