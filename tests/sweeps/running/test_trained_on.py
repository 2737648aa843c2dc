"""TrainedOn: facts about the machine that trains a run."""

from pathlib import Path

import pytest

from sweeps.running import trained_on

PROPRIETARY = "NVIDIA UNIX x86_64 Kernel Module  535.54.03  Tue Jun  6 22:20:39 UTC 2023"
OPEN = "NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build  (root@builder)"


@pytest.mark.parametrize(
    ("described", "version"),
    [(PROPRIETARY, "535.54.03"), (OPEN, "580.159.04"), ("NVIDIA something else", "")],
)
def test_the_driver_version_is_read_from_both_kernel_modules(
    monkeypatch: pytest.MonkeyPatch, described: str, version: str
) -> None:
    text = f"NVRM version: {described}\nGCC version:  gcc version 12.2.0 (Debian 12.2.0-14)\n"
    monkeypatch.setattr(Path, "read_text", lambda path: text)
    assert trained_on._gpu_driver() == version
