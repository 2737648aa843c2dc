"""One attempt at a run: resume from the last stored stage, and report each epoch after storing it.

This module does not use Ray.
"""

import bdb
import logging
import os
import platform
import time
import traceback
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mixup_core.faults import fault_of
from mixup_core.freed_memory import keep_freed_memory
from mixup_core.keys import stage_keys
from mixup_core.numeric_settings import fix_precision
from mixup_core.plugins.loading import message_of
from mixup_core.plugins.source import PluginError
from mixup_core.problem import DataError, DivergedError, Gradual, Process, Teacher, problem_of
from mixup_core.records import EpochRecord
from mixup_core.rules import RuleError
from mixup_core.store.checkpoints import Store
from mixup_core.store.errors import StoreError
from mixup_core.tree.written_forms import plugins_of
from sweeps.running.global_draws import each_without_global_draws, without_global_draws
from sweeps.running.retries import DeviceFaultError, KernelFaultError, device_id
from sweeps.running.storing import Assignment, Storing

DONE = "done"
"""Entry that marks the last report of a run; Tune requires this name."""

LONG_EPOCH = 10.0
"""Seconds after which a run reports its progress within an epoch."""
_EXPLAINED = (DataError, RuleError, StoreError)
"""Errors whose message is enough; for all others the traceback is logged."""


def prepare_process() -> None:
    """Set up threads, precision and memory of this process, so that all engines give equal bits."""
    fix_precision(os.environ)
    import torch  # a cluster's driver imports this module without torch

    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float32)
    keep_freed_memory()


def attempt(assignment: Assignment, driver: "Driver", place: Mapping[str, str]) -> dict[str, Any]:
    """Train a run to its end and return its last report.

    An error of the run itself is reported as its result, because the run would fail again.

    Args:
        assignment: The run.
        driver: Receives the reports.
        place: Node and GPUs of the run, for its record.

    Raises:
        DeviceFaultError: If the GPU of the run is faulty; this process cannot use it again.
        KernelFaultError: If the run made its process unusable.
        Exception: If memory ran out; the run may fit in another process or a larger GPU share.
        KeyboardInterrupt: If the user quits a debugger.
        SystemExit: If this process is to end; one that a plugin raises is a failure of its run.
    """
    try:
        return train(assignment, driver, place)
    except DivergedError as error:
        return driver.failure("diverged", str(error), error.epoch)
    except DeviceFaultError:
        raise
    except bdb.BdbQuit:  # the user quit the debugger of the inline engine
        raise KeyboardInterrupt from None
    except SystemExit as error:
        if (message := message_of(error)) is None:
            raise
        return driver.failure("failed", message)
    except Exception as error:  # any error of a run must name the run
        fault = fault_of(error)
        if fault == "memory":
            raise
        if fault is not None and assignment.gpus:
            cause = (str(error).strip().splitlines() or [type(error).__name__])[0]
            if fault == "kernel":
                raise KernelFaultError(f"{type(error).__name__}: {cause}") from error
            raise DeviceFaultError(device_id(place), _device_name(place), cause) from error
        message, is_explained = _message(error, assignment)
        trace = "" if is_explained else "".join(traceback.format_exception(error))
        return driver.failure("failed", message, trace=trace)


def _message(error: Exception, assignment: Assignment) -> tuple[str, bool]:
    """Return the message of an error that ended a run, and whether it needs no traceback."""
    if isinstance(error, PluginError):
        return str(error), True
    is_explained = isinstance(error, _EXPLAINED)
    used = () if is_explained else plugins_of(assignment.config)
    if (message := message_of(error, used)) is not None:
        return message, is_explained
    if not is_explained:
        logging.getLogger(__name__).error(
            "run failed: %s", assignment.config, exc_info=(type(error), error, error.__traceback__)
        )
    return f"{type(error).__name__}: {error}", is_explained


def train(assignment: Assignment, driver: "Driver", place: Mapping[str, str]) -> dict[str, Any]:
    """Train a run, report its epochs, and return its last report.

    Raises:
        DivergedError: If the loss is no longer finite.
        DeviceFaultError: If torch does not find the GPU that is reserved for the run.
    """
    import torch

    if assignment.on_gpu and not torch.cuda.is_available():
        raise DeviceFaultError(
            device_id(place, is_node=True),
            f"node {platform.node()}",
            f"torch {torch.__version__} does not see the GPU that the run has reserved; fix the "
            "GPU driver or torch on that node, or train with --gpus-per-run 0",
        )
    device = "cuda" if assignment.on_gpu else "cpu"
    storing = Storing(assignment, device, place)
    process = storing.resume(lambda: _started(assignment, device))
    epochs, last = len(process.records), assignment.config.epochs
    if epochs < assignment.start:
        return driver.failure("behind", "the state that it was to start from is gone", epochs)
    if epochs == last:
        return driver.said(epochs=epochs, rows=storing.take_rows(), lost=storing.lost, done=True)
    if epochs or driver.has_warnings:  # each report costs the driver milliseconds
        driver.report(epochs=epochs, rows=storing.take_rows(), lost=storing.lost)
    reported_at = time.monotonic()
    for record, seconds in _timed(
        process, driver, reported_at, plugins_of(assignment.config), device
    ):
        storing.add(process, seconds)
        epochs = record.epoch + 1
        is_due = epochs in assignment.keep
        is_due |= time.monotonic() - reported_at >= assignment.report_every
        if is_due and epochs < last:
            driver.report(epochs=epochs, trained=True, rows=storing.take_rows())
            reported_at = time.monotonic()
    return driver.said(epochs=epochs, trained=True, rows=storing.take_rows(), done=True)


