"""Numeric settings of a training process: those that can change the last bits, and its memory.

NumPy, SciPy (OpenBLAS) and torch (oneDNN, MKL, OpenMP, ATen, cuBLAS, cuDNN) read variables of the
environment. mixsweep sets those that choose a precision, because a run's precision is part of its
configuration, one that makes cuBLAS deterministic, and those of the number of threads. The others
are recorded with every stage: they can be needed to reproduce exact bits on another processor.
"""

import ctypes
import re
from collections.abc import Mapping, MutableMapping
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

# Frozen: these values. After a change, the last bits of new runs differ from stored runs of the
# same key; tests/mixup_core/test_numeric_settings.py fails.
FIXED = {
    # Wins over the older name DNNL_DEFAULT_FPMATH_MODE.
    "ONEDNN_DEFAULT_FPMATH_MODE": "STRICT",
    "NVIDIA_TF32_OVERRIDE": None,
    "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE": None,
    # Workspace size with which cuBLAS is deterministic; read once in a process.
    "CUBLAS_WORKSPACE_CONFIG": ":4096:8",
}
"""Environment variables that every training process sets, and their values; None: unset."""

_ONE_THREAD = dict.fromkeys(
    (
        "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "GOTO_NUM_THREADS", "MKL_NUM_THREADS",
        "BLIS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS",
    ),
    "1",
)  # fmt: skip
"""Environment variables of the number of threads; libraries read them when they are loaded."""

_FAMILIES = re.compile(
    r"(?:ONEDNN|DNNL|MKL|OMP|GOMP|ATEN|CUBLAS|CUBLASLT|CUDNN|TORCH_CUDNN|TORCH_BLAS)_[A-Z0-9_]+"
    r"|OPENBLAS_(?:CORETYPE|BLOCK_FACTOR|L2_SIZE)|NPY_(?:DISABLE|ENABLE)_CPU_FEATURES"
    r"|KMP_(?:DETERMINISTIC_REDUCTION|FORCE_REDUCTION|DYNAMIC_MODE)|GLIBC_TUNABLES"
)
_INERT = re.compile(
    r".*(?:VERBOSE|DISPLAY|LOG|PROFILE|JIT_DUMP|AFFINITY|BLOCKTIME|PROC_BIND|PLACES|WAIT_POLICY"
    r"|NUM_THREADS|SETTINGS|WARNINGS|STACKSIZE|SPINCOUNT|ROOT).*"
)
"""Matches variables that only control printing, or placement and number of threads.

Thread counts change no bits, since every run computes in one thread.
"""
_OVERRULED = frozenset({"DNNL_DEFAULT_FPMATH_MODE", *FIXED})
_LONGEST = 200
"""Maximum number of characters recorded of a variable's value."""
NOT_NUMERIC = frozenset(
    {"host", "pid", "node", "gpus", "gpus_per_run", "tried", "resumes", "added"}
)
"""Entries of a stage's environment record that cannot change results."""
_ONLY_IF_SET = frozenset({"settings", "onednn_at_most"})
"""Entries that a record lacks if nothing was set. Others are missing from earlier versions."""
BEGAN_IN = "began_in"
"""Entry of a stage's environment record, present if the run was resumed in another environment.

It lists the epochs trained before and the settings under which they were trained. Other settings
can change the last bits of results.
"""


_INSTRUCTIONS = {
    "avx2": frozenset({"avx2", "fma"}),
    "avx512": frozenset({"avx512f", "avx512bw", "avx512dq", "avx512vl"}),
}
"""Processor instructions that PyTorch uses, by value of ATEN_CPU_CAPABILITY; names of Linux."""


class InstructionsError(RuntimeError):
    """Error: an environment variable makes PyTorch use instructions that the processor lacks."""


def require_instructions(environment: Mapping[str, str], cpuinfo: str = "/proc/cpuinfo") -> None:
    """Check that the processor has the instructions that ATEN_CPU_CAPABILITY asks for.

    PyTorch does not check this, and the system ends a process that uses a missing instruction.
    """
    value = environment.get("ATEN_CPU_CAPABILITY", "")
    try:
        lines = Path(cpuinfo).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return
    flags = next((line.split() for line in lines if line.startswith("flags")), None)
    if flags and (lacking := _INSTRUCTIONS.get(value, frozenset()).difference(flags)):
        raise InstructionsError(
            f"ATEN_CPU_CAPABILITY is {value}, but this processor lacks the instructions "
            f"{', '.join(sorted(lacking))}; unset the variable"
        )


def fix_precision(environment: MutableMapping[str, str]) -> None:
    """Fix the environment variables that choose a floating-point precision: set or remove them.

    The variable that makes cuBLAS deterministic is set, too; `FIXED` lists all variables. Call this
    function before the first computation.
    """
    for name, value in FIXED.items():
        if value is None:
            environment.pop(name, None)
        else:
            environment[name] = value


def use_one_thread(environment: MutableMapping[str, str]) -> None:
    """Make numeric libraries compute in one thread, as results depend on the number of threads.

    NumPy and SciPy each bring their own OpenBLAS, which `torch.set_num_threads` does not reach. The
    libraries that are loaded are limited, and those that are loaded later read the environment.
    """
    from threadpoolctl import threadpool_limits

    environment.update(_ONE_THREAD)
    threadpool_limits(limits=1)


def recorded_settings(environment: Mapping[str, str]) -> str:
    """Return the environment variables that can change the last bits of results, for the record.

    The result is one text of `NAME=value`, separated by spaces, each value cut after 200
    characters. The variables that `fix_precision` sets are left out.
    """
    return " ".join(
        f"{name}={value[:_LONGEST]}"
        for name, value in sorted(environment.items())
        if value and _FAMILIES.fullmatch(name) and not _INERT.fullmatch(name)
        if name not in _OVERRULED
    )


def differences(*environments: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names of the versions and settings that differ between environments of stages.

    Entries that cannot change results, such as the host, are left out. A version is compared only
    between the records that have it: earlier versions of mixsweep recorded fewer.
    """
    names = set[str]().union(*environments) - NOT_NUMERIC - {BEGAN_IN}
    values = {
        name: {of.get(name, "") for of in environments if name in of or name in _ONLY_IF_SET}
        for name in sorted(names)
    }
    return tuple(name for name in values if len(values[name]) > 1)


@cache
def installed_version(package: str) -> str | None:
    """Return the version of a package without importing it; None if it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""Parameters of mallopt(3)."""
_NEVER = 2**31 - 1
_LARGEST = 32 * 2**20
"""Largest freed block to keep, in bytes: the same limit as for glibc's dynamic threshold."""


def keep_freed_memory() -> None:
    """Let this process reuse the memory that it frees, in blocks up to 32 MB.

    Every step frees memory that the next step allocates again. By default, glibc returns much of it
    to the system, which must clear each page before it is used again: 4 to 5 % of the CPU time of a
    quickstart run, and half of the time of assembling a batch. Results do not change. The process
    stays as large as in its largest step. With another C library, this function has no effect.
    """
    with suppress(AttributeError, OSError):
        library = ctypes.CDLL(None)
        library.mallopt(_TRIM_THRESHOLD, _NEVER)
        library.mallopt(_MMAP_THRESHOLD, _LARGEST)
