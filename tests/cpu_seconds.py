"""Sum the CPU seconds of each test file, and name the slowest files if they exceed a budget.

The CPU time of a process and of all its living descendants is read when a worker goes from one file
to the next, so a process that a test starts counts for the file of the test. What every worker
spends on collecting and importing the tests has a line of its own. Tests do not fail for it,
because the sum depends on the machine.
"""

from collections import Counter
from typing import Any

import psutil
import pytest

OPTION = "--cpu-budget"
NUM_SHOWN = 10
_COLLECTION = "importing and collecting all tests"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        OPTION, type=float, metavar="SECONDS",
        help=f"name the {NUM_SHOWN} slowest files if the tests take more CPU seconds",
    )  # fmt: skip


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(CpuSeconds(config), "cpu-seconds")


class CpuSeconds:
    """The CPU seconds of each file, in one worker of pytest-xdist or in all of them."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._file = _COLLECTION
        self._until_now = 0.0
        self.seconds: Counter[str] = Counter()

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        file = nodeid.partition("::")[0]
        if file != self._file and not self._is_controller:
            self._count()
            self._file = file

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        self._count()
        if hasattr(self._config, "workeroutput"):
            self._config.workeroutput["cpu_seconds"] = dict(self.seconds)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        self.seconds.update(getattr(node, "workeroutput", {}).get("cpu_seconds", {}))

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        total, budget = self.seconds.total(), self._config.getoption(OPTION)
        if budget is None:
            return
        terminalreporter.write_line(f"CPU seconds: {total:.0f} of at most {budget:.0f}")
        all_files = self._config.get_verbosity() > 0
        if total > budget or all_files:
            for file, seconds in self.seconds.most_common(None if all_files else NUM_SHOWN):
                terminalreporter.write_line(f"{seconds:7.1f}  {file}")

    @property
    def _is_controller(self) -> bool:
        return bool(self._config.getoption("numprocesses", None)) and not hasattr(
            self._config, "workeroutput"
        )

    def _count(self) -> None:
        now = _cpu_seconds(of_descendants=not self._is_controller)  # those are the workers
        # An orphan takes its seconds with it.
        self.seconds[self._file] += max(0.0, now - self._until_now)
        self._until_now = now


def _cpu_seconds(*, of_descendants: bool) -> float:
    """Return the CPU seconds of this process and of its descendants, ended or not."""
    own = psutil.Process()
    if not of_descendants:
        return sum(own.cpu_times()[:2])
    total = 0.0
    for process in (own, *own.children(recursive=True)):
        try:
            total += sum(process.cpu_times()[:4])
        except psutil.NoSuchProcess:
            continue
    return total
