"""Arms: summaries over seeds, comparisons with the baseline, and the marks of the best arms."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from mixup_core.keys import stage_keys
from reports.numbers.families import BySeed, Family, Member, compare_pair
from reports.numbers.runs import counted_runs, measures_of
from reports.numbers.summary import Summary, summarise
from sweeps.state.results import RunResult
from sweeps.study.study import Study, with_tags


@dataclass(frozen=True, kw_only=True, slots=True)
class ArmRow:
    """One arm's row in a table of a report: means over seeds, and difference from the baseline."""

    arm: str
    n: int
    seeds_expected: int
    diverged: int
    """Number of seeds whose run diverged. If any did, the arm has no summary: the mean of the other
    seeds would be too good.
    """
    summaries: Mapping[str, Summary]
    """Mean, sd and interval over the `n` seeds, by metric. Empty if n is 0 or a seed diverged."""
    compared: Member | None = None
    """Difference of the headline metric from the baseline, paired by seed."""
    tags: tuple[str, ...] = ()
    """Remarks printed beside the arm, such as `oracle`."""
    is_best: bool = False
    is_close: bool = False
    """True if the arm does not differ significantly from the best one, allowing for the number of
    comparisons in the table. Also true if the two share fewer than two seeds.
    """

    @property
    def title(self) -> str:
        """The name of the arm with its tags: `bound [oracle]` for an arm `bound`."""
        return with_tags(self.arm, self.tags)

    @property
    def seeds(self) -> str:
        """The number of complete seeds of the arm, as text: `5/5`, or `4/5, 1 diverged`."""
        counted = f"{self.n}/{self.seeds_expected}"
        return f"{counted}, {self.diverged} diverged" if self.diverged else counted


def equals(study: Study) -> dict[str, str]:
    """Return, for each arm of a study, the first arm that computes exactly the same results."""
    computed = {
        arm: (study.seeds_of(arm), stage_keys(study.runs_of(arm)[0].config)[-1])
        for arm in (study.baseline, *study.arms)
    }
    first: dict[tuple[tuple[int, ...], str], str] = {}
    for arm, computation in computed.items():
        first.setdefault(computation, arm)
    return {arm: first[computed[arm]] for arm in study.arms}


def summarise_arm(
    study: Study, arm: str, by_seed: Mapping[int, RunResult], metrics: Sequence[str]
) -> ArmRow:
    """Return the table row of an arm: numbers of seeds, and a summary of each metric."""
    readout = study.readout
    counted = counted_runs(by_seed).values()
    outcomes = Counter(result.outcome for result in by_seed.values())
    numbers = {
        metric: [readout.of(result.records, metric) for result in counted] for metric in metrics
    }
    measured = {
        metric: [value for value in values if value is not None]
        for metric, values in numbers.items()
    }
    return ArmRow(
        arm=arm,
        n=outcomes["complete"],
        seeds_expected=len(by_seed),
        diverged=outcomes["diverged"],
        summaries={
            metric: summarise(values, measures_of(study, metric, readout)[arm])
            for metric, values in measured.items()
            if values and len(values) == len(counted)
        },
    )


def mark_best(
    rows: Sequence[ArmRow],
    values: Mapping[str, BySeed],
    equal: Mapping[str, str],
    family: Family,
    study: Study,
) -> list[ArmRow]:
    """Return table rows in which the best arm, and all arms not significantly worse, are marked.

    Two arms differ significantly if the interval of their difference, adjusted for all comparisons
    of the table, excludes 0. The arm with the best mean is compared with every other arm. If these
    are more comparisons, as for a baseline without results, they are adjusted for their own number.
    So the intervals of the truly best arm against all others are right with probability 95 %, and
    then the marked arms include it (Hsu 1984, multiple comparisons with the best).
    """
    metric = study.headline
    ranked = [row for row in rows if not row.tags]
    full = [row for row in ranked if row.n == row.seeds_expected >= 2 and metric in row.summaries]
    if len({equal[row.arm] for row in full}) < 2:
        return list(rows)
    sign = 1 if study.problem.metric(metric).is_lower_better else -1
    best = min(full, key=lambda row: sign * row.summaries[metric].mean)
    others = [row.arm for row in ranked if equal[row.arm] != equal[best.arm]]
    measures = measures_of(study, metric, study.readout)
    compared = {arm: compare_pair((arm, best.arm), values, measures) for arm in others}
    tests = {equal[arm] for arm, c in compared.items() if c is not None and c.p is not None}
    family = replace(family, size=max(family.size, len(tests)))
    different = {arm for arm, c in compared.items() if c is not None and family.member(c).is_told}
    return [
        replace(
            row,
            is_best=equal[row.arm] == equal[best.arm],
            is_close=row.arm in others and metric in row.summaries and row.arm not in different,
        )
        for row in rows
    ]
