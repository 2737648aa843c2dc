"""Storing: decides when the stages of a run are stored, and which of them are kept."""

import functools
import logging
import os
import platform
import re
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self, cast

import numpy as np

from mixup_core.keys import run_key, stage_keys
from mixup_core.numeric_settings import BEGAN_IN, differences, recorded_settings
from mixup_core.problem import Config, Predicting, Process, StateError, problem_of
from mixup_core.records import EpochRecord
from mixup_core.store.checkpoints import Store
from mixup_core.store.folder import Folder
from mixup_core.store.manifests import EpochFacts, Stage
from mixup_core.store.wanted import wanted_name
from sweeps.machine.processor import processor
from sweeps.state.passing import OWNER
from sweeps.state.results import TRIED, last_try
from sweeps.state.stages import PlannedRun
from sweeps.study.budget import GPUS_PER_RUN

STORE_AT_LEAST_EVERY = 20.0
"""Seconds of training after which a stage is stored, however long storing it takes."""
_ASKS_A_BUCKET_AFTER = 1.0
"""Shortest epoch, in seconds, after which a bucket is checked for requests of other drivers. After
shorter epochs the check would cost too much."""
_STORE_COST_SHARE = 100
"""A stage is stored once training has taken this many times as long as storing a stage takes."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Assignment:
    """A run for a worker to train, with all settings that training it needs."""

    config: Config
    keep: frozenset[int]
    """Epochs, counted from 1, after which the state is kept because other runs need it."""
    keep_final_state: bool
    """True to keep the state after the last epoch, so that a longer run can continue from it."""
    store: str
    teacher: Config | None
    """Configuration of the teacher, whose final state is in the store; None for runs without a
    teacher."""
    data_root: str | None
    """Folder of the datasets on every node; None for the default folder of each node."""
    on_gpu: bool
    gpus: float = 0.0
    """Number of GPUs reserved for the run."""
    report_every: float = 1.0
    """Seconds between two reports to the driver. Epochs that other runs wait for are reported at
    once."""
    spare_bytes: int = 0
    """Largest final state, in bytes, that is kept although no run needs it yet. A longer run may
    continue from it."""
    start: int = 0
    """Number of epochs after which this driver's claim begins; the run must not start earlier."""

    @classmethod
    def of(cls, planned: PlannedRun, store: Store, **given: Any) -> Self:
        """Return the assignment of a planned run, with the data folder of this process.

        Args:
            planned: The run.
            store: The store to write results to.
            given: Values of the other fields.
        """
        own_data = os.environ.get("MIXSWEEP_DATA")
        return cls(
            config=planned.run.config,
            keep=planned.keep,
            store=store.url,
            teacher=planned.run.teacher,
            start=planned.start,
            data_root=str(Path(own_data).absolute()) if own_data else None,
            **given,
        )


_LOG = logging.getLogger(__name__)

_ONEDNN_LIMITS = ("ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA")
"""Environment variables that limit oneDNN's instruction set; the current name comes first."""


