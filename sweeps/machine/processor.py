"""Processor: the name of the CPU, and the number of CPUs for this process, without torch."""

import math
import os
import platform
import re
from collections.abc import Iterator
from pathlib import Path

from sweeps.machine.control_groups import control_groups, text_of

_QUOTAS = {1: ("cpu.cfs_quota_us", "cpu.cfs_period_us"), 2: ("cpu.max",)}
"""Version of the control groups to the files with quota and period."""


def processor() -> str:
    """Return the model of the CPU if Linux reports it, otherwise its architecture."""
    try:
        described = Path("/proc/cpuinfo").read_text()
    except OSError:
        return platform.machine()
    models = re.findall(r"^model name\s*: (.+)$", described, flags=re.MULTILINE)
    return models[0] if models else platform.machine()


def usable_cpus() -> int:
    """Return the number of CPUs that affinity, control groups and Slurm allow this process."""
    if hasattr(os, "sched_getaffinity"):
        allowed = len(os.sched_getaffinity(0))
    else:
        allowed = os.cpu_count() or 1
    slurm = os.environ.get("SLURM_CPUS_PER_TASK", "")
    if slurm.isdecimal() and int(slurm) > 0:
        allowed = min(allowed, int(slurm))
    return max(1, min([allowed, *map(math.floor, _quotas())]))


def gpu_slices() -> int | None:
    """Return the number of MIG slices in CUDA_VISIBLE_DEVICES; None if there are none.

    Ray itself detects whole GPUs, but no slices.
    """
    names = [name.strip() for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")]
    slices = [name for name in names if name.startswith("MIG-")]
    return len(slices) or None


def _quotas() -> Iterator[float]:
    """Yield the number of CPUs that each control group of this process allows, outermost last."""
    for version, places in control_groups("cpu"):
        for place in places:
            words = " ".join(text_of(place / file) for file in _QUOTAS[version]).split()
            if len(words) == 2 and all(word.isdecimal() for word in words) and int(words[1]):
                yield int(words[0]) / int(words[1])
