"""Faults: errors that come from a machine and not from a run: no memory, or a sick device."""

import re
from collections.abc import Iterable
from typing import Literal

Fault = Literal["memory", "device"]

_MEMORY = (
    "can't allocate memory",  # PyTorch, of a CPU
    "cannot allocate memory",  # the system (ENOMEM)
    "std::bad_alloc",
    "cuda out of memory",
    "cuda error: out of memory",
    "cudaerrormemoryallocation",
    "hip out of memory",
    r"cublas_status_(?:alloc_failed|not_initialized)",
    r"cudnn_status_(?:alloc_failed|not_initialized|internal_error_host_allocation_failed)",
    "unable to find an engine",  # cuDNN, where no engine's workspace fits
    "running low on memory",  # Ray, of a process that it killed
)
"""Patterns of texts, in small letters, that say that an allocation failed."""
_DEVICE = (
    r"cuda(?: driver)? error: ",
    r"cudaerror\w+",
    r"cublas_status_\w+",
    r"cudnn_status_\w+",
    "no cuda-capable device",
    "no cuda gpus are available",
    "found no nvidia driver",
    r"nvidia driver on your system is too old",
    "uncorrectable ecc error",
    r"hip error: ",
)
"""Patterns of texts that say that a device, its driver or its state in this process is broken."""


def fault_of(error: BaseException | str) -> Fault | None:
    """Return what a machine lacks according to an error or its text; None if the run is to blame.

    A process whose device reports a fault can use it no more, whatever the cause was.
    """
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return "memory"
    if not isinstance(error, str | OSError | RuntimeError):
        return None
    text = str(error).lower()
    if _holds(text, _MEMORY):
        return "memory"
    return "device" if _holds(text, _DEVICE) else None


def _holds(text: str, patterns: Iterable[str]) -> bool:
    return any(re.search(pattern, text) for pattern in patterns)