class Storing:
    """Stores the stages of one run while it trains, and deletes states that are no longer needed.

    A state that is stored only to resume this run is deleted after two newer ones.
    """

    def __init__(
        self,
        assignment: Assignment,
        device: str,
        place: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._assignment = assignment
        self._store = Store(assignment.store)
        self._keys = stage_keys(assignment.config)
        self._run_key = run_key(assignment.config)
        share = {GPUS_PER_RUN: f"{assignment.gpus:g}"} if assignment.gpus else {}
        self._environment = _environment(device, assignment.config) | share | dict(place)
        self._facts: list[EpochFacts] = []
        self._rows: list[dict[str, Any]] = []
        self._own: list[int] = []
        self.lost: list[int] = []
        """Epochs to keep that another driver trained without storing their state."""
        self._num_stored = 0
        self._trained_since = 0.0
        self._cost = 0.0

    def resume(self, start: Callable[[], Process]) -> Process:
        """Return the training process at its last intact stored stage; at epoch 0 if there is none.

        Args:
            start: Creates the process before its first epoch.
        """
        stored = self._store.read_all(self._keys)
        tries = max((last_try(stage, self._run_key) for stage in stored.values()), default=0)
        self._environment[TRIED] = f"{self._run_key} {tries + 1}"
        process = self._resumed(stored, start)
        kept = {epoch: stored.get(self._keys[epoch - 1]) for epoch in self._assignment.keep}
        self.lost = [
            epoch
            for epoch, stage in sorted(kept.items())
            if epoch < len(process.records) and (stage is None or stage.state is None)
        ]
        return process

    def _resumed(self, stored: Mapping[str, Stage], start: Callable[[], Process]) -> Process:
        for epoch in self._assignment.keep:
            self._claim(stored.get(self._keys[epoch - 1]))
        process = start()
        for epoch in range(len(self._keys), 0, -1):
            stage = stored.get(self._keys[epoch - 1])
            is_whole = epoch == len(self._keys) and not self._keeps(epoch)
            if stage is None or (stage.state is None and not is_whole):
                continue
            if is_whole:
                self._claim(stage)
                process.records[:] = stage.records
                self._accept(stage)
                return process
            if self._load(stage, process):
                self._note_change(stage)
                self._accept(stage)
                self._own = [
                    own
                    for own, key in enumerate(self._keys[:epoch], 1)
                    if key in stored and stored[key].environment.get(OWNER) == self._run_key
                ]
                return process
            self._store.drop_state(stage.key)
            process = start()
        return process

    def _note_change(self, stage: Stage) -> None:
        """Log and record that this process resumes a run which began in another environment.

        Args:
            stage: The stored stage from which the run continues.
        """
        then, now = stage.environment, self._environment
        earlier = [then[BEGAN_IN]] if BEGAN_IN in then else []
        if names := differences(then, now):
            told = " ".join(f"{name}={then.get(name, '')!r}" for name in names)
            earlier.append(f"epochs to {stage.epochs}: {told}")
            _LOG.warning(
                "goes on from epoch %d in another environment (%s; now %s): the last bits may "
                "differ from those of a run in one environment",
                stage.epochs, told, " ".join(f"{name}={now.get(name, '')!r}" for name in names),
            )  # fmt: skip
        if earlier:
            self._environment[BEGAN_IN] = "; ".join(earlier)

    def _keeps(self, epoch: int) -> bool:
        """Return True if the state after an epoch (counted from 1) must be kept."""
        is_last = epoch == len(self._keys)
        return epoch in self._assignment.keep or (is_last and self._assignment.keep_final_state)

    def add(self, process: Process, seconds: float) -> None:
        """Record a trained epoch, and store the stage if it is due.

        Args:
            process: The training process after the epoch.
            seconds: Duration of the epoch.
        """
        self._facts.append(EpochFacts(seconds=seconds, stored_at_ms=time.time_ns() // 1_000_000))
        self._trained_since += seconds
        epoch = len(process.records)
        wanted = self._is_wanted(epoch, seconds)
        keep = self._assignment.keep | ({epoch} if wanted else set())
        due = (
            epoch == len(self._keys)
            or epoch in keep
            or self._trained_since >= min(STORE_AT_LEAST_EVERY, _STORE_COST_SHARE * self._cost)
        )
        if not due:
            return
        started = time.monotonic()
        is_final = epoch == len(self._keys)
        with_state = not is_final or wanted or self._keeps(epoch)
        if is_final:
            self._store_predictions(process)
        is_passing = not is_final and epoch not in keep
        content = process.to_bytes() if with_state or self._assignment.spare_bytes else None
        if content is not None and not with_state and len(content) > self._assignment.spare_bytes:
            content = None
        write = functools.partial(
            self._store.write,
            self._keys[epoch - 1],
            records=process.records,
            facts=self._facts,
            environment=self._environment | ({OWNER: self._run_key} if is_passing else {}),
            state=content,
        )
        stage = write()
        while not is_passing and self._claim(stage):
            stage = write()
        if wanted:
            self._store.files.remove(wanted_name(self._keys[epoch - 1]))
        self._accept(stage)
        if stage.environment.get(OWNER) == self._run_key:
            self._own.append(epoch)
        if is_final:
            self._drop_all_own()
        else:
            self._drop_superseded()
        self._cost = time.monotonic() - started
        self._trained_since = 0.0

    def _is_wanted(self, epoch: int, seconds: float) -> bool:
        """Return True if another driver waits for the state after an epoch.

        A bucket is checked only after long epochs, because each check is a request over the
        network.
        """
        files = self._store.files
        pays = isinstance(files, Folder) or seconds > _ASKS_A_BUCKET_AFTER
        return pays and files.has(wanted_name(self._keys[epoch - 1]))

    def _store_predictions(self, process: Process) -> None:
        """Store the predictions of a finished run; done before the run counts as finished."""
        config = self._assignment.config
        if problem_of(config).cost.prediction_bytes(config):
            content = cast(Predicting, process).predictions()
            self._store.predictions.write(self._keys[-1], process.records[-1], content)

    def take_rows(self) -> list[dict[str, Any]]:
        """Return the epochs stored since the last call, as plain values for a report."""
        rows, self._rows = self._rows, []
        return rows

    def _load(self, stage: Stage, process: Process) -> bool:
        """Load a stage into a process; return True on success.

        After a failure, neither the stage nor the process can be used again.
        """
        content = self._store.states.read(stage)
        if content is None:
            return False
        try:
            process.load_bytes(content, list(stage.records))
        except StateError as error:
            self._store.states.refuse(stage, f"is refused: {error}")
            return False
        return True

    def _accept(self, stage: Stage) -> None:
        """Continue from a stored stage; another process may have stored it first."""
        new = slice(self._num_stored, None)
        for record, facts in zip(stage.records[new], stage.facts[new], strict=True):
            self._rows.append({**record.to_plain(), **asdict(facts)})
        self._facts = list(stage.facts)
        self._num_stored = len(stage.records)

    def _claim(self, stage: Stage | None) -> bool:
        """Keep a stage that a run stored only to resume itself; return True if it was one."""
        if stage is None or OWNER not in stage.environment:
            return False
        self._store.forget(stage.key, OWNER)
        return True

    def _drop_superseded(self) -> None:
        """Delete the resume states of this run except the newest two, in case one is damaged."""
        self._delete(self._own[:-2])
        self._own = self._own[-2:]

    def _drop_all_own(self) -> None:
        """Delete the resume states of this run, and files that killed tries have left."""
        self._delete(self._own)
        self._store.clear_torn(*self._keys)

    def _delete(self, epochs: Iterable[int]) -> None:
        keys = [self._keys[epoch - 1] for epoch in epochs if epoch not in self._assignment.keep]
        stored = self._store.read_all(keys)
        # Another run may have stored the same stage permanently, or be about to start from it.
        left = {k for k, stage in stored.items() if stage.environment.get(OWNER) != self._run_key}
        for key in stored.keys() - left:
            if self._store.files.has(wanted_name(key)):
                self._claim(stored[key])
                self._store.files.remove(wanted_name(key))
                left.add(key)
        self._store.delete(*(key for key in keys if key not in left))


def read_row(row: dict[str, Any]) -> tuple[EpochRecord, EpochFacts]:
    """Return the record and the facts (seconds, time) of one epoch, from a row of a report."""
    facts = EpochFacts(seconds=row["seconds"], stored_at_ms=row["stored_at_ms"])
    return EpochRecord.from_plain(row), facts


def device_name(device: str) -> str:
    """Return the model name of the GPU or CPU on which a run trains."""
    import torch

    return torch.cuda.get_device_name(device) if device == "cuda" else processor()


def _environment(device: str, config: Any) -> dict[str, str]:
    """Return facts about the machine that can change the last bits of results, by name.

    No credentials or environment variables are included.
    """
    import torch  # the driver uses this module without torch

    is_gpu = device == "cuda"
    return {
        "host": platform.node(),
        "pid": str(os.getpid()),
        "device": device_name(device),
        **(_gpu_libraries(config) if is_gpu else _instructions()),
        "torch": torch.__version__,
        "numpy": np.__version__,
        "threads": str(torch.get_num_threads()),
        **({"settings": settings} if (settings := recorded_settings(os.environ)) else {}),
    }


def _gpu_libraries(config: Any) -> dict[str, str]:
    """Return the versions of the GPU libraries and the options in force, by name.

    Args:
        config: Configuration of the run; `precision` and `deterministic` select GPU kernels.
    """
    import torch

    cudnn: Any = torch.backends.cudnn  # its functions have no types
    allowed = {
        "tf32": getattr(config, "precision", None) == "tf32",
        "deterministic": getattr(config, "deterministic", False),
        "benchmark": cudnn.benchmark,
    }
    return {
        "cuda": str(torch.version.cuda),
        "cudnn": str(cudnn.version()),
        "gpu_driver": _gpu_driver(),
        "gpu_allowed": " ".join(name for name, is_on in allowed.items() if is_on) or "nothing",
    }


def _gpu_driver() -> str:
    """Return the version of the GPU driver of the kernel; empty if Linux does not report it."""
    try:
        described = Path("/proc/driver/nvidia/version").read_text()
    except OSError:
        return ""
    found = re.search(r"Kernel Module\D*?([\d.]+)", described)
    return found[1] if found else ""


def _instructions() -> dict[str, str]:
    """Return the vector instructions that PyTorch (ATen) uses, and a limit set for oneDNN, if any.

    With other instructions the same seed gives other bits, and after many steps another error.
    """
    import torch

    limit = next(filter(None, map(os.environ.get, _ONEDNN_LIMITS)), None)
    return {
        "instructions": torch.backends.cpu.get_cpu_capability(),
        **({} if limit is None else {"onednn_at_most": limit}),
    }
