"""Inline engine: trains the runs of a launch in this process, one after another, without Ray.

Use it with a debugger, in a notebook, or with little more than PyTorch. Results are equal bit for
bit to those with Ray.
"""

import os
import platform
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Any

from mixup_core.problem import problem_of
from mixup_core.rules import first_line
from mixup_core.store.checkpoints import Store
from mixup_core.store.errors import StoreError
from sweeps.leasing.lease import Claims, Lease, asked_to_stop
from sweeps.machine.signals import arrivals, owns_process
from sweeps.running.assignment import Assignment
from sweeps.running.attempt import Driver, attempt, prepare_process, require_store
from sweeps.running.monitor import Monitor
from sweeps.running.placement import Slots, require_gpus
from sweeps.running.retries import DeviceFaultError, KernelFaultError, advice
from sweeps.running.run_queue import RunQueue
from sweeps.running.trained_on import device_name
from sweeps.searching.sources import RunSource
from sweeps.state.results import RunResult, read_results
from sweeps.state.stages import PlannedRun, spare_bytes
from sweeps.study.study import Run
from sweeps.tracking.tracker import Tracker

_REPORT_EVERY = 0.5
_LOOK_EVERY = 1.0
"""Seconds between two checks for a request to stop now."""


_NO_TIME = "no further run would end in time (--until); run the same command again to continue"


class _OutOfTime(BaseException):
    """The first epochs of a run show that the run would not end before the deadline."""


class _DriverError(BaseException):
    """The driver, not the run that it trains, has raised the cause of this exception."""


@dataclass(kw_only=True, slots=True)
class Deadline:
    """Time by which every run of a launch must have ended; run times are measured by epochs."""

    at: float | None
    """Value of `clock` at the deadline, in seconds; None for no deadline."""
    clock: Callable[[], float] = time.monotonic
    _per_work: dict[str, list[float]] = field(default_factory=dict)
    """Measured seconds per unit of work of each epoch, by arm."""

    @property
    def is_over(self) -> bool:
        return self.at is not None and self.clock() >= self.at

    def learn(self, run: Run, seconds: Iterable[float]) -> None:
        work = problem_of(run.config).cost.work(run.config)
        self._per_work.setdefault(run.arm, []).extend(duration / work for duration in seconds)

    def allows(self, run: Run, epochs: int) -> bool:
        """Return True if a run can train a number of further epochs before the launch's deadline.

        The time per epoch is that of the same arm, or else of any arm; before any is known, `check`
        decides.
        """
        if self.at is None:
            return True
        seconds_left = self.at - self.clock()
        measured = self._known(run)
        if not measured:
            return seconds_left > 0
        work = problem_of(run.config).cost.work(run.config) * epochs
        return work * median(measured) <= seconds_left

    def check(self, run: Run, seconds: Iterable[float], epochs: int) -> None:
        """Record measured epochs; raise `_OutOfTime` if the first show that a run ends too late."""
        was_known = bool(self._known(run))
        self.learn(run, seconds)
        if self._known(run) and not was_known and not self.allows(run, run.config.epochs - epochs):
            raise _OutOfTime

    def check_within(self, run: Run, spent: float, fraction: float, epochs: int) -> None:
        """Raise `_OutOfTime` if a part of the first epoch shows that a run would end too late."""
        if self.at is None or self._known(run):
            return
        epochs_left = run.config.epochs - epochs - fraction
        if self.clock() + spent / fraction * epochs_left > self.at:
            raise _OutOfTime

    def _known(self, run: Run) -> list[float]:
        return self._per_work.get(run.arm) or [
            seconds for of_arm in self._per_work.values() for seconds in of_arm
        ]


