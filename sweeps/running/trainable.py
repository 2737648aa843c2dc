"""One run inside a Tune trial: start at the deepest stored stage, store first, then report."""

import functools
import logging
import os
import platform
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import ray
from ray import tune
from ray.tune.result import DONE

from mixup_core.freed_memory import keep_freed_memory
from mixup_core.keys import stage_keys
from mixup_core.problem import DivergedError, Process, Teacher, lacks_memory, problem_of
from mixup_core.records import EpochRecord
from mixup_core.store.checkpoints import Store
from mixup_core.store.errors import StoreError
from sweeps.leasing.holders import Holder
from sweeps.leasing.lease import Lease
from sweeps.leasing.stops import asked_to_stop
from sweeps.running.storing import Assignment, Storing

REPORTS_PER_SECOND = 50.0
"""Reports of all runs together, but for those that other runs wait for: each costs the driver
milliseconds, and MLflow more."""

_STORE_PATIENCE = 3.0
"""Seconds in which a file system of several nodes is to show what one of them has just written."""


class UnsharedStoreError(StoreError):
    """What this node has under the path of the store is not what the driver has there."""


def train_run(parameters: dict[str, Any]) -> dict[str, Any]:
    """Train one run to its end; the function that Tune calls, in a process that hosts many runs.

    Each report says how many `epochs` are done, whether this process `trained` them, the `rows` of
    newly stored epochs, the `warnings` logged since the last report and, last of all, the `failure`
    if there is one; `unshared` is the node's own, and `stopped` says that the launch was asked to
    stop. A run that fails with an error is a result: it would fail again, so the error is reported,
    not raised. Tune repeats, in another process, what ends with the process or lacks memory there.

    Returns:
        The last report, which is `done`: Tune asks for no other, and nothing of the run is held
        while this process waits for its next.
    """
    import torch  # the driver, which names this function, trains nothing

    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float32)
    keep_freed_memory()
    if not ray.get_gpu_ids():
        # Ray hides GPUs from those only that reserved others. CUDA reads this at its first call.
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
    driver = _Driver()
    with driver.hearing("mixup_core"):
        try:
            assignment: Assignment = parameters["assignment"]
            study, holder = parameters["study"], parameters["driver"]
            _require_same_store(assignment.store, study, holder)
            if asked_to_stop(Store(assignment.store), study, holder):
                # Tune had given it its place before the driver heard.
                return driver.failure("stopped", "")
            return _train(assignment, driver)
        except UnsharedStoreError as error:
            return driver.failure("unshared", str(error))
        except DivergedError as error:
            return driver.failure("diverged", str(error), error.epoch)
        except Exception as error:  # the border of the process: whatever it is, its run is named
            if lacks_memory(error):
                raise
            logging.getLogger(__name__).exception("run %s failed", parameters["run_key"])
            return driver.failure("failed", f"{type(error).__name__}: {error}")


def _train(assignment: Assignment, driver: "_Driver") -> dict[str, Any]:
    """Train a run, tell the driver of its epochs, and return the report of its last ones.

    Raises:
        DivergedError: If its loss is finite no more.
        RuntimeError: If it has a GPU that torch does not see.
    """
    import torch

    if assignment.on_gpu and not torch.cuda.is_available():
        raise RuntimeError(
            "`torch sees the GPU that Ray gave to a run` must hold, "
            f"got (host={platform.node()!r}, torch={torch.__version__!r}); mend that node's driver "
            "or torch, or train with --gpus-per-run 0."
        )
    device = "cuda" if assignment.on_gpu else "cpu"
    storing = Storing(assignment, device, _place())
    process = storing.resume(lambda: _started(assignment, device))
    epochs, last = len(process.records), assignment.config.epochs
    if epochs == last:
        return driver.said(epochs=epochs, rows=storing.take_rows(), done=True)
    if epochs or driver.has_warnings:  # each report costs the driver milliseconds
        driver.report(epochs=epochs, rows=storing.take_rows())
    reported_at = time.monotonic()
    for record, seconds in _timed(iter(process)):
        storing.add(process, seconds)
        epochs = record.epoch + 1
        is_due = epochs in assignment.keep
        is_due |= time.monotonic() - reported_at >= assignment.report_every
        if is_due and epochs < last:
            driver.report(epochs=epochs, trained=True, rows=storing.take_rows())
            reported_at = time.monotonic()
    return driver.said(epochs=epochs, trained=True, rows=storing.take_rows(), done=True)


