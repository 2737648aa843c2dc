"""Free memory: the smallest of machine and control groups, minus what Ray keeps free."""

from pathlib import Path

import psutil
import pytest

from sweeps.machine import processor
from sweeps.machine.free_memory import free_bytes

GB = 10**9


@pytest.fixture
def groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the root of control groups (version 2), with this process in `jobs/7`."""
    monkeypatch.setattr(processor, "_TOP", tmp_path)
    monkeypatch.setattr(processor, "_OWN", tmp_path / "own")
    (tmp_path / "own").write_text("0::/jobs/7\n")
    monkeypatch.delenv("RAY_memory_usage_threshold", raising=False)
    (tmp_path / "jobs" / "7").mkdir(parents=True)
    return tmp_path


def test_free_memory_without_a_limit_follows_the_memory_of_the_machine(groups: Path) -> None:
    (groups / "jobs" / "memory.max").write_text("max\n")
    machine = psutil.virtual_memory()
    assert free_bytes() == pytest.approx(
        0.95 * machine.total - (machine.total - machine.available), abs=GB
    )


@pytest.mark.parametrize("place", ["jobs", "jobs/7"])
def test_the_limit_of_each_parent_cgroup_counts_without_reclaimable_memory(
    place: str, groups: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (groups / place / "memory.max").write_text(f"{GB}\n")
    (groups / place / "memory.current").write_text(f"{6 * GB // 10}\n")
    (groups / place / "memory.stat").write_text(f"anon 1\ninactive_file {2 * GB // 10}\n")
    monkeypatch.setattr("sweeps.machine.free_memory.memory_of_machine", lambda: (99 * GB, 0))
    assert free_bytes() == 95 * GB // 100 - 4 * GB // 10
    monkeypatch.setenv("RAY_memory_usage_threshold", "0.5")
    assert free_bytes() == GB // 10
    monkeypatch.setenv("RAY_memory_usage_threshold", "0.1")
    assert free_bytes() == 0
