"""Faults: errors after which a process must end (no memory, faulty device, bad kernel input)."""

import re
from collections.abc import Mapping
from typing import Literal

Fault = Literal["memory", "device", "kernel"]
"""Kind of a fault: out of memory, a faulty device, or a kernel that rejected its input."""

_PATTERNS: Mapping[Fault, tuple[str, ...]] = {
    "memory": (  # a failed allocation
        "can't allocate memory",  # PyTorch, on a CPU
        "cannot allocate memory",  # the system (ENOMEM)
        "failed to map segment",  # the loader of libraries
        "std::bad_alloc",
        "cuda out of memory",
        "cuda error: out of memory",
        "cudaerrormemoryallocation",
        r"triton error \[cuda\]: out of memory",
        "hip out of memory",
        r"(?:cublas|cusolver|cusparse)_status_(?:alloc_failed|not_initialized)",
        r"cusparse_status_insufficient_resources",
        "cufft_alloc_failed",
        r"cudnn_status_(?:alloc_failed|not_initialized|internal_error_host_allocation_failed)",
        "unable to find an engine",  # cuDNN, where no engine's workspace fits
        "running low on memory",  # Ray, about a process that it killed
    ),
    "kernel": (  # a kernel that rejects its input, on any device
        "device-side assert",
        r"cuda error: invalid (?:argument|configuration argument)",
        r"cublas_status_(?:invalid_value|not_supported)",
        r"cudnn_status_(?:bad_param|not_supported)",
    ),
    "device": (  # a faulty device, driver or CUDA context
        r"cuda(?: driver)? error: ",
        r"cudaerror\w+",
        "cudagetdevicecount",
        r"triton error \[cuda\]: ",
        r"(?:cublas|cusolver|cusparse|curand)_status_\w+",
        r"cufft_(?:internal|setup|exec)_\w+",
        r"cudnn_status_\w+",
        r"nccl (?:error|\w*cudaerror)|nccl\w+error",
        "cuda driver version is insufficient",
        "no cuda-capable device",
        "no cuda gpus are available",
        "found no nvidia driver",
        r"nvidia driver on your system is too old",
        "uncorrectable ecc error",
        r"hip error: ",
    ),
}
"""Lower-case patterns of error messages, by kind; if several match, the first one counts."""


def fault_of(error: BaseException | str) -> Fault | None:
    """Return the kind of fault that an error is, by its type or message; None if it is no fault.

    The kinds are `memory` (an allocation failed), `kernel` (a kernel rejected its input) and
    `device` (a faulty device or driver). After a fault of kind `device` or `kernel`, this process
    can no longer use the device.
    """
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return "memory"
    if not isinstance(error, str | OSError | RuntimeError):
        return None
    text = str(error).lower()
    return next((kind for kind in _PATTERNS if re.search("|".join(_PATTERNS[kind]), text)), None)
