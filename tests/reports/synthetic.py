"""Synthetic studies: configurations and records as a trainer would store them."""

import csv
import io
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from mixup_core.config.building import with_values
from mixup_core.images.config import MixConfig, TrainConfig
from mixup_core.images.data.data_config import DataConfig
from mixup_core.laws import Beta, Erm, Law, Midpoint
from mixup_core.records import EpochRecord
from mixup_core.store.manifests import EpochFacts, Failure, Stage
from reports.numbers.comparison import Comparison, contrast
from reports.numbers.summary import ANY
from sweeps.state.results import RunResult
from sweeps.study.claims import Claim, Relation, StatedComparison
from sweeps.study.study import Run, Study

EPOCHS = 10
LAWS: dict[str, Law] = {"erm": Erm(), "midpoint": Midpoint(), "uniform": Beta(alpha=1.0)}
FINAL_ERROR = {"erm": 0.225, "midpoint": 0.211, "uniform": 0.194}
AT_A_BOUND = ((0.0, 0.002, 0.0, 0.011, 0.001), (0.0,) * 5, (0.999, 1.0, 0.98, 1.0, 1.0))
"""Errors of five seeds whose t interval leaves [0, 1] or has no width."""
NOISE = (0.001, -0.004, 0.006, -0.002, 0.003, 0.0, -0.005, 0.004)


def make_study(
    arms: tuple[str, ...] = ("erm", "midpoint", "uniform"),
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4),
) -> Study:
    configs = {
        arm: TrainConfig(
            data=DataConfig(views="concat"),
            mix=MixConfig(law=LAWS.get(arm, Beta(alpha=2.0 + place))),
            epochs=EPOCHS,
            batch_size=100,
        )
        for place, arm in enumerate(arms)
    }
    return Study(
        name="small",
        description="Small & synthetic",
        arms=configs,
        seeds=seeds,
        baseline="erm" if "erm" in arms else arms[0],
        source="study: small\n",
    )


def with_oracle(study: Study, arm: str) -> Study:
    """Return a copy of a study in which one arm is also trained on the test images."""
    config = with_values(study.arms[arm], {"data.oracle": True})
    return replace(study, arms={**study.arms, arm: config})


def study_of(name: str, arms: Mapping[str, Any], seeds: Sequence[int] = (0,)) -> Study:
    """Return a study whose first arm is the baseline."""
    return Study(
        name=name, description="", arms=arms, seeds=tuple(seeds), baseline=next(iter(arms)),
        source=f"study: {name}\n",
    )  # fmt: skip


def stored(
    run: Run, records: Sequence[EpochRecord], seconds: float = 1.0, **environment: str
) -> RunResult:
    """Return the result of a run with these records."""
    facts = tuple(
        EpochFacts(seconds=seconds, stored_at_ms=1_700_000_000_000 + 6_000 * record.epoch)
        for record in records
    )
    stage = Stage(
        key=run.key, records=tuple(records), facts=facts, environment=environment, state=None
    )
    return RunResult(run=run, stage=stage, failure=None)


def finish(
    run: Run,
    error: float | None = None,
    *,
    epochs: int = EPOCHS,
    failure: str | None = None,
    kind: Literal["failed", "diverged"] = "failed",
    seconds: float = 6.0,
) -> RunResult:
    """Return a run that ended after some epochs with a given final error."""
    spread = 1 + list(LAWS).index(run.arm) if run.arm in LAWS else 1
    noise = NOISE[run.seed % len(NOISE)] * spread
    last = FINAL_ERROR.get(run.arm, 0.2) + noise if error is None else error
    records = tuple(
        EpochRecord(
            epoch=epoch,
            metrics={
                "train/loss": 2.3 * math.exp(-epoch / 4) + 0.2 + noise,
                "train/excess_loss": 2.3 * math.exp(-epoch / 4) + 0.1 + noise,
                "test/error": last + 0.5 * (math.exp(-epoch / 2) - math.exp(-(EPOCHS - 1) / 2)),
                "test/nll": 3 * last,
                "test/calibration_error": last / 10,
            },
        )
        for epoch in range(epochs)
    )
    result = RunResult(run=run, stage=None, failure=None)
    if epochs:
        known = {"host": "node-1", "device": "x86_64", "torch": "2.14.1", "threads": "1"}
        result = stored(run, records, seconds, **known)
    if failure is None:
        return result
    ended = Failure(run_key=run.key, kind=kind, message=failure, epoch=epochs, attempts=2)
    return replace(result, failure=ended)


SMALL = make_study()
FINISHED = tuple(map(finish, SMALL.runs()))
"""Results of `SMALL` in which every run is complete."""


def claim(
    relation: Relation,
    left: str | tuple[str, str] = "uniform",
    right: str | float | tuple[str, str] = "erm",
    metric: str = "test/error",
    says: str = "",
    **more: Any,
) -> Claim:
    more |= {"metric": metric, relation: (left, right)}
    return Claim(
        says=says or f"{left} {relation} {right}", source="a paper, table 1",
        that=StatedComparison(**more),
    )  # fmt: skip


def with_metrics(
    result: RunResult, metrics_of: Callable[[EpochRecord], Mapping[str, float]]
) -> RunResult:
    """Return a result in which each record has other metrics."""
    records = tuple(EpochRecord(epoch=r.epoch, metrics=metrics_of(r)) for r in result.records)
    return replace(result, stage=replace(result.stage, records=records))


def at_a_bound(study: Study, errors: Sequence[float]) -> tuple[RunResult, ...]:
    """Return results of which the baseline has these errors, by seed."""
    return tuple(
        finish(run, errors[run.seed] if run.arm == study.baseline else 0.4 + NOISE[run.seed])
        for run in study.runs()
    )


def ended(study: Study, ends: Mapping[tuple[str, int], Mapping[str, Any]]) -> list[RunResult]:
    return [finish(run, **ends.get((run.arm, run.seed), {})) for run in study.runs()]


def alone(values: Sequence[float]) -> Comparison:
    """Return the comparison of one arm with 0."""
    return contrast([(1.0, dict(enumerate(map(float, values))), ANY)])


def rows_of(text: str) -> list[dict[str, str]]:
    """Read CSV text; each row must have as many cells as the first."""
    rows = list(csv.DictReader(io.StringIO(text)))
    assert all(None not in (*row, *row.values()) for row in rows)
    return rows
