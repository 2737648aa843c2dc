"""Budget: a limit after which no new seeds or points start, and the spending so far."""

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

from mixup_core.config.checked import Checked
from mixup_core.config.limits import Count, Range
from mixup_core.store.manifests import EpochFacts, Stage

# Frozen: this key in stored stages. GPU-hours of earlier launches would not be counted;
# tests/sweeps/study/test_budget.py fails.
GPUS_PER_RUN = "gpus_per_run"
"""Key in the environment of a stage; its value is the number of GPUs that the run used."""

_MS_PER_HOUR = 3_600_000
SECONDS_PER_HOUR = 3_600

Hours = Annotated[float, Range(0, math.inf, "(]")]
"""A positive number of hours."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Budget(Checked):
    """Limits, such as hours, at which a search proposes no more points.

    A study without a search then starts no more seeds.
    """

    hours: Hours | None = None
    """Hours in which at least one run was training, over all launches; for a search, wall-clock
    hours. None for no limit."""
    gpu_hours: Hours | None = None
    """Training hours times GPUs per run, over all launches. None for no limit."""
    runs: Count | None = None
    """Largest number of runs to start, over all launches. A run of which another study has trained
    epochs counts as started. None for no limit."""

    @property
    def limits(self) -> dict[str, float]:
        """The limits of this budget that are set, by name: `hours`, `gpu_hours`, `runs`."""
        return {name: limit for name in UNITS if (limit := getattr(self, name)) is not None}

    def exceeded(self, hours: float, gpu_hours: float, runs: int = 0) -> str | None:
        """Return a phrase such as `used up its budget of 2 hours`; None if nothing is used up."""
        spent = {"hours": hours, "gpu_hours": gpu_hours, "runs": runs}
        for name, limit in self.limits.items():
            if spent[name] >= limit:
                return f"used up its budget of {limit:g} {UNITS[name]}"
        return None

    def hours_left(self, hours: float, gpu_hours: float, gpus: float) -> float | None:
        """Return the hours to a limit; None without one (GPU-hours need a GPU)."""
        remaining = [] if self.hours is None else [self.hours - hours]
        if self.gpu_hours is not None and gpus:
            remaining.append((self.gpu_hours - gpu_hours) / gpus)
        return max(0.0, min(remaining)) if remaining else None


UNITS = {"hours": "hours", "gpu_hours": "GPU-hours", "runs": "runs"}
"""Unit of each limit, by name."""


def gpus_of(stage: Stage) -> float:
    """Return the GPUs that trained a stage; 0 if none or another program's text is recorded."""
    text = stage.environment.get(GPUS_PER_RUN, "")
    is_ours = re.fullmatch(r"[0-9]{1,6}(\.[0-9]{1,9})?(e-[0-9]{2})?", text)
    return float(text) if is_ours else 0.0


class Spending:
    """Sums up the training time of stored epochs; an epoch that several runs share counts once."""

    def __init__(self) -> None:
        self.training_hours = 0.0
        self.gpu_hours = 0.0
        """Hours times GPUs; 0 if no run recorded GPUs."""
        self._epochs: set[EpochFacts] = set()

    def add(self, stages: Iterable[Stage | None]) -> None:
        for stage in stages:
            if stage is None:
                continue
            new = set(stage.facts) - self._epochs
            hours = sum(facts.seconds for facts in new) / SECONDS_PER_HOUR
            self.training_hours += hours
            self.gpu_hours += hours * gpus_of(stage)
            self._epochs |= new

    @property
    def hours(self) -> float:
        """Hours in which at least one run was training."""
        until, total = 0.0, 0.0
        for start, end in sorted(
            (facts.stored_at_ms - 1_000 * facts.seconds, facts.stored_at_ms)
            for facts in self._epochs
        ):
            total += max(0.0, end - max(start, until))
            until = max(until, end)
        return total / _MS_PER_HOUR
