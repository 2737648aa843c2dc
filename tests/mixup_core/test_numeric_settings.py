"""Numeric settings: the precision is set, and everything else that affects bits is recorded."""

import json
import os
import platform
from pathlib import Path

import pytest

from mixup_core.numeric_settings import (
    InstructionsError,
    differences,
    fix_precision,
    recorded_settings,
    require_instructions,
)
from tests.interpreters import run_python


def test_fix_precision_overrides_precision_variables_of_the_environment() -> None:
    environment = {
        "ONEDNN_DEFAULT_FPMATH_MODE": "BF16",
        "NVIDIA_TF32_OVERRIDE": "1",
        "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE": "1",
        "PATH": "/bin",
    }
    fix_precision(environment)
    assert environment == {
        "ONEDNN_DEFAULT_FPMATH_MODE": "STRICT",
        "CUBLAS_WORKSPACE_CONFIG": ":4096:8",
        "PATH": "/bin",
    }
    assert recorded_settings(environment) == ""


@pytest.mark.parametrize("value", ["avx512", "avx2", "default", ""])
def test_instructions_that_the_processor_lacks_are_refused(tmp_path: Path, value: str) -> None:
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text("processor : 0\nflags\t\t: fpu sse2 avx\n")
    environment = {"ATEN_CPU_CAPABILITY": value}
    if value.startswith("avx"):
        with pytest.raises(InstructionsError, match=rf"is {value}, but this processor lacks the "):
            require_instructions(environment, str(cpuinfo))
    else:
        require_instructions(environment, str(cpuinfo))
    have = "avx2 fma avx512f avx512bw avx512dq avx512vl"
    cpuinfo.write_text(f"processor : 0\nflags\t\t: fpu {have}\n")
    require_instructions(environment, str(cpuinfo))
    require_instructions(environment, str(tmp_path / "missing"))


_POOLS = """
import json, os
import numpy
from threadpoolctl import threadpool_info, threadpool_limits
threadpool_limits(limits=2)
from mixup_core.numeric_settings import use_one_thread
use_one_thread(os.environ)
import scipy.linalg, torch
print(json.dumps([(pool["prefix"], pool["num_threads"]) for pool in threadpool_info()]))
"""


def test_libraries_loaded_before_and_later_compute_in_one_thread() -> None:
    variables = {"OPENBLAS_NUM_THREADS": "2", "OMP_NUM_THREADS": "2"}
    said = run_python(_POOLS, env=os.environ | variables, check=True)
    pools = json.loads(said.stdout)
    assert len(pools) >= 3
    assert {threads for _, threads in pools} == {1}


RECORDED = (
    "ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA", "ONEDNN_CPU_ISA_HINTS", "MKL_CBWR",
    "MKL_ENABLE_INSTRUCTIONS", "MKL_DYNAMIC", "MKL_DEBUG_CPU_TYPE", "KMP_DETERMINISTIC_REDUCTION",
    "OMP_DYNAMIC", "OMP_SCHEDULE", "ATEN_CPU_CAPABILITY", "CUBLASLT_WORKSPACE_SIZE",
    "GLIBC_TUNABLES", "TORCH_BLAS_PREFER_CUBLASLT", "OPENBLAS_CORETYPE", "OPENBLAS_BLOCK_FACTOR",
    "OPENBLAS_L2_SIZE", "NPY_DISABLE_CPU_FEATURES",
)  # fmt: skip
NOT_RECORDED = (
    "OMP_NUM_THREADS", "MKL_NUM_THREADS", "MKL_VERBOSE", "ONEDNN_VERBOSE", "KMP_AFFINITY",
    "OMP_PLACES", "AWS_SECRET_ACCESS_KEY", "MY_MKL_CBWR", "OMPI_COMM_WORLD_RANK", "MKLROOT",
    "DNNL_DEFAULT_FPMATH_MODE", "KMP_INIT_AT_FORK", "KMP_DUPLICATE_LIB_OK", "OPENBLAS_NUM_THREADS",
    "OPENBLAS_VERBOSE", "OPENBLAS_THREAD_TIMEOUT", "HOME",
)  # fmt: skip


def test_exactly_the_variables_that_can_change_bits_are_recorded() -> None:
    for name in (*RECORDED, *NOT_RECORDED):
        assert recorded_settings({name: "X"}) == (f"{name}=X" if name in RECORDED else "")


def test_an_empty_variable_is_not_recorded_and_a_long_value_is_cut() -> None:
    assert recorded_settings({"MKL_CBWR": ""}) == ""
    assert len(recorded_settings({"MKL_CBWR": "x" * 9999})) < 300


def test_differences_compare_only_entries_that_can_change_bits() -> None:
    one = {"device": "Xeon", "host": "a", "pid": "1", "tried": "k 1", "node": "x", "began_in": "y"}
    assert differences(one, {"device": "Xeon", "host": "b", "pid": "2"}) == ()
    assert differences(one, {**one, "settings": "MKL_CBWR=AVX2"}) == ("settings",)
    other = {**one, "device": "Epyc", "threads": "2"}
    assert differences({**one, "threads": "1"}, other) == ("device", "threads")


def test_differences_ignore_a_version_that_a_record_lacks() -> None:
    earlier = {"device": "Xeon", "numpy": "2.4"}
    old, new = ({**earlier, "scipy": number} for number in ("1.16", "1.17"))
    assert differences(earlier, new) == differences(new, earlier) == ()
    assert differences(earlier, old, new) == ("scipy",)
    assert differences(earlier, {**new, "onednn_at_most": "AVX2"}) == ("onednn_at_most",)


_FAULTS = """
import resource, torch
from mixup_core.numeric_settings import keep_freed_memory
keep_freed_memory()

def step():
    blocks = [torch.ones(5 * 2**20) for _ in range(8)]

step()
step()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(5):
    step()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""
_BLOCKS_OF_ALL_STEPS = 5 * 8
_PAGES_OF_A_BLOCK = 5 * 2**20 * 4 // 4096


@pytest.mark.long
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the C library is another")
def test_a_training_step_reuses_the_memory_freed_by_the_step_before() -> None:
    """Without the setting, glibc mostly returns memory.

    It depends on the heap, so three processes are tried.
    """
    cleared = [int(run_python(_FAULTS, check=True).stdout) for _ in range(3)]
    assert sum(cleared) < 3 * _BLOCKS_OF_ALL_STEPS * _PAGES_OF_A_BLOCK / 8, cleared