def train_inline(  # noqa: PLR0913  independent objects that the caller opens
    source: RunSource,
    store: Store,
    tracker: Tracker,
    lease: Lease,
    *,
    device: str,
    deadline: Deadline,
    keep_final_states: bool = False,
) -> tuple[RunResult, ...]:
    """Train a study's missing runs, all arms at one seed before the next; return all results."""
    on_gpu = device == "cuda"
    slots = Slots(count=1, limit=1, gpus_per_run=float(on_gpu), on_gpu=on_gpu)
    require_gpus(source.study, slots)
    source.gpus_per_run = slots.gpus_per_run
    prepare_process()
    for result in read_results(source.study.runs(), store):
        if result.stage and result.stage.environment.get("device") == device_name(device):
            deadline.learn(result.run, [facts.seconds for facts in result.facts])
    monitor = Monitor(source=source, store=store, tracker=tracker, lease=lease, is_live=False)
    claims = Claims(store=store, study=source.study.name, token=lease.token)
    with (
        closing(claims),
        arrivals() as is_interrupted,
        _stoppable(store, source.study.name, lease),
    ):
        queue = RunQueue(source, monitor.join, source.more(()), by_seed=True, claims=claims)
        while (planned := _awaited(queue, monitor, deadline)) is not None:
            if not deadline.allows(planned.run, planned.epochs_to_train):
                monitor.note(_NO_TIME)
                break
            require_store(store)
            assignment = Assignment.of(
                planned,
                store,
                keep_final_state=keep_final_states,
                spare_bytes=spare_bytes(len(source.study.runs())),
                on_gpu=on_gpu,
                gpus=slots.gpus_per_run,
                report_every=_REPORT_EVERY,
            )
            try:
                failed = _train(planned, assignment, monitor, queue, deadline, is_interrupted)
            except _OutOfTime:
                monitor.note(
                    f"{planned.run.arm} seed {planned.run.seed} would not end in time (--until), "
                    "as its first steps show; run the same command with more seconds to continue"
                )
                break
            except _DriverError as error:
                raise error.__cause__ or error from None
            except (DeviceFaultError, KernelFaultError) as error:
                monitor.note(
                    f"{error}; this process can no longer use the GPU: run the same command again, "
                    "which starts a new process"
                )
                break
            queue.end(planned.run.key, failed=failed)
    monitor.close()
    return tuple(
        replace(result, failure=result.failure or monitor.failures.get(result.run.key))
        for result in read_results(source.study.runs(), store)
    )


def _awaited(queue: RunQueue, monitor: Monitor, deadline: Deadline) -> PlannedRun | None:
    """Return the next run; wait for those that other drivers train, at most to the deadline."""
    while (planned := queue.next()) is None and queue.is_waiting:
        if deadline.is_over:
            monitor.note(_NO_TIME)
            break
        monitor.step()
        time.sleep(_LOOK_EVERY)
    return planned


def _train(  # noqa: PLR0913  the run and the objects that it reports to
    planned: PlannedRun,
    assignment: Assignment,
    monitor: Monitor,
    queue: RunQueue,
    deadline: Deadline,
    is_interrupted: Callable[[], bool],
) -> bool:
    run = planned.run

    def take(report: dict[str, Any]) -> None:
        rows = report["rows"]
        queue.read(run.key, report)
        monitor.report(run, report)
        if is_interrupted():
            raise KeyboardInterrupt
        monitor.step()
        if report["trained"]:
            deadline.check(run, [row["seconds"] for row in rows], report["epochs"])
        if report["within"] > 0:
            deadline.check_within(run, report["spent"], report["within"], report["epochs"])

    def send(report: dict[str, Any]) -> None:
        try:
            take(report)
        except Exception as error:
            raise _DriverError from error

    monitor.start(run)
    monitor.step()
    driver = Driver(send)
    with driver.hearing("mixup_core", "sweeps.running.storing"):
        try:
            last = attempt(assignment, driver, _place(assignment))
        except (DeviceFaultError, _OutOfTime):
            monitor.wait(run)
            raise
        except KernelFaultError as error:
            take(driver.failure("failed", str(error)))
            monitor.end(run)
            raise
        except Exception as error:  # out of memory; a retry in this process would fail too
            cause = first_line(error)
            last = driver.failure("failed", f"lacks memory: {cause}; {advice()}")
    take(last)
    monitor.end(run)
    return last["failure"] is not None


def _place(assignment: Assignment) -> dict[str, str]:
    """Return the node and the GPUs of a run, for its stored environment."""
    gpus = os.environ.get("CUDA_VISIBLE_DEVICES", "0") if assignment.on_gpu else ""
    return {"node": platform.node(), "gpus": gpus}


@contextmanager
def _stoppable(store: Store, study: str, lease: Lease) -> Iterator[None]:
    """Interrupt this process, as Ctrl-C does, on `mixsweep stop --now`, even during a long epoch.

    In a process that does not belong to `mixsweep`, the reports of runs check for the request.
    """
    if not owns_process():
        yield
        return
    over = threading.Event()

    def look() -> None:
        while not over.wait(_LOOK_EVERY):
            with suppress(StoreError):
                if asked_to_stop(store, study, lease.holder) == "now":
                    os.kill(os.getpid(), signal.SIGINT)
                    return

    threading.Thread(target=look, name="stops", daemon=True).start()
    try:
        yield
    finally:
        over.set()
