"""Attempt: train a run from its last stored stage, and report each epoch once it is stored.

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
from typing import Any, TypeVar

from mixup_core.config.written_forms import plugins_of
from mixup_core.contracts import ContractError
from mixup_core.faults import fault_of
from mixup_core.keys import run_key, stage_keys
from mixup_core.numeric_settings import (
    InstructionsError,
    fix_precision,
    keep_freed_memory,
    require_instructions,
    use_one_thread,
)
from mixup_core.plugins.loading import message_of
from mixup_core.plugins.source import PluginError
from mixup_core.problem import DataError, DivergedError, Gradual, Process, Teacher, problem_of
from mixup_core.records import EpochRecord
from mixup_core.rules import RuleError, first_line
from mixup_core.store.checkpoints import Store
from mixup_core.store.errors import StoreError, advice, spell_file_error
from sweeps.running.assignment import Assignment
from sweeps.running.retries import DeviceFaultError, KernelFaultError, device_id
from sweeps.running.storing import Storing

DONE = "done"
"""Key of a report that marks it as the last one of a run; Ray Tune requires this name."""

LONG_EPOCH = 10.0
"""Seconds of an epoch after which a run also reports its progress within the epoch."""
_EXPLAINED = (DataError, InstructionsError, RuleError, StoreError)
"""Types of errors whose message is enough for users; for all others the traceback is logged."""


def prepare_process() -> None:
    """Set threads, precision and memory of this process; both engines then give the same bits."""
    fix_precision(os.environ)
    import torch  # a cluster's driver imports this module without torch

    torch.set_num_threads(1)
    use_one_thread(os.environ)
    torch.set_default_dtype(torch.float32)
    keep_freed_memory()


def attempt(assignment: Assignment, driver: "Driver", place: Mapping[str, str]) -> dict[str, Any]:
    """Train a run to its end; return the last report, which the caller gives to the driver.

    A failure of the run itself is in the report. Only errors after which the run may be tried again
    are raised.
    """
    try:
        require_instructions(os.environ)
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
            cause = first_line(error)
            if fault == "kernel":
                raise KernelFaultError(f"{type(error).__name__}: {cause}") from error
            raise DeviceFaultError(device_id(place), _device_name(place), cause) from error
        message, is_explained = _message(error, assignment)
        trace = "" if is_explained else "".join(traceback.format_exception(error))
        return driver.failure("failed", message, trace=trace)


def _message(error: Exception, assignment: Assignment) -> tuple[str, bool]:
    if isinstance(error, PluginError | ContractError):
        return str(error), True
    is_explained = isinstance(error, _EXPLAINED)
    used = () if is_explained else plugins_of(assignment.config)
    if (message := message_of(error, used)) is not None:
        return message, is_explained
    if isinstance(error, OSError) and error.filename and advice(error):
        return spell_file_error(error), True
    if not is_explained:
        logging.getLogger(__name__).error(
            "run failed: %s", assignment.config, exc_info=(type(error), error, error.__traceback__)
        )
    return f"{type(error).__name__}: {error}", is_explained


def train(assignment: Assignment, driver: "Driver", place: Mapping[str, str]) -> dict[str, Any]:
    """Train a run, send the driver reports on its epochs, and return the last report."""
    import torch

    if assignment.on_gpu and not torch.cuda.is_available():
        raise DeviceFaultError(
            device_id(place, is_node=True),
            f"node {platform.node()}",
            f"torch {torch.__version__} does not see the GPU that the run has reserved; fix the "
            "GPU driver or torch on that node, or train with --gpus-per-run 0",
        )
    _require_no_divergence(assignment)
    device = "cuda" if assignment.on_gpu else "cpu"
    storing = Storing(assignment, device, place)
    process = storing.resume(lambda: _started(assignment, device))
    epochs, last = len(process.records), assignment.config.epochs
    if epochs == last:
        return driver.said(epochs=epochs, rows=storing.take_rows(), lost=storing.lost, done=True)
    if epochs or driver.has_warnings:  # each report costs the driver milliseconds
        driver.report(epochs=epochs, rows=storing.take_rows(), lost=storing.lost)
    reported_at = time.monotonic()
    with storing:
        for record, seconds in _timed(process, storing, driver, assignment):
            storing.add(process, seconds)
            epochs = record.epoch + 1
            is_due = epochs in assignment.keep
            is_due |= time.monotonic() - reported_at >= assignment.report_every
            if is_due and epochs < last:
                driver.report(epochs=epochs, trained=True, rows=storing.take_rows())
                reported_at = time.monotonic()
    return driver.said(epochs=epochs, trained=True, rows=storing.take_rows(), done=True)


def _require_no_divergence(assignment: Assignment) -> None:
    """Raise the divergence of a run that another driver recorded; a launch deletes earlier ones."""
    key = run_key(assignment.config)
    failure = Store(assignment.store).failures.read_all([key]).get(key)
    if failure is not None and failure.kind == "diverged":
        raise DivergedError(failure.message, failure.epoch or 0)


def _device_name(place: Mapping[str, str]) -> str:
    return f"GPU {place.get('gpus', '')} of node {platform.node()}"


def require_store(store: Store) -> None:
    """Check before a run that the folder of the store is there: a write would make it again."""
    if store.folder is not None and not store.folder.is_dir():
        raise StoreError(f"the store {store.folder} was moved or deleted")


class Driver(logging.Handler):
    """Connection from a run to the driver: sends reports and logged warnings.

    A report is a dict with these keys: `epochs`, the number of finished epochs; `trained`, True if
    this process trained them; `within`, the finished fraction of the next epoch, and `spent`, the
    seconds it took; `rows`, the newly stored epochs; `lost`, the epochs (counted from 1) that
    are trained already, but whose state, which other runs need, is not stored; `warnings`; and in
    the last report `failure`, if any.

    Kinds of failure, besides errors of the run: `unshared`, the node does not see the driver's
    store; `stopped`, the launch was asked to stop; `declined`, the run must be trained on another
    device; `held`, the same, and the process occupies its device (`hold`).
    """

    def __init__(self, send: Callable[[dict[str, Any]], None], device: str = "") -> None:
        super().__init__(logging.WARNING)
        self._send = send
        self._device = device
        self._warnings: list[str] = []

    @property
    def has_warnings(self) -> bool:
        return bool(self._warnings)

    def emit(self, record: logging.LogRecord) -> None:
        self._warnings.append(record.getMessage())

    @contextmanager
    def hearing(self, *names: str) -> Iterator[None]:
        """Forward warnings of loggers to the driver while the block runs."""
        loggers = [logging.getLogger(name) for name in names]
        for logger in loggers:
            logger.addHandler(self)
        try:
            yield
        finally:
            for logger in loggers:
                logger.removeHandler(self)

    def report(self, **content: Any) -> None:
        """Send a report on stored epochs, or on a part of a long epoch; not the last one."""
        self._send(self.said(**content))

    def hold(self) -> None:
        """Report that this process occupies its device until the launch ends, without training.

        Ray would otherwise start the next run on this device, which must not be used.
        """
        self._send(self.said(failure={"kind": "held", "message": "", "epoch": None}))

    def failure(
        self, kind: str, message: str, epoch: int | None = None, trace: str = ""
    ) -> dict[str, Any]:
        failure = {"kind": kind, "message": message, "epoch": epoch, "trace": trace}
        return self.said(failure=failure, done=True)

    def said(self, **content: Any) -> dict[str, Any]:
        """Return a report with the given values and all warnings not yet sent."""
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
    root = None if assignment.data_root is None else Path(assignment.data_root)
    teacher = _teacher(assignment)
    config = assignment.config
    with without_global_draws(plugins_of(config), device):
        return problem_of(config).start(config, root, device, teacher)


def _teacher(assignment: Assignment) -> Teacher | None:
    """Return the trained teacher network of a run; None if the run has no teacher."""
    if assignment.teacher is None:
        return None
    store = Store(assignment.store)
    stage = store.read(stage_keys(assignment.teacher)[-1])
    state = None if stage is None else store.states.read(stage)
    if stage is not None and state is None:
        raise StoreError(
            "the teacher was trained earlier without keeping its weights, and training it again "
            "gave other numbers, as on a GPU without `deterministic: true`. Forget the results of "
            "all studies and settings that contain it (`mixsweep store prune ... --forget`), and "
            "run the same command again."
        )
    if state is None:
        raise StoreError(
            "the last state of the teacher is not in the store: the teacher failed, or its state "
            "is damaged. Run the same command again to train the teacher, unless it diverged."
        )
    return Teacher(config=assignment.teacher, state=state)


def _timed(
    process: Process, storing: Storing, driver: "Driver", assignment: Assignment
) -> Iterator[tuple[EpochRecord, float]]:
    """Yield the record and the seconds of each epoch; report the progress within long epochs."""
    started = reported_at = time.monotonic()
    items = process.gradually() if isinstance(process, Gradual) else iter(process)
    plugins, device = plugins_of(assignment.config), "cuda" if assignment.on_gpu else "cpu"
    for item in each_without_global_draws(items, plugins, device):
        now = time.monotonic()
        if isinstance(item, EpochRecord):
            yield item, now - started
            started = reported_at = time.monotonic()
        elif now - max(started, reported_at) >= LONG_EPOCH:
            rows = storing.take_rows()
            driver.report(
                epochs=len(process.records), trained=bool(rows), rows=rows, within=item,
                spent=now - started,
            )  # fmt: skip
            reported_at = now


T = TypeVar("T")


@contextmanager
def without_global_draws(plugins: Collection[str], device: str) -> Iterator[None]:
    """Raise an error if code in the block draws from a global random generator.

    Python's `random` is checked by `mixsweep check` only: libraries use it in other threads.
    """
    if not plugins:
        yield
        return
    from mixup_core.seeding import watched

    with watched(device, may_use_python=True) as drawn:
        yield
    if drawn:
        names = " and ".join(sorted(plugins))
        raise PluginError(
            f"plugin {names}: a run that uses this plugin drew from the global random generator of "
            f"{' and '.join(drawn)}, so that a resumed run would have other results; draw from "
            "the generator that the plugin's method gets as an argument; `mixsweep check "
            f"{names}` shows which part of the plugin does this"
        )


def each_without_global_draws(
    items: Iterator[T], plugins: Collection[str], device: str
) -> Iterator[T]:
    """Yield the items of a process; check once per epoch, as a check takes longer than a step."""
    while True:
        with without_global_draws(plugins, device):
            for item in items:
                if isinstance(item, EpochRecord):
                    break
                yield item
            else:
                return
        yield item
