"""Arm: its summaries over seeds, its comparison to the baseline and to the best arm."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from reports.runs import counted_runs
from reports.statistics import CONFIDENCE, Comparison, Summary, compare, holm, summarise
from sweeps.results import RunResult


@dataclass(frozen=True, kw_only=True, slots=True)
class ArmRow:
    """One arm of a table."""

    arm: str
    n: int
    """Seeds with a complete run."""
    seeds_expected: int
    diverged: int
    """Seeds whose run diverged; if any, the survivors would flatter the arm and are left out."""
    summaries: Mapping[str, Summary]
    """Metric to its summary over the `n` seeds; empty if n is 0 or a seed diverged."""
    comparison: Comparison | None = None
    """Main metric minus the baseline's over the seeds both have; None if there are none."""
    p_holm: float | None = None
    """`comparison.p` adjusted over the table."""
    sign_flip_p_holm: float | None = None
    """`comparison.sign_flip_p` adjusted over the table."""
    is_best: bool = False
    """Whether the mean is the best of the arms with every seed."""
    is_close: bool = False
    """Whether the arm is not told apart from the best at 5 % after Holm, a family of its own."""

    @property
    def seeds(self) -> str:
        """`5/5`; `4/5, 1 diverged` if a seed diverged."""
        counted = f"{self.n}/{self.seeds_expected}"
        return f"{counted}, {self.diverged} diverged" if self.diverged else counted


def summarise_arm(arm: str, by_seed: Mapping[int, RunResult], metrics: Sequence[str]) -> ArmRow:
    """Return the row of an arm alone: its counts, and its summaries of each metric."""
    last = [result.records[-1].metrics for result in counted_runs(by_seed).values()]
    outcomes = Counter(result.outcome for result in by_seed.values())
    return ArmRow(
        arm=arm,
        n=outcomes["complete"],
        seeds_expected=len(by_seed),
        diverged=outcomes["diverged"],
        summaries={
            metric: summarise([measured[metric] for measured in last])
            for metric in metrics
            if last and all(metric in measured for measured in last)
        },
    )


def compare_arms(
    rows: Sequence[ArmRow], values: Mapping[str, Mapping[int, float]], baseline: str
) -> list[ArmRow]:
    """Return the rows with their paired comparisons, Holm over all of them; `values` by seed."""
    comparisons = {
        row.arm: _compare_shared(values[row.arm], values[baseline])
        for row in rows
        if row.arm != baseline
    }
    adjusted = _adjusted({arm: c.p for arm, c in comparisons.items() if c})
    signs = _adjusted({arm: c.sign_flip_p for arm, c in comparisons.items() if c})
    return [
        replace(
            row,
            comparison=comparisons.get(row.arm),
            p_holm=adjusted.get(row.arm),
            sign_flip_p_holm=signs.get(row.arm),
        )
        for row in rows
    ]


def mark_best(
    rows: Sequence[ArmRow],
    values: Mapping[str, Mapping[int, float]],
    metric: str,
    *,
    is_lower_better: bool,
) -> list[ArmRow]:
    """Return the rows with the best of them and those not told apart from it marked."""
    full = [row for row in rows if row.n == row.seeds_expected >= 2 and metric in row.summaries]
    if len(full) < 2:
        return list(rows)
    sign = 1 if is_lower_better else -1
    best = min(full, key=lambda row: sign * row.summaries[metric].mean)
    against = {
        row.arm: _compare_shared(values[row.arm], values[best.arm])
        for row in rows
        if row is not best
    }
    adjusted = _adjusted({arm: c.p for arm, c in against.items() if c})
    return [
        replace(row, is_best=row is best, is_close=adjusted.get(row.arm, 0.0) > _LEVEL)
        for row in rows
    ]


def _compare_shared(arm: Mapping[int, float], baseline: Mapping[int, float]) -> Comparison | None:
    shared = arm.keys() & baseline.keys()
    if not shared:
        return None
    return compare({seed: arm[seed] for seed in shared}, {seed: baseline[seed] for seed in shared})


def _adjusted(ps: Mapping[str, float | None]) -> dict[str, float]:
    known = {arm: p for arm, p in ps.items() if p is not None}
    return dict(zip(known, holm(list(known.values())), strict=True))


_LEVEL = 1 - CONFIDENCE
