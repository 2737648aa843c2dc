"""Freed memory that is kept by the process is not cleared again by the system."""

import platform
import subprocess
import sys

import pytest

_FAULTS = """
import resource, torch
from mixup_core.freed_memory import keep_freed_memory
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
    cleared = [
        int(subprocess.run([sys.executable, "-c", _FAULTS], check=True, stdout=-1).stdout)
        for _ in range(3)
    ]
    assert sum(cleared) < 3 * _BLOCKS_OF_ALL_STEPS * _PAGES_OF_A_BLOCK / 8, cleared
