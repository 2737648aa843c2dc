"""One run inside a Tune trial: start at the deepest stored stage, store first, then report."""

import functools
import logging
import os
import platform
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import ray
import torch
from ray import tune

from mixup_core.images.config import DataConfig, TrainConfig
from mixup_core.images.data.datasets import Splits
from mixup_core.images.data.fetching import data_root, fetch, is_present
from mixup_core.images.data.mapped import load_mapped
from mixup_core.images.training import TrainingState, fit
from mixup_core.keys import run_key, stage_keys
from mixup_core.problem import DivergedError, StateError, lacks_memory
from mixup_core.records import EpochRecord
from mixup_core.store.checkpoints import EpochFacts, Stage, Store
from mixup_core.store.files import StoreError
from sweeps.leasing.holders import Holder
from sweeps.leasing.lease import Lease

STORE_AT_LEAST_EVERY = 20.0
"""Seconds of training after which a stage is stored, however dear that is."""
_STORE_COST_SHARE = 50
"""A stage is stored once this many times its own cost has been trained since the last."""
REPORTS_PER_SECOND = 50.0
"""Reports of all runs together, but for those that other runs wait for: each costs the driver
milliseconds, and MLflow more."""
_OWNER = "resumes"
"""Marks a stage that was stored for one run to resume from: no result of a run that ends there,
and no fork. Only such a stage is ever removed, and only by its run."""


class UnsharedStoreError(StoreError):
    """What this node has under the path of the store is not what the driver has there."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Assignment:
    """What a trial is asked to do."""

    config: TrainConfig
    keep: frozenset[int]
    """Epochs to be stored with their state and kept, because other runs fork there."""
    keep_final_state: bool
    """Whether the last stage keeps its state, so that a longer run can continue from it."""
    store: str
    data_root: str | None
    """Folder of the data sets on every node; None: each node's own, see `fetching.data_root`."""
    on_gpu: bool
    report_every: float = 1.0
    """Seconds between two reports, but for epochs that other runs wait for."""


def train_run(parameters: dict[str, Any]) -> None:
    """Train one run to its end; the function that Tune calls, in a process that hosts many runs.

    Each report says how many `epochs` are done, whether this process `trained` them, the `rows` of
    newly stored epochs, the `warnings` logged since the last report and, last of all, the `failure`
    if there is one; `unshared` is the node's own. A run that fails with an error is a result: it
    would fail again, so the error is reported, not raised. Tune repeats, in another process, what
    ends with the process or lacks memory there.
    """
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float32)
    if not ray.get_gpu_ids():
        # Ray hides GPUs from those only that reserved others. CUDA reads this at its first call.
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
    driver = _Driver()
    with driver.hearing("mixup_core"):
        try:
            assignment: Assignment = parameters["assignment"]
            _require_same_store(assignment.store, parameters["study"], parameters["driver"])
            _train(assignment, driver)
        except UnsharedStoreError as error:
            driver.report(failure={"kind": "unshared", "message": str(error), "epoch": None})
        except DivergedError as error:
            failure = {"kind": "diverged", "message": str(error), "epoch": error.epoch}
            driver.report(failure=failure)
        except Exception as error:  # the border of the process: whatever it is, its run is named
            if lacks_memory(error):
                raise
            logging.getLogger(__name__).exception("run %s failed", parameters["run_key"])
            message = f"{type(error).__name__}: {error}"
            driver.report(failure={"kind": "failed", "message": message, "epoch": None})


