"""Resources: the CPUs, GPUs and memory that this process may use, found without importing torch."""

import math
import os
import platform
import re
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path

import psutil

from mixup_core.faults import fault_of
from mixup_core.rules import first_line

_TOP = Path("/sys/fs/cgroup")
_OWN = Path("/proc/self/cgroup")
_QUOTAS = {1: ("cpu.cfs_quota_us", "cpu.cfs_period_us"), 2: ("cpu.max",)}
"""Files with the CPU quota and its period, by version of the control groups."""
_SLURM_GPUS = "SLURM_GPUS_ON_NODE"
_GPU_FILE = "/dev/nvidiactl"
"""Device file that each process which uses an NVIDIA GPU opens."""
_GPU_NAME = re.compile(r"[0-9]+|(GPU|MIG)-.+")
"""Names of GPUs, and of slices of GPUs, that CUDA accepts."""


def processor() -> str:
    """Return the model name of the CPU if Linux reports it, otherwise its architecture."""
    try:
        described = Path("/proc/cpuinfo").read_text()
    except OSError:
        return platform.machine()
    models = re.findall(r"^model name\s*: (.+)$", described, flags=re.MULTILINE)
    return models[0] if models else platform.machine()


def usable_cpus() -> int:
    """Return the CPUs that affinity, control groups and Slurm let this process use."""
    if hasattr(os, "sched_getaffinity"):
        allowed = len(os.sched_getaffinity(0))
    else:
        allowed = os.cpu_count() or 1
    if slurm := _of_slurm("SLURM_CPUS_PER_TASK") or _of_slurm("SLURM_CPUS_ON_NODE"):
        allowed = min(allowed, slurm)
    return max(1, min([allowed, *map(math.floor, _quotas())]))


def sign_of_gpus() -> str | None:
    """Return a sign that this process may use a GPU, such as `SLURM_GPUS_ON_NODE=2`; None if none.

    CUDA is not called, so a sign is found even if the driver or PyTorch does not work.
    """
    if _visible_gpus() == []:
        return None
    if gpus := _of_slurm(_SLURM_GPUS):
        return f"{_SLURM_GPUS}={gpus}"
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
    return sum(name.startswith("MIG-") for name in _visible_gpus() or ()) or None


def _visible_gpus() -> list[str] | None:
    """Return the names in CUDA_VISIBLE_DEVICES up to the first invalid one, at which CUDA stops.

    None if the variable is not set; all GPUs are visible then. Slurm writes `NoDevFiles` for a job
    without a GPU, users write nothing, `-1` or `none`.
    """
    names = os.environ.get("CUDA_VISIBLE_DEVICES")
    if names is None:
        return None
    return [*takewhile(_GPU_NAME.fullmatch, map(str.strip, names.split(",")))]


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
    return int(number) if re.fullmatch("[0-9]{1,9}", number) else 0


def _quotas() -> Iterator[float]:
    """Yield the number of CPUs that each control group of this process allows, innermost first."""
    for version, places in control_groups("cpu"):
        for place in places:
            words = " ".join(text_of(place / file) for file in _QUOTAS[version]).split()
            if len(words) == 2 and all(word.isdecimal() for word in words) and int(words[1]):
                yield int(words[0]) / int(words[1])


_FILES = {
    1: ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
    2: ("memory.max", "memory.current", "inactive_file"),
}
"""Files of a control group with its memory limit and its used memory, and the name that the
reclaimable memory has in `memory.stat`; by version of the control groups (1 or 2)."""
THRESHOLD = "RAY_memory_usage_threshold"
THRESHOLD_FORM = r"1(\.0+)?|0?\.(?=[0-9]*[1-9])[0-9]{1,18}"
"""Pattern of valid values of `THRESHOLD`: above 0, and at most 1. Others are ignored."""
_USUAL_THRESHOLD = 0.95
"""Ray's default for `RAY_memory_usage_threshold`: if a larger fraction of the memory is used, Ray
kills runs."""


def free_bytes() -> int:
    """Return the memory, in bytes, that this process and its children can still use.

    It is limited by the machine, by control groups (of containers and jobs) and by Ray, which kills
    runs once more than 95 % are used.
    """
    pairs = [memory_of_machine(), *_groups()]
    threshold = _memory_threshold()
    return max(0, min(int(limit * threshold) - used for limit, used in pairs))


def _memory_threshold() -> float:
    """Return the fraction of the memory above which Ray kills runs."""
    text = os.environ.get(THRESHOLD, "")
    return float(text) if re.fullmatch(THRESHOLD_FORM, text) else _USUAL_THRESHOLD


def memory_of_machine() -> tuple[int, int]:
    """Return the memory of the machine and the part in use, in bytes; does not need `/proc`."""
    try:
        memory = psutil.virtual_memory()
    except OSError:
        page = os.sysconf("SC_PAGE_SIZE")
        total, free = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_AVPHYS_PAGES")
        return total * page, (total - free) * page
    return memory.total, memory.total - memory.available


def _groups() -> Iterator[tuple[int, int]]:
    """Yield limit and used memory, in bytes, of each control group with a limit, innermost first.

    Reclaimable memory does not count as used.
    """
    for version, places in control_groups("memory"):
        limit, current, inactive = _FILES[version]
        for place in places:
            allowed, used = text_of(place / limit).strip(), text_of(place / current).strip()
            if allowed.isdecimal() and used.isdecimal():
                lines = text_of(place / "memory.stat").splitlines()
                statistics = dict(line.split() for line in lines if line)
                yield int(allowed), int(used) - int(statistics.get(inactive, 0))


_RAY_NEEDS = 8 * 10**9
"""Address space, in bytes, that each process of Ray needs. With 6 GB, workers that have imported
torch fail; with 8 GB, they train."""


def limited_bytes() -> int | None:
    """Return the limit on the address space of this process, in bytes; None without a limit."""
    try:
        import resource
    except ImportError:  # no POSIX system
        return None
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    return None if limit == resource.RLIM_INFINITY else limit


def spell_limit() -> str:
    """Return a sentence about the address space limit and how to remove it; "" without a limit."""
    limit = limited_bytes()
    if limit is None:
        return ""
    return (
        f"the address space of each process is limited to {limit / 1e9:.1f} GB (ulimit -v "
        f"{limit // 1024}): start from a shell or job without this limit"
    )


def too_small_for_ray() -> str | None:
    """Return a message if the limit on the address space is too low for Ray; None if it is not."""
    limit = limited_bytes()
    if limit is None or limit >= _RAY_NEEDS:
        return None
    return (
        f"each process of Ray needs {_RAY_NEEDS / 1e9:.0f} GB of address space, but "
        f"{spell_limit()}, or train with --engine inline, which needs less"
    )


def spell_lack_of_memory(error: BaseException) -> str | None:
    """Return a message for an error caused by a lack of memory; None for any other error."""
    cause: BaseException | None = error
    while cause is not None and not _is_of_memory(cause):
        cause = cause.__cause__ or cause.__context__
    if cause is None:
        return None
    reason = first_line(cause)
    advice = spell_limit() or "end other programs, or use a machine with more memory"
    return f"this process lacks memory ({reason}); stored results are kept; {advice}"


def _is_of_memory(error: BaseException) -> bool:
    return fault_of(str(error) if isinstance(error, ImportError) else error) == "memory"