def _device_name(place: Mapping[str, str]) -> str:
    return f"GPU {place.get('gpus', '')} of node {platform.node()}"


class Driver(logging.Handler):
    """Sends the reports of a run to the driver, with the warnings logged since the last one.

    The entries of a report: the number of finished `epochs`; whether this process `trained` them;
    the finished fraction of the next epoch (`within`) and the seconds it took (`spent`); the `rows`
    of newly stored epochs; the `lost` epochs, from which no fork can start; `warnings`; and at the
    end the `failure`, if any.
    Kinds of failure besides errors of the run: `unshared`, the node does not see the driver's
    store; `stopped`, the launch was asked to stop; `declined` and `held`, the run must not be
    trained on this `device`; `behind`, the state to start from is gone.
    """

    def __init__(self, send: Callable[[dict[str, Any]], None], device: str = "") -> None:
        """Create the connection.

        Args:
            send: Sends a report; used for all reports except the last.
            device: Identity of the device of the run, see `device_id`.
        """
        super().__init__(logging.WARNING)
        self._send = send
        self._device = device
        self._warnings: list[str] = []

    @property
    def has_warnings(self) -> bool:
        """True if some warnings were not sent yet."""
        return bool(self._warnings)

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a warning for the next report."""
        self._warnings.append(record.getMessage())

    @contextmanager
    def hearing(self, *names: str) -> Iterator[None]:
        """Forward the warnings of some loggers from a worker to the driver."""
        loggers = [logging.getLogger(name) for name in names]
        for logger in loggers:
            logger.addHandler(self)
        try:
            yield
        finally:
            for logger in loggers:
                logger.removeHandler(self)

    def report(self, **content: Any) -> None:
        """Send a report on epochs that are stored; it is not the last."""
        self._send(self.said(**content))

    def hold(self) -> None:
        """Report that this process occupies its device, without training, until the launch ends."""
        self._send(self.said(failure={"kind": "held", "message": "", "epoch": None}))

    def failure(
        self, kind: str, message: str, epoch: int | None = None, trace: str = ""
    ) -> dict[str, Any]:
        """Return the last report of a run that failed."""
        failure = {"kind": kind, "message": message, "epoch": epoch, "trace": trace}
        return self.said(failure=failure, done=True)

    def said(self, **content: Any) -> dict[str, Any]:
        """Build a report that includes all warnings not sent yet.

        Args:
            content: Entries that differ from those of an empty report.
        """
        warnings, self._warnings = self._warnings, []
        return {
            "epochs": 0,
            "trained": False,
            "within": 0.0,
            "spent": 0.0,
            "rows": [],
            "lost": [],
            "warnings": warnings,
            "failure": None,
            "device": self._device,
            DONE: False,
        } | content


def _started(assignment: Assignment, device: str) -> Process:
    """Return the process of a run before its first epoch, with its teacher loaded."""
    root = None if assignment.data_root is None else Path(assignment.data_root)
    teacher = _teacher(assignment)
    config = assignment.config
    with without_global_draws(plugins_of(config), device):
        return problem_of(config).start(config, root, device, teacher)


def _teacher(assignment: Assignment) -> Teacher | None:
    """Return the trained teacher of a run; None if it has none.

    Raises:
        StoreError: If the last state of the teacher is not stored.
    """
    if assignment.teacher is None:
        return None
    store = Store(assignment.store)
    stage = store.read(stage_keys(assignment.teacher)[-1])
    state = None if stage is None else store.states.read(stage)
    if state is None:
        raise StoreError(
            "the last state of the teacher is not in the store: the teacher failed, or its state "
            "is damaged. Run the same command again: it trains the teacher, unless that diverged."
        )
    return Teacher(config=assignment.teacher, state=state)


def _timed(
    process: Process, driver: "Driver", reported_at: float, plugins: Collection[str], device: str
) -> Iterator[tuple[EpochRecord, float]]:
    """Yield each record with its seconds, and report the progress within epochs that take long."""
    started = time.monotonic()
    items = process.gradually() if isinstance(process, Gradual) else iter(process)
    for item in each_without_global_draws(items, plugins, device):
        now = time.monotonic()
        if isinstance(item, EpochRecord):
            yield item, now - started
            started = reported_at = time.monotonic()
        elif now - max(started, reported_at) >= LONG_EPOCH:
            driver.report(epochs=len(process.records), within=item, spent=now - started)
            reported_at = now
