"""Head to head: table of two arms compared on one metric, paired by seed; from one study or two."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any

from mixup_core.problem import Metric
from reports.numbers.comparison import Comparison, over_shared
from reports.numbers.runs import arrange, complete_runs, measures_of, values_of
from reports.numbers.spelling import DASH, spell_heading, spell_number, spell_p, spell_value
from reports.numbers.summary import Measure, summarise
from reports.tables.captions import EFFECT, spell_tags, spell_unpaired
from reports.tables.listings import Listing, spell_difference, spell_summary
from sweeps.state.results import RunResult
from sweeps.study.study import Study, value_key, with_tags

# Frozen: these and the other keys of `record`, which `report --arms A B --json` prints and scripts
# read by name; tests/mixsweep/cli/test_report.py fails.
_FIELDS = (
    "n", "difference", "sd", "ci_low", "ci_high", "p", "effect", "effect_low", "effect_high",
    "sign_flip_p",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class StudyArm:
    """One of two arms that are compared: its name, its study, and the results of the study."""

    study: Study
    arm: str
    results: tuple[RunResult, ...]

    @property
    def headline(self) -> str:
        """The headline metric that this arm has; arms of a search lack that of its confirmation."""
        return self.study.part([self.arm]).headline

    def values(self, metric: str) -> Mapping[int, float]:
        """Return the value of a metric for each complete run of the arm, by seed."""
        arranged = arrange(self.study, self.results)
        return values_of({self.arm: arranged[self.arm]}, metric, self.study.readout)[self.arm]


@dataclass(frozen=True, kw_only=True, slots=True)
class HeadToHead:
    """The comparison of two arms on one metric, paired by seed, with the values of both."""

    names: tuple[str, str]
    tags: tuple[tuple[str, ...], tuple[str, ...]]
    """Remarks printed beside each arm, such as `oracle`."""
    metric: str
    shown: Metric
    values: tuple[Mapping[int, float], Mapping[int, float]]
    measures: tuple[Measure, Measure]
    """Possible range of the metric in each arm, and the number of images that the metric counts,
    for the interval of the arm's mean."""
    comparison: Comparison
    """First arm minus second, over the seeds that both have."""

    def record(self) -> dict[str, Any]:
        """Return this comparison (values by seed, difference, p, ...) as a mapping for JSON."""
        return {
            "arms": list(self.names),
            "tags": list(map(list, self.tags)),
            "metric": self.metric,
            "values": [dict(values) for values in self.values],
            **{field: getattr(self.comparison, field) for field in _FIELDS},
        }

    def listings(self) -> tuple[Listing, Listing]:
        """Return two tables: a comparison of two arms, and the values of both arms by seed."""
        first, second = map(with_tags, self.names, self.tags)
        c, shown = self.comparison, self.shown
        effect = spell_value(c.effect, c.effect_low, c.effect_high, 1.0, 1)
        signs = () if c.sign_flip_p is None else (spell_p(c.sign_flip_p),)
        texts = (spell_difference(c, shown), spell_p(c.p), *signs, effect)
        ours, theirs = (
            summarise(list(values.values()), measure)
            for values, measure in zip(self.values, self.measures, strict=True)
        )
        heading = spell_heading(f"minus {second}", shown)
        comparison = Listing(
            name="head_to_head",
            title=f"{first} against {second}",
            header=(
                "arm",
                shown.heading,
                "n",
                heading,
                "p",
                *(("sign-flip p",) if signs else ()),
                "d",
            ),
            cells=(
                (first, spell_summary(ours, shown), str(ours.n), *texts),
                (second, spell_summary(theirs, shown), str(theirs.n), *("" for _ in texts)),
            ),
            caption="Values are means ± the half-width of the 95 % t interval over seeds. The "
            f"difference is the mean of the paired differences over the {c.n} seeds that both have."
            " Its interval and p value are not adjusted for other comparisons."
            + ("" if c.effect is None else f" {EFFECT}")
            + "".join(f" {told}" for told in spell_tags(chain(*self.tags))),
            records=(self.record(),),
        )
        rows = sorted(set().union(*self.values))
        by_seed = Listing(
            name="head_to_head_seeds",
            title="By seed",
            header=("seed", first, second, heading),
            cells=tuple((str(seed), *map(self._spell, self._row(seed))) for seed in rows),
            caption=f"Value of each run: {shown.heading}.",
            records=tuple(
                dict(
                    zip(("seed", "first", "second", "difference"), (s, *self._row(s)), strict=True)
                )
                for s in rows
            ),
        )
        return comparison, by_seed

    def _row(self, seed: int) -> tuple[float | None, float | None, float | None]:
        ours, theirs = (values.get(seed) for values in self.values)
        return ours, theirs, None if ours is None or theirs is None else ours - theirs

    def _spell(self, value: float | None) -> str:
        return DASH if value is None else spell_number(value * self.shown.scale, self.shown.digits)


