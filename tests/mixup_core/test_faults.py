"""Faults of machines are distinguished from errors of runs, by type and by text."""

import pytest

from mixup_core.faults import Fault, fault_of

CUDNN = "cuDNN error: CUDNN_STATUS_"


@pytest.mark.parametrize(
    ("error", "fault"),
    [
        (MemoryError(), "memory"),
        (type("OutOfMemoryError", (RuntimeError,), {})(), "memory"),
        (RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you"), "memory"),
        (OSError(12, "Cannot allocate memory"), "memory"),
        (RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB."), "memory"),
        (RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `c`"), "memory"),
        (RuntimeError("CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling"), "memory"),
        (RuntimeError(f"{CUDNN}ALLOC_FAILED"), "memory"),
        (RuntimeError("Unable to find an engine"), "memory"),
        ("ray.exceptions.OutOfMemoryError: the node running low on memory", "memory"),
        (RuntimeError("CUDA error: an illegal memory access was encountered"), "device"),
        (RuntimeError("CUDA error: device-side assert triggered"), "kernel"),
        (RuntimeError("CUDA error: invalid configuration argument"), "kernel"),
        (RuntimeError(f"{CUDNN}BAD_PARAM"), "kernel"),
        (RuntimeError("CUDA error: no kernel image is available for execution"), "device"),
        (RuntimeError("Unexpected error from cudaGetDeviceCount(). Error 802"), "device"),
        (RuntimeError("Triton Error [CUDA]: out of memory"), "memory"),
        (RuntimeError("Triton Error [CUDA]: an illegal memory access"), "device"),
        (RuntimeError(f"{CUDNN}INTERNAL_ERROR_HOST_ALLOCATION_FAILED"), "memory"),
        (RuntimeError("CUDA driver error: unknown error"), "device"),
        (RuntimeError("Found no NVIDIA driver on your system."), "device"),
        (RuntimeError("shape mismatch"), None),
        (ValueError("can't allocate memory"), None),
        (KeyError("cuda error: "), None),
        ("the file memory.py is missing", None),
    ],
)
def test_machine_faults_are_recognised_and_errors_of_the_run_are_not(
    error: Exception | str, fault: Fault | None
) -> None:
    assert fault_of(error) == fault
