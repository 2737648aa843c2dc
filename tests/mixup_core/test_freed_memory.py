"""Freed memory that is kept is not cleared by the system again."""

import platform
import subprocess
import sys

import pytest

_FAULTS = """
import resource, sys, torch
from mixup_core.freed_memory import keep_freed_memory
if sys.argv[1] == "kept":
    keep_freed_memory()

def step():
    # 160 MB, of which glibc keeps twice the largest block.
    blocks = [torch.ones(5 * 2**20) for _ in range(8)]

step()
step()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(5):
    step()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the C library is another")
def test_a_step_finds_the_memory_of_the_one_before() -> None:
    kept, given_back = (
        int(
            subprocess.run(
                [sys.executable, "-c", _FAULTS, way], check=True, capture_output=True, text=True
            ).stdout
        )
        for way in ("kept", "given back")
    )
    assert kept < given_back / 10
