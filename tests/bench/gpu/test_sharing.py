"""Sharing: processes start together, and rates are added only if all processes have one."""

import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from tests.bench.gpu.sharing import side_by_side, together
from tests.bench.gpu.workload import REHEARSAL

CPU = torch.device("cpu")


def _worker(tmp_path: Path, says: str) -> str:
    """Return a program that replaces Python and records when it starts, twice."""
    program = tmp_path / "python"
    program.write_text(
        f"#!{sys.executable}\nimport sys, os, time\nfor network in ('large', 'small'):\n"
        "    time.sleep(0.2 * (os.getpid() % 2))\n    print('ready', flush=True)\n"
        "    begin = sys.stdin.readline().strip()\n"
        f"    open({str(tmp_path / 'begun')!r}, 'a').write(f'{{network}} {{begin}}\\n')\n"
        f"    {says}\n"
    )
    program.chmod(0o700)
    return str(program)


def test_rates_of_processes_are_added_and_all_processes_start_at_one_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = time.monotonic()
    says = "print(12.5 if network == 'large' else 2, flush=True)"
    monkeypatch.setattr(sys, "executable", _worker(tmp_path, says))
    assert together(3, 1.0, {}) == {"large": 37.5, "small": 6.0}
    lines = [line.split() for line in (tmp_path / "begun").read_text().splitlines()]
    for network in ("large", "small"):
        times = [float(begin) for name, begin in lines if name == network]
        assert len(times) == 3
        assert len(set(times)) == 1
        assert times[0] > started


@pytest.mark.parametrize(
    ("says", "message"),
    [
        ("sys.exit(1)", "one of 2 processes ended without reporting its rate"),
        ("print()", "one of 2 processes ended without reporting its rate"),
        ("print(1.0); sys.exit(1)", "one of 2 processes ended before it was ready"),
    ],
)
def test_a_process_that_reports_no_rate_raises_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: str, message: str
) -> None:
    monkeypatch.setattr(sys, "executable", _worker(tmp_path, says))
    with pytest.raises(RuntimeError, match=message):
        together(2, 1.0, {})


def test_rates_are_measured_side_by_side_and_a_missing_mps_is_explained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", _worker(tmp_path, "print(1.0, flush=True)"))
    found = side_by_side(replace(REHEARSAL, processes=(1, 2)), CPU)
    assert found == {
        "large network, 1": 1.0, "small network, 1": 1.0,
        "large network, 2": 2.0, "small network, 2": 2.0,
        "MPS: absent": "RuntimeError: NVIDIA's Multi-Process Service (MPS) needs a GPU, "
        "got (device=cpu).",
    }  # fmt: skip


def test_mps_is_started_for_its_clients_and_stopped_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    control = tmp_path / "nvidia-cuda-mps-control"
    control.write_text(
        f"#!/bin/sh\n[ $# = 0 ] && read said || said=$1\n"
        f'echo "$said $CUDA_MPS_PIPE_DIRECTORY" >> {tmp_path}/control\n'
    )
    control.chmod(0o700)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    says = "print(2.0 if 'CUDA_MPS_PIPE_DIRECTORY' in os.environ else 1.0, flush=True)"
    monkeypatch.setattr(sys, "executable", _worker(tmp_path, says))
    found = side_by_side(replace(REHEARSAL, processes=(1, 2)), torch.device("cuda"))
    assert found["small network, 2"] == 2.0
    assert found["small network, 2, MPS"] == 4.0
    assert found["small network, 2, MPS / 1"] == 4.0
    begun, ended = ((tmp_path / "control").read_text()).splitlines()
    assert (begun.split()[0], ended.split()[0]) == ("-d", "quit")
    assert begun.split()[1] == ended.split()[1]
