"""Launch: a running `mixsweep run` whose processes a test may kill."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Self, TypeVar

from mixup_core.store.checkpoints import Store
from mixup_core.store.manifests import EpochFacts, Stage
from sweeps.reading.study_file import load_study
from sweeps.searching.search_history import read_history
from sweeps.searching.selection import grown_study
from sweeps.state.results import RunResult, read_results
from sweeps.study.study import Run, Study
from tests.conftest import CommandLine

Found = TypeVar("Found")


@dataclass(frozen=True)
class Task:
    """A study as the command line names it: a file and overrides."""

    file: str
    overrides: tuple[str, ...] = ()

    @cached_property
    def study(self) -> Study:
        return load_study(self.file, self.overrides)

    @property
    def arguments(self) -> list[str]:
        """Arguments of a command that takes a study."""
        return [self.file, *(part for text in self.overrides for part in ("--set", text))]

    def results(self, store: Path | str) -> tuple[RunResult, ...]:
        """Return the stored results of every run; for a search, of the points proposed so far."""
        known, study = Store(str(store)), self.study
        if study.search is not None:
            history = read_history(study, f"sqlite:///{Path(store).parent / 'optuna.db'}")
            study = grown_study(study, history, known)
        return read_results(study.runs(), known)

    def acknowledged(self, store: Path | str) -> Mapping[str, tuple[EpochFacts, ...]]:
        """Return, by run key, time and duration of every stored epoch.

        No later launch may train one of them again; that would give it another time.
        """
        return {result.run.key: result.facts for result in self.results(store)}


TWO_LAWS = Task(str(Path(__file__).with_name("two-laws.yaml")))


def wait_for(find: Callable[[], Found | None], timeout: float = 240.0) -> Found:
    """Return the first result of `find` that is not None; the test fails after a time limit."""
    give_up_at = time.monotonic() + timeout
    while not (found := find()):
        assert time.monotonic() < give_up_at, f"waited {timeout} s in vain for {find}"
        time.sleep(0.01)
    return found


def lasting(find: Callable[[], Found], timeout: float = 10.0) -> Found:
    """Return the first empty result of `find`, or the last result after a time limit."""
    give_up_at = time.monotonic() + timeout
    while (found := find()) and time.monotonic() < give_up_at:
        time.sleep(0.1)
    return found


class Launch:
    """A `mixsweep run` that ends at the latest with the `with` in which it was started."""

    def __init__(
        self, mixsweep: CommandLine, task: Task, *options: str, slots: int | None = 2
    ) -> None:
        """Start the command.

        Args:
            mixsweep: The command line.
            task: The study to run.
            options: Options of `mixsweep run`.
            slots: Number of runs at a time; None leaves it to the cluster.
        """
        self.started_at_ms = time.time_ns() // 1_000_000
        self.task = task
        self.store: Path | str = mixsweep.home / "store"
        if "--store" in options:
            self.store = options[options.index("--store") + 1]
        given = () if slots is None else ("--slots", str(slots))
        self.process = mixsweep.start(
            "run", *task.arguments, *given, "--keep-final-states", *options
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()

    def stage(self, run: Run, *, epochs: int = 1) -> Stage:
        """Wait until this launch has trained a run up to an epoch, and return the stage."""

        def found() -> Stage | None:
            (result,) = read_results([run], Store(str(self.store)))
            stage = result.stage
            if stage is None or stage.epochs < epochs:
                assert self.process.poll() is None, f"ended early\n{self.process.communicate()}"
                return None
            return stage if stage.facts[-1].stored_at_ms >= self.started_at_ms else None

        return wait_for(found)

    def worker(
        self, run: Run | None = None, *, epochs: int = 1, other_than: int | None = None
    ) -> int:
        """Wait until a living process has stored some but not all epochs of a run, or of any run.

        Returns:
            The pid of the process.
        """

        def found() -> int | None:
            for result in self.task.results(self.store):
                stage = result.stage
                if stage is not None and epochs <= stage.epochs < result.run.config.epochs:
                    pid = int(stage.environment["pid"])
                    if run in {None, result.run} and pid != other_than and is_ray_worker(pid):
                        return pid
            assert self.process.poll() is None, f"ended early\n{self.process.communicate()}"
            return None

        return wait_for(found)

    def kill_worker(self, pid: int) -> None:
        """Kill a worker and wait until it is gone, so that it is not found and killed again."""
        assert is_ray_worker(pid), pid
        os.kill(pid, signal.SIGKILL)
        wait_for(lambda: not is_ray_worker(pid))

    def end(self, code: int = 0, *, timeout: float = 240) -> subprocess.CompletedProcess[str]:
        """Wait for the end; the test fails unless the exit code is `code`."""
        out, err = self.process.communicate(timeout=timeout)
        assert self.process.returncode == code, f"exit {self.process.returncode}\n{out}\n{err}"
        return subprocess.CompletedProcess(self.process.args, code, out, err)


def is_ray_worker(pid: int) -> bool:
    """Return whether a process lives and is an actor in which Tune trains."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().startswith(b"ray::mixsweep ")
    except OSError:
        return False


def ray_workers() -> list[int]:
    """Return the pids of this namespace's training processes."""
    pids = (int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit())
    return [pid for pid in pids if is_ray_worker(pid)]