def _train(assignment: Assignment, driver: "_Driver") -> None:
    if assignment.on_gpu and not torch.cuda.is_available():
        raise RuntimeError(
            "`torch sees the GPU that Ray gave to a run` must hold, "
            f"got (host={platform.node()!r}, torch={torch.__version__!r}); mend that node's driver "
            "or torch, or train with --gpus-per-run 0."
        )
    device = torch.device("cuda" if assignment.on_gpu else "cpu")
    config = assignment.config
    as_stored = replace(config.data, num_train=None, views="single", pool=1)
    data = _load_once(as_stored, assignment.data_root)
    storing = Storing(assignment, device, _place())
    state = storing.resume(lambda: TrainingState.initial(config, data.info, device))
    driver.report(epochs=len(state.records), rows=storing.take_rows())
    reported_at = time.monotonic()
    for record, seconds in _timed(fit(config, data, state, device=device)):
        storing.add(state, seconds)
        epochs = record.epoch + 1
        is_awaited = epochs in assignment.keep or epochs == config.epochs
        if is_awaited or time.monotonic() - reported_at >= assignment.report_every:
            driver.report(epochs=epochs, trained=True, rows=storing.take_rows())
            reported_at = time.monotonic()


class _Driver(logging.Handler):
    """The driver, as a trial speaks to it; what is logged meanwhile goes along."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._warnings: list[str] = []

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

    def report(
        self,
        *,
        epochs: int = 0,
        trained: bool = False,
        rows: Sequence[dict[str, Any]] = (),
        failure: dict[str, Any] | None = None,
    ) -> None:
        warnings, self._warnings = self._warnings, []
        tune.report(
            {
                "epochs": epochs,
                "trained": trained,
                "rows": list(rows),
                "warnings": warnings,
                "failure": failure,
            }
        )


class Storing:
    """When a run's stages are stored, and which of them stay."""

    def __init__(
        self,
        assignment: Assignment,
        device: torch.device,
        place: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._assignment = assignment
        self._store = Store(assignment.store)
        self._keys = stage_keys(assignment.config)
        self._run_key = run_key(assignment.config)
        self._environment = _environment(device) | dict(place)
        self._facts: list[EpochFacts] = []
        self._rows: list[dict[str, Any]] = []
        self._own: list[int] = []
        self._num_stored = 0
        self._trained_since = 0.0
        self._cost = 0.0

    def resume(self, initial: Callable[[], TrainingState]) -> TrainingState:
        """Return the state at the deepest stored stage that is sound; without one, the initial."""
        stored = self._store.read_all(self._keys)
        for epoch in range(len(self._keys), 0, -1):
            stage = stored.get(self._keys[epoch - 1])
            is_final = epoch == len(self._keys)
            if stage is None or (stage.state is None and not is_final):
                continue
            state = initial()
            if is_final:
                state.records = list(stage.records)
                self._accept(stage)
                return state
            if self._load(stage, state):
                self._accept(stage)
                self._own = [
                    own
                    for own, key in enumerate(self._keys[:epoch], 1)
                    if key in stored and stored[key].environment.get(_OWNER) == self._run_key
                ]
                return state
            self._store.drop_state(stage.key)
        return initial()

    def add(self, state: TrainingState, seconds: float) -> None:
        """Note that an epoch was trained, and store the stage if it is time."""
        self._facts.append(EpochFacts(seconds=seconds, stored_at_ms=time.time_ns() // 1_000_000))
        self._trained_since += seconds
        epoch, keep = len(state.records), self._assignment.keep
        due = (
            epoch == len(self._keys)
            or epoch in keep
            or self._trained_since >= min(STORE_AT_LEAST_EVERY, _STORE_COST_SHARE * self._cost)
        )
        if not due:
            return
        started = time.monotonic()
        is_final = epoch == len(self._keys)
        with_state = (
            not is_final or self._assignment.keep_final_state or epoch in self._assignment.keep
        )
        is_passing = not is_final and epoch not in keep
        stage = self._store.write(
            self._keys[epoch - 1],
            records=state.records,
            facts=self._facts,
            environment=self._environment | ({_OWNER: self._run_key} if is_passing else {}),
            state=state.to_bytes() if with_state else None,
        )
        self._accept(stage)
        if stage.environment.get(_OWNER) == self._run_key:
            self._own.append(epoch)
        if is_final:
            self._drop_all_own()
        else:
            self._drop_superseded()
        self._cost = time.monotonic() - started
        self._trained_since = 0.0

    def take_rows(self) -> list[dict[str, Any]]:
        """Return the epochs stored since the last call, as plain values for a report."""
        rows, self._rows = self._rows, []
        return rows

    def _load(self, stage: Stage, state: TrainingState) -> bool:
        """Bring an initial state to a stage; if that fails, neither is of use any more."""
        content = self._store.read_state(stage)
        if content is None:
            return False
        try:
            state.load_bytes(content, list(stage.records))
        except StateError as error:
            self._store.refuse_state(stage, f"is refused: {error}")
            return False
        return True

    def _accept(self, stage: Stage) -> None:
        """Go on from what is stored, which another writer may have stored first."""
        new = slice(self._num_stored, None)
        for record, facts in zip(stage.records[new], stage.facts[new], strict=True):
            self._rows.append({**record.to_plain(), **asdict(facts)})
        self._facts = list(stage.facts)
        self._num_stored = len(stage.records)

    def _drop_superseded(self) -> None:
        """Remove all passing stages of this run but two, should one prove corrupt."""
        self._delete(self._own[:-2])
        self._own = self._own[-2:]

    def _drop_all_own(self) -> None:
        """Remove the passing stages of this run, and what killed tries of it left behind."""
        self._delete(self._own)
        self._store.clear_torn(*self._keys)

    def _delete(self, epochs: Iterable[int]) -> None:
        keep = self._assignment.keep
        self._store.delete(*(self._keys[epoch - 1] for epoch in epochs if epoch not in keep))


def read_row(row: dict[str, Any]) -> tuple[EpochRecord, EpochFacts]:
    """Return the record and facts of one row of a report."""
    facts = EpochFacts(seconds=row["seconds"], stored_at_ms=row["stored_at_ms"])
    return EpochRecord.from_plain(row), facts


def _timed(records: Iterator[EpochRecord]) -> Iterator[tuple[EpochRecord, float]]:
    started = time.monotonic()
    for record in records:
        yield record, time.monotonic() - started
        started = time.monotonic()


@functools.lru_cache(maxsize=2)
def _load_once(data: DataConfig, root: str | None) -> Splits:
    """Keep the images of the last data sets at hand: the process hosts many runs in turn.

    A node that lacks a data set fetches it once: one process does, the others wait for it.
    """
    folder = data_root() if root is None else Path(root)
    if not is_present(data.name, folder):
        fetch(data.name, folder)
    return load_mapped(data, folder)


@functools.cache
def _require_same_store(store: str, study: str, driver: Holder) -> None:
    """Check, once in a process, that the driver will find what is stored here.

    Raises:
        UnsharedStoreError: If the driver's lease is not in the store as this node sees it.
    """
    found = Lease.latest(Store(store), study)
    if found != driver:
        raise UnsharedStoreError(
            "`every node sees the store` must hold, got "
            f"({store=}, host={platform.node()!r}, found the lease of: {found}); "
            "give --store a folder that all nodes share, or a bucket."
        )


def _place() -> dict[str, str]:
    """Return where on the cluster a run is: its node, and the GPUs it can see, none as ""."""
    return {
        "node": ray.get_runtime_context().get_node_id(),
        "gpus": os.environ["CUDA_VISIBLE_DEVICES"],
    }


def _environment(device: torch.device) -> dict[str, str]:
    """Return what else can move last bits, and where it ran; no credentials, no environment."""
    is_gpu = device.type == "cuda"
    return {
        "host": platform.node(),
        "pid": str(os.getpid()),
        "device": torch.cuda.get_device_name(device) if is_gpu else _processor(),
        "torch": torch.__version__,
        "numpy": np.__version__,
        "threads": str(torch.get_num_threads()),
    }


def _processor() -> str:
    """Return the model of the CPU, where Linux tells it, else its architecture."""
    try:
        described = Path("/proc/cpuinfo").read_text()
    except OSError:
        return platform.machine()
    models = re.findall(r"^model name\s*: (.+)$", described, flags=re.MULTILINE)
    return models[0] if models else platform.machine()
