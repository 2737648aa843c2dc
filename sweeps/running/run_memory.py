"""RunMemory: the memory that a run of a study needs, as an upper bound or as measured."""

import contextlib
import hashlib
import json
import math
import os
import pickle
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal, Self

from mixup_core.config.written_forms import flatten
from mixup_core.faults import fault_of
from mixup_core.numeric_settings import installed_version
from mixup_core.problem import Config, problem_of
from sweeps.machine.resources import free_bytes, held_bytes, limited_bytes, processor
from sweeps.machine.terminal_text import still
from sweeps.running.assignment import Assignment
from sweeps.running.placement import LEAST_SHARE, Placement, PlacementError
from sweeps.running.retries import advice
from sweeps.study.study import Study

_MOST_MEASURED = 2
"""Number of configurations of a study that are measured: those with the highest upper bounds."""
_PATIENCE = 60.0
"""Longest measurement, in seconds. After it, the memory used so far counts."""
_BEGUN = b"measuring"
"""Line that the measuring process prints before it measures a configuration."""
_MARGIN = 1.1
"""Factor on the measured memory, because a run under Ray needs more memory than the measured
process."""
_UNMEASURED = frozenset({
    "seed", "epochs", "eval_every", "probes", "vary", "data.folder", "data.digest",
    "optimizer.lr", "optimizer.weight_decay",
})  # fmt: skip
"""Dotted paths of the configuration whose values do not change the memory of a training step."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RunMemory:
    """Memory that the most demanding run of a study needs, as an upper bound or as measured."""

    per_run: int
    """Memory in bytes that one run needs on its device, in addition to the images."""
    is_measured: bool
    """True if a training step was measured. If False, `per_run` is an upper bound with which all
    parallel runs fit, unless `fault` is set."""
    device: Literal["cpu", "cuda"] = "cpu"
    total: int | None = None
    """Total memory of the GPU in bytes; None for the CPU."""
    is_least: bool = False
    """True if the measurement took too long and was stopped; a run may need more than `per_run`."""
    fault: str = ""
    """Error message if a single training step ran out of memory; otherwise empty."""

    @classmethod
    def of(
        cls,
        study: Study,
        slots: int,
        device: Literal["cpu", "auto"],
        *,
        rough: float = math.inf,
    ) -> Self | None:
        """Return the memory of a study's most demanding run, or an upper bound; None if unknown.

        A training step is measured. On a CPU the bound is returned instead if all parallel runs fit
        with it, it is at most `rough` bytes, and the address space is not limited.
        """
        if study.problem.cost.peak_bytes is None:
            return None
        configs = list(study.arms.values())
        if study.search is not None:
            configs += [study.search.config_of(v) for v in study.search.space.corners()]
        bounds = {config: study.problem.cost.most_bytes(config) for config in configs}
        most = max(bounds.values())
        fits = most * slots <= free_for_runs(study)
        if device == "cpu" and limited_bytes() is None and fits and most <= rough:
            return cls(per_run=most, is_measured=False)
        of_step = {_step(config): config for config in sorted(configs, key=bounds.__getitem__)}
        chosen = list(of_step.items())[-_MOST_MEASURED:]
        names = {config: arm for arm, config in study.arms.items()}
        needs = study.problem.data
        root = None if needs is None else needs().root()
        measured = {names.get(config, "a point of the search"): config for _, config in chosen}
        return cls._kept([step for step, _ in chosen], measured, device, root)

    @classmethod
    def _kept(
        cls, steps: Sequence[str], configs: Mapping[str, Config], device: str, root: Path | None
    ) -> Self | None:
        """Return an earlier measurement on this machine; measure now if there is none."""
        versions = [processor(), *(str(installed_version(each)) for each in ("torch", "mixsweep"))]
        limit = limited_bytes()
        limits = () if limit is None else (f"address space {limit}",)
        visible = os.environ.get("CUDA_VISIBLE_DEVICES", "")
        text = "\n".join((*steps, device, *versions, visible, *limits))
        name = f"{hashlib.sha256(text.encode()).hexdigest()[:32]}.json"
        file = None if root is None else root / "measured" / name
        with contextlib.suppress(OSError, ValueError, TypeError):
            if file is not None:
                return cls(**json.loads(file.read_text()))
        with still("measuring the memory of a run"):
            found = cls._measured(configs, device)
        if found is not None and file is not None and not (found.fault or found.is_least):
            with contextlib.suppress(OSError):
                file.parent.mkdir(parents=True, exist_ok=True)
                partial = file.with_suffix(f".{os.getpid()}")
                partial.write_text(json.dumps(asdict(found)))
                partial.replace(file)
        return found

    @classmethod
    def _measured(cls, configs: Mapping[str, Config], device: str) -> Self | None:
        runs = [Assignment(config=config, store="") for config in configs.values()]
        command = [sys.executable, "-P", "-m", "sweeps.running.run_memory", device]
        pipe = subprocess.PIPE
        with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe) as child:
            try:
                out, err = child.communicate(pickle.dumps(runs), timeout=_PATIENCE)
            except subprocess.TimeoutExpired:
                held = held_bytes(child.pid)
                child.kill()
                child.communicate()
                return (
                    None if device != "cpu" else cls(per_run=held, is_measured=True, is_least=True)
                )
        text = err.decode(errors="replace")
        lines = [line for line in text.splitlines() if line.strip()]
        if child.returncode == 0:
            return cls(is_measured=True, **json.loads(out.splitlines()[-1]))
        if child.returncode == -9 or fault_of(text) == "memory" or "MemoryError" in text:
            reason = "the system killed the process"
            if lines and child.returncode != -9:
                reason = lines[-1]
            arm = [*configs][max(0, out.count(_BEGUN) - 1)]
            return cls(per_run=0, is_measured=False, fault=f"{arm}: {reason}; {advice()}")
        return None  # a run will report the same error

    def placed(self, placement: Placement) -> Placement:
        """Return a given placement, changed so that every run gets the memory that it needs."""
        if self.fault:
            raise PlacementError(f"a run lacks memory even if it trains alone: {self.fault}")
        if placement.is_auto:
            return replace(placement, gpus_per_run=self.share(LEAST_SHARE))
        if self.is_measured and self.device == "cpu":
            return replace(placement, memory_per_run=int(self.per_run * _MARGIN))
        return placement

    def side_by_side(self, study: Study) -> int | None:
        """Return how many runs on the CPU fit into free memory at a time, at least 1.

        None for runs on a GPU, or if the memory of a run was not measured.
        """
        if not self.is_measured or self.device != "cpu":
            return None
        return max(1, free_for_runs(study) // int(self.per_run * _MARGIN))

    def share(self, least: float) -> float:
        if self.device != "cuda" or not self.total or not self.per_run:
            return least
        fit = int(self.total // (self.per_run * _MARGIN))
        return max(least, 1 / (1 << max(0, fit.bit_length() - 1)))

    def says(self, study: Study) -> str:
        """Return as text how much memory a run of a study takes, for `mixsweep plan`."""
        if self.fault:
            return f"a run lacks memory even if it trains alone: {self.fault}"
        size = f"{self.per_run / 1e9:.1f} GB"
        if not self.is_measured:
            return f"at most {size} per run, computed from its network and batch size"
        if self.device == "cuda" and self.total:
            share = self.share(LEAST_SHARE)
            total = f"{self.total / 1e9:.1f} GB"
            return f"{size} per run, measured, of {total} on a GPU; --gpus-per-run {share:g} fits"
        free = f"{free_for_runs(study) / 1e9:.1f} GB"
        fit = self.side_by_side(study)
        how, least = "measured in a training step", ""
        if self.is_least:
            how, least = f"held by a training step after {_PATIENCE:.0f} s", "at least "
        if self.lacks(study):
            return (
                f"WARNING, a run takes {least}{size}, {how}, and only {free} are free; free "
                "memory, or reduce batch_size, the size of the images or the network"
            )
        return (
            f"{least or 'about '}{size} per run, {how}; {free} are free, enough for {fit} at a time"
        )

    def lacks(self, study: Study) -> bool:
        is_known = self.is_measured and self.device == "cpu"
        return is_known and free_for_runs(study) < self.per_run

    def warning(self, study: Study) -> str:
        return self.says(study) if self.lacks(study) else ""


def free_for_runs(study: Study) -> int:
    sizes: dict[str, int] = {}
    for config in study.arms.values():
        for name, size in study.problem.cost.memory(config).items():
            sizes[name] = max(size, sizes.get(name, 0))
    return max(0, free_bytes() - sum(sizes.values()))


def _step(config: Config) -> str:
    values = {path: value for path, value in flatten(config).items() if path not in _UNMEASURED}
    return json.dumps(values, default=str, sort_keys=True)


def _answer(runs: Iterable[Assignment], device: str) -> dict[str, Any]:
    """Measure the peak memory of configurations in this process; return `RunMemory` fields."""
    from sweeps.running.attempt import prepare_process

    prepare_process()
    total = None
    if device == "auto":
        import torch

        device = "cuda" if torch.cuda.is_available() else "cpu"
        total = torch.cuda.mem_get_info()[1] if device == "cuda" else None
    peaks = []
    for run in runs:
        sys.stdout.write(f"{_BEGUN.decode()}\n")
        sys.stdout.flush()
        config = run.open().config
        measure = problem_of(config).cost.peak_bytes
        assert measure is not None, "a problem that is not measured is not sent here"
        peaks.append(measure(config, device))
    return {"per_run": max(peaks), "device": device, "total": total}


if __name__ == "__main__":
    print(json.dumps(_answer(pickle.load(sys.stdin.buffer), sys.argv[1])))  # noqa: S301, T201
