"""Processor: the CPUs and GPUs that this process may use, found without importing torch."""

import math
import os
import platform
import re
from collections.abc import Iterator
from pathlib import Path

_TOP = Path("/sys/fs/cgroup")
_OWN = Path("/proc/self/cgroup")
_QUOTAS = {1: ("cpu.cfs_quota_us", "cpu.cfs_period_us"), 2: ("cpu.max",)}
"""Files with the CPU quota and its period, by version of the control groups."""
_SLURM_GPUS = "SLURM_GPUS_ON_NODE"
_GPU_FILE = "/dev/nvidiactl"
"""Device file that each process which uses an NVIDIA GPU opens."""


def processor() -> str:
    """Return the model name of the CPU if Linux reports it, otherwise its architecture."""
    try:
        described = Path("/proc/cpuinfo").read_text()
    except OSError:
        return platform.machine()
    models = re.findall(r"^model name\s*: (.+)$", described, flags=re.MULTILINE)
    return models[0] if models else platform.machine()


def usable_cpus() -> int:
    """Return the number of CPUs that this process may use.

    CPU affinity, control groups and Slurm can each reduce the number.
    """
    if hasattr(os, "sched_getaffinity"):
        allowed = len(os.sched_getaffinity(0))
    else:
        allowed = os.cpu_count() or 1
    if slurm := _of_slurm("SLURM_CPUS_PER_TASK") or _of_slurm("SLURM_CPUS_ON_NODE"):
        allowed = min(allowed, slurm)
    return max(1, min([allowed, *map(math.floor, _quotas())]))


def sign_of_gpus() -> str | None:
    """Return a sign that this process may use a GPU, such as `SLURM_GPUS_ON_NODE=2`; None if none.

    CUDA is not asked, so the sign is there even if the driver or PyTorch does not work.
    """
    if gpus := _of_slurm(_SLURM_GPUS):
        return f"{_SLURM_GPUS}={gpus}"
    if os.environ.get("CUDA_VISIBLE_DEVICES") in {"", "-1"}:
        return None
    try:  # in a container or a job, the file may be there and refuse this process
        os.close(os.open(_GPU_FILE, os.O_RDWR))
    except OSError:
        return None
    return _GPU_FILE


def spell_lack_of_mps(share: float) -> str | None:
    """Return a warning if runs with this share of a GPU would share it without NVIDIA's MPS.

    Only this machine is checked, not the other nodes of a cluster.
    """
    folder = Path(os.environ.get("CUDA_MPS_PIPE_DIRECTORY") or "/tmp/nvidia-mps")  # noqa: S108
    if not 0 < share < 1 or sign_of_gpus() is None or (folder / "control").exists():
        return None
    return (
        "runs that share a GPU take turns on it without NVIDIA's MPS, which does not run on this "
        "machine: start `nvidia-cuda-mps-control -d` before Ray, or give each run a whole GPU"
    )


def gpu_slices() -> int | None:
    """Return the number of MIG slices (parts of a GPU) in CUDA_VISIBLE_DEVICES; None without any.

    Ray counts whole GPUs by itself, but not slices.
    """
    names = [name.strip() for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")]
    slices = [name for name in names if name.startswith("MIG-")]
    return len(slices) or None


def control_groups(controller: str) -> Iterator[tuple[int, list[Path]]]:
    """Yield the version (1 or 2) and the folders of the control groups that limit this process.

    There is one pair per hierarchy of groups; its folders go from the innermost to the outermost.
    """
    for line in text_of(_OWN).splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers and controller not in controllers.split(","):
            continue
        top = _TOP / controller if controllers else _TOP
        group = top / path.lstrip("/")
        places = [place for place in (group, *group.parents) if place.is_relative_to(top)]
        yield (1 if controllers else 2), places


def text_of(file: Path) -> str:
    """Return the text of a system file, such as one in /proc; empty if it cannot be read."""
    try:
        return file.read_text()
    except OSError:
        return ""


def _of_slurm(variable: str) -> int:
    """Return a number of CPUs or GPUs that Slurm has allocated on this node; 0 if it is not set."""
    number = os.environ.get(variable, "")
    return int(number) if number.isdecimal() else 0


def _quotas() -> Iterator[float]:
    """Yield the number of CPUs that each control group of this process allows, innermost first."""
    for version, places in control_groups("cpu"):
        for place in places:
            words = " ".join(text_of(place / file) for file in _QUOTAS[version]).split()
            if len(words) == 2 and all(word.isdecimal() for word in words) and int(words[1]):
                yield int(words[0]) / int(words[1])
