"""Clocks: the range of each clock while a GPU works, with a program that replaces nvidia-smi."""

import time
from pathlib import Path

import pytest
import torch

from tests.bench.gpu.clocks import ask_nvidia_smi, watched_clocks

GPU = torch.device("cuda")


def _nvidia_smi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str) -> None:
    program = tmp_path / "nvidia-smi"
    program.write_text(f"#!/bin/sh\n{body}\n")
    program.chmod(0o700)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")


def test_watched_clocks_report_the_range_of_each_sensor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ready = tmp_path / "ready"
    _nvidia_smi(
        tmp_path,
        monkeypatch,
        "echo '1980, 2619, 40, 300.5, 0x0000000000000000'\n"
        "echo '1410, 2619, 71, 699.25, 0x0000000000000004'\n"
        f"echo '1500, 26'\ntouch {ready}\nexec sleep 60",
    )
    with watched_clocks(GPU) as found:
        while not ready.exists():
            time.sleep(0.01)
        assert not found
    assert found == {
        "clock of processors, MHz": "1410 to 1980",
        "clock of memory, MHz": "2619 to 2619",
        "temperature, C": "40 to 71",
        "power, W": "300.5 to 699.25",
        "throttling": "0x0000000000000000, 0x0000000000000004",
    }


def test_an_unavailable_sensor_is_reported_as_nvidia_smi_prints_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ready = tmp_path / "ready"
    _nvidia_smi(
        tmp_path, monkeypatch, f"echo '1980, [N/A], 40, 1, 0x0'\ntouch {ready}\nexec sleep 60"
    )
    with watched_clocks(GPU) as found:
        while not ready.exists():
            time.sleep(0.01)
    assert found["clock of memory, MHz"] == "[N/A]"


def test_an_error_inside_the_context_ends_the_clock_watch_and_is_raised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _nvidia_smi(tmp_path, monkeypatch, "exec sleep 60")
    with pytest.raises(ValueError, match="its own"), watched_clocks(GPU) as found:
        raise ValueError("its own")
    assert found == {}


def test_a_missing_nvidia_smi_is_reported_as_the_reason_for_absent_clocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with watched_clocks(GPU) as found:
        pass
    assert "nvidia-smi" in found["clocks: absent"]
    assert "nvidia-smi" in ask_nvidia_smi("driver_version")


def test_watched_clocks_are_empty_on_a_cpu() -> None:
    with watched_clocks(torch.device("cpu")) as found:
        pass
    assert found == {}


def test_ask_nvidia_smi_returns_the_printed_value(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _nvidia_smi(tmp_path, monkeypatch, 'echo "$1"')
    assert ask_nvidia_smi("driver_version,power.limit") == (
        "--query-gpu=driver_version,power.limit"
    )
