"""doctor: one line for each check, whether it passes or not."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from mixsweep.cli.plan import findings
from sweeps.machine.home import Home

Find = Callable[..., str]


@pytest.fixture
def found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Find:
    """Return a function that gives the output line of a check, on a machine without datasets."""
    monkeypatch.setenv("MIXSWEEP_DATA", str(tmp_path / "data"))

    def line(name: str, home: Path = tmp_path) -> str:
        (text,) = (text for text in findings(Home(folder=home)) if text.startswith(name))
        return text.removeprefix(name).strip()

    return line


@pytest.mark.parametrize(
    ("is_fast", "told"), [(True, "fast on this GPU"), (False, "not on this GPU")]
)
def test_the_doctor_names_every_gpu(
    found: Find, monkeypatch: pytest.MonkeyPatch, is_fast: bool, told: str
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "get_device_name", "GPU {}".format)
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda: is_fast)
    assert found("GPUs") == "GPU 0, GPU 1"
    assert found("bfloat16") == told


@pytest.mark.parametrize(
    ("free", "told"),
    [
        (2_000_000_001, "2.0 GB free"),
        (2_000_000_000, "2.0 GB free: low"),
        (0, "0.0 GB free: low"),
    ],
)
def test_a_disk_with_two_gigabytes_or_less_is_marked_low(
    tmp_path: Path, found: Find, monkeypatch: pytest.MonkeyPatch, free: int, told: str
) -> None:
    usage = shutil.disk_usage(tmp_path)._replace(free=free)
    monkeypatch.setattr(shutil, "disk_usage", lambda place: usage)
    assert found("home") == f"{tmp_path}, {told}"
