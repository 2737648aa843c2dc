"""DECAY: a test problem without images, with time on a logarithmic axis.

Larger values are better.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from mixup_core.problem import Axis, Metric, Presentation, Problem, Searching
from mixup_core.records import EpochRecord
from sweeps.state.results import RunResult
from sweeps.study.study import Run, Study
from tests.reports.synthetic import stored, study_of


@dataclass(frozen=True, kw_only=True, slots=True)
class DecayConfig:
    """Configuration of a decay with a rate."""

    problem: ClassVar[str] = "decay"
    rate: float
    epochs: int = 4
    seed: int = 0


DECAY = Problem(
    name="decay",
    title="decay",
    config=DecayConfig,
    process="tests.reports.decay:none",
    metrics={
        "margin": Metric(label="margin", unit="nats", is_lower_better=False),
        "time": Metric(label="time", unit="s"),
        "norm": Metric(label="norm"),
    },
    headline=("margin",),
    axis=Axis(label="time", unit="step", scale="log", metric="time"),
    searching=Searching(objectives=("margin",)),
    presentation=Presentation(
        beside=("norm",),
        curves=(("norm", "time"),),
    ),
)


def decay_study(rates: Sequence[float] = (1.0, 2.0)) -> Study:
    return study_of("decay", {f"rate {r:g}": DecayConfig(rate=r) for r in rates}, range(3))


def decayed(run: Run) -> RunResult:
    """Return a finished run; differences between arms are equal at all seeds."""
    records = tuple(
        EpochRecord(
            epoch=epoch,
            metrics={
                "margin": run.config.rate * (1 + epoch) + 0.01 * (run.seed - 1) ** 2,
                "norm": float(epoch),
                "time": 10.0**epoch,
            },
        )
        for epoch in range(run.config.epochs)
    )
    return stored(run, records)