def head_to_head(first: StudyArm, second: StudyArm, metric: str) -> HeadToHead:
    """Compare two arms on a metric, paired by seed; the arms may be of one study or of two."""
    sides = (first, second)
    studies = [side.study for side in sides]
    problem = studies[0].problem
    if problem.name != studies[1].problem.name:
        raise ValueError(
            f"the arms {first.arm} and {second.arm} cannot be compared, because their studies have "
            f"different problems, {problem.name} and {studies[1].problem.name}"
        )
    configs = [side.study.arms[side.arm] for side in sides]
    if len({problem.comparing.population(config, metric) for config in configs}) > 1:
        unpaired = spell_unpaired(configs, metric)
        raise ValueError(
            f"the arms {first.arm} and {second.arm} cannot be paired by seed, because they differ "
            f"in {unpaired}"
        )
    if studies[0].readout != studies[1].readout:
        raise ValueError(
            "the studies of both arms must have the same read-out, got "
            f"{studies[0].readout} and {studies[1].readout}"
        )
    values = [side.values(metric) for side in sides]
    for side, numbers in zip(sides, values, strict=True):
        if not numbers:
            raise ValueError(
                f"the arm {side.arm} of the study {side.study.name} cannot be compared: "
                f"{_why_none(side, metric)}"
            )
    seed = min(values[0].keys() & values[1].keys(), default=None)
    keys = {
        value_key(problem, run.config, metric, side.study.readout)
        for side in sides
        for run in side.study.runs_of(side.arm)
        if run.seed == seed
    }
    if len(keys) == 1:
        raise ValueError(
            f"the arms {first.arm} and {second.arm} have equal results at every seed, because "
            f"nothing in which they differ changes {metric}; name two arms that train differently"
        )
    own, other = (measures_of(s.study, metric, s.study.readout)[s.arm] for s in sides)
    comparison = over_shared([(1.0, values[0], own), (-1.0, values[1], other)])
    if comparison is None:
        raise ValueError(
            f"the arms {first.arm} and {second.arm} have no seed at which the runs of both are "
            "complete"
        )
    is_one = first.study.name == second.study.name
    names = [side.arm if is_one else f"{side.study.name}/{side.arm}" for side in sides]
    return HeadToHead(
        names=(names[0], names[1]),
        tags=(first.study.tags_of(first.arm), second.study.tags_of(second.arm)),
        metric=metric,
        shown=problem.metric(metric),
        values=(values[0], values[1]),
        measures=(own, other),
        comparison=comparison,
    )


def _why_none(side: StudyArm, metric: str) -> str:
    """Return the reason why an arm has no value of a metric."""
    by_seed = arrange(side.study, side.results)[side.arm]
    diverged = [str(seed) for seed, run in by_seed.items() if run.outcome == "diverged"]
    if diverged:
        return (
            f"it diverged at seed {', '.join(diverged)}, and its other runs alone would look too "
            "good"
        )
    done = complete_runs(by_seed).values()
    measured = sorted({name for run in done for name in run.records[-1].metrics})
    have = f"; its runs have {', '.join(measured)}" if measured else ""
    return f"no complete run has the metric {metric}{have}"