def _started(assignment: Assignment, device: str) -> Process:
    """Return the process of a run before its first epoch, with what it learns from.

    Raises:
        StoreError: If the last state of its teacher is not stored.
    """
    problem = problem_of(assignment.config)
    root = None if assignment.data_root is None else Path(assignment.data_root)
    if assignment.teacher is None:
        return problem.start(assignment.config, root, device)
    store = Store(assignment.store)
    stage = store.read(stage_keys(assignment.teacher)[-1])
    state = None if stage is None else store.states.read(stage)
    if state is None:
        raise StoreError(
            "`the last state of its teacher is stored` must hold, got none: the teacher failed, or "
            "its state is damaged; the same command again trains it, unless it diverged."
        )
    teacher = Teacher(config=assignment.teacher, state=state)
    return problem.start(assignment.config, root, device, teacher)


class _Driver(logging.Handler):
    """The driver, as a trial speaks to it; what is logged meanwhile goes along."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._warnings: list[str] = []

    @property
    def has_warnings(self) -> bool:
        """Whether there are warnings that no report has told yet."""
        return bool(self._warnings)

    def emit(self, record: logging.LogRecord) -> None:
        self._warnings.append(record.getMessage())

    @contextmanager
    def hearing(self, logger: str) -> Iterator[None]:
        """Pass on the warnings of a logger: nobody reads the logs of a worker."""
        logging.getLogger(logger).addHandler(self)
        try:
            yield
        finally:
            logging.getLogger(logger).removeHandler(self)

    def report(self, *, epochs: int, rows: Sequence[dict[str, Any]], trained: bool = False) -> None:
        """Tell of epochs that are stored; others follow."""
        tune.report(self.said(epochs=epochs, rows=rows, trained=trained))

    def failure(self, kind: str, message: str, epoch: int | None = None) -> dict[str, Any]:
        """Return the last report of a run that failed."""
        return self.said(failure={"kind": kind, "message": message, "epoch": epoch}, done=True)

    def said(
        self,
        *,
        epochs: int = 0,
        rows: Sequence[dict[str, Any]] = (),
        trained: bool = False,
        failure: dict[str, Any] | None = None,
        done: bool = False,
    ) -> dict[str, Any]:
        """Return a report, with the warnings that none has told yet."""
        warnings, self._warnings = self._warnings, []
        return {
            "epochs": epochs,
            "trained": trained,
            "rows": list(rows),
            "warnings": warnings,
            "failure": failure,
            DONE: done,
        }


def _timed(records: Iterator[EpochRecord]) -> Iterator[tuple[EpochRecord, float]]:
    started = time.monotonic()
    for record in records:
        yield record, time.monotonic() - started
        started = time.monotonic()


@functools.cache
def _require_same_store(store: str, study: str, driver: Holder) -> None:
    """Check, once in a process, that the driver will find what is stored here.

    Raises:
        UnsharedStoreError: If the driver's lease is not in the store as this node sees it.
    """
    give_up_at = time.monotonic() + _STORE_PATIENCE
    while (found := Lease.latest(Store(store), study)) != driver:
        if time.monotonic() < give_up_at:
            time.sleep(0.1)
            continue
        raise UnsharedStoreError(
            "`every node sees the store` must hold, got "
            f"({store=}, host={platform.node()!r}, found the lease of: {found}); "
            "give --store a folder that all nodes share, or a bucket."
        )


def _place() -> dict[str, str]:
    """Return where on the cluster a run is: its node, and the GPUs it can see, none as ""."""
    return {
        "node": ray.get_runtime_context().get_node_id(),
        "gpus": os.environ.get("CUDA_VISIBLE_DEVICES", ""),
    }
