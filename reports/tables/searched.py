"""Searched: the points that a search has tried, with their results, and tables that show them."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from mixup_core.problem import Metric
from reports.numbers.families import compare_pair, record_of
from reports.numbers.runs import are_paired, arrange, counted_runs, measure_of, measures_of
from reports.numbers.spelling import spell_heading, spell_p
from reports.numbers.summary import Summary, summarise, summary_columns
from reports.tables.captions import Selection, spell_family
from reports.tables.listings import Listing, spell_difference, spell_member, spell_summary
from reports.tables.table import Table
from sweeps.searching.selection import pareto_front, select_point
from sweeps.state.results import RunResult
from sweeps.study.readouts import Last
from sweeps.study.search import START_UP, Point, Search, SearchHistory
from sweeps.study.study import Study

_MOST_POINTS = 10


@dataclass(frozen=True, kw_only=True)
class Searched:
    """The points that a search has tried, and the arms of its study, with their results by seed."""

    study: Study
    """The study, with the points of the search as arms but without arms of the confirmation."""
    history: SearchHistory
    values: Mapping[str, Mapping[str, Mapping[int, float]]]
    """Value after the last epoch, by objective, arm and seed; only of complete runs."""

    @property
    def search(self) -> Search:
        """The search, as the study describes it."""
        assert self.study.search is not None
        return self.study.search

    @property
    def objective(self) -> str:
        """The first metric that the search minimises (no training loss); it selects the winner."""
        return self.search.strategy.objectives[0]

    @property
    def shown(self) -> Metric:
        """Label, unit and number of decimals of the metric by which a search selects its winner."""
        return self.study.problem.metric(self.objective)

    @property
    def baselines(self) -> tuple[str, ...]:
        """The arms of the study file, which are not points of the search."""
        points = set(self.study.points())
        return tuple(arm for arm in self.study.arms if arm not in points)

    @cached_property
    def winner(self) -> Point | None:
        """The complete point that the search's selection rule selects; None if none is complete."""
        values = self.values[self.objective]
        return select_point(
            self.search, self.history.points, lambda point: [*values.get(point.arm, {}).values()]
        )

    @property
    def tied(self) -> tuple[Point, ...]:
        """The complete points that have the same mean as the winner, without the winner itself."""
        return tuple(
            point
            for point in self.history.points
            if self.winner is not None
            and point.state == "complete"
            and point != self.winner
            and math.isclose(point.objectives[0], self.winner.objectives[0], rel_tol=1e-12)
        )

    @property
    def won(self) -> str:
        """The parameters of the search's winner as text, and the number of points tied with it."""
        if self.winner is None:
            return ""
        idle = self.search.without_effect(self.winner.values)
        return spell_winner(self.winner.arm, self.winner.values, len(self.tied), idle)

    @property
    def ranked(self) -> tuple[Point, ...]:
        """All points of a search: complete ones, best mean first; pruned; unfinished; failed."""
        order = ("complete", "pruned", "open", "failed")
        return tuple(
            sorted(
                self.history.points,
                key=lambda point: (order.index(point.state), point.objectives, point.number),
            )
        )

    def summary(self, arm: str, objective: str | None = None) -> Summary | None:
        """Return mean, sd and interval of a metric over the seeds of a point or an arm."""
        metric = objective or self.objective
        values = self.values[metric].get(arm, {})
        if not values:
            return None
        return summarise(list(values.values()), measure_of(self.study, arm, metric, Last()))

    @property
    def known(self) -> str:
        """A caption's phrase on how many points had stored results before they were proposed."""
        num_known = sum(point.is_known for point in self.history.points)
        return f" ({num_known} of them already in the store)" if num_known else ""

    def selection(self, metric: str) -> Selection:
        """Return how the search selected its winner, for the caption of a table."""
        tried, seeds = len(self.history.points), len(self.study.seeds)
        label, rule = self.study.problem.metric(metric).label, self.search.strategy.select
        counted = dict.fromkeys(self.baselines, 1)
        if self.winner is not None:
            counted[self.winner.arm] = tried
        return Selection(
            rule=rule,
            found=f"Selection rule {rule}: {_RULES[rule]} of the {self.shown.label} over {seeds} "
            f"seeds, out of {tried} points tried{self.known}. The other arms were not searched. "
            + (f"The selected {self.won}. " if self.won else "")
            + "All arms in this table were trained again at seeds that the search never used, and "
            f"{label} was measured in these runs only.",
            tried=counted,
            winner=None if self.winner is None else self.winner.arm,
        )


_RULES = {
    "val-mean": "the point with the lowest mean",
    "val-1se": "the simplest point within one standard error of the lowest mean",
}


def spell_winner(
    arm: str, values: Mapping[str, Any], num_tied: int, idle: Collection[str] = ()
) -> str:
    """Return the parameters of a search's winner as text, and the number of points tied with it."""
    settings = ", ".join(
        f"{path} = {_spell_value(value)}" + (" (has no effect)" if path in idle else "")
        for path, value in values.items()
    )
    tied = f"{num_tied or 'no'} other point{'s have' if num_tied > 1 else ' has'} the same mean"
    return f"{arm} has {settings}; {tied}"


def gather(study: Study, results: Sequence[RunResult], history: SearchHistory) -> Searched:
    """Collect the points of a search with their results, for tables."""
    assert study.search is not None
    confirmed = study.confirmed()
    part = study.part(arm for arm in study.arms if arm not in confirmed)
    of_part = [result for result in results if result.run.arm in part.arms]
    arranged = arrange(part, of_part)
    return Searched(
        study=part,
        history=history,
        values={
            objective: {
                arm: {
                    seed: result.records[-1].metrics[objective]
                    for seed, result in counted_runs(by_seed).items()
                    if objective in result.records[-1].metrics
                }
                for arm, by_seed in arranged.items()
            }
            for objective in study.search.strategy.objectives
        },
    )


def points_table(searched: Searched) -> Listing:
    """Return the table of a search's best points, with the arms of the study file below them."""
    search, objective = searched.search, searched.objective
    metric = searched.study.problem.metric
    paths = [parameter.path for parameter in search.space.parameters]
    front = {point.arm for point in pareto_front(searched.history.points)}
    several = len(search.strategy.objectives) > 1
    marks = ("Pareto",) if several else ()
    baseline, title_of = searched.study.baseline, searched.study.title_of
    header = (
        "point",
        *paths,
        *(metric(name).heading for name in search.strategy.objectives),
        "n",
        spell_heading(f"minus {title_of(baseline)}", searched.shown),
        *marks,
        "state",
    )
    cells, records = [], []
    measured = searched.values[objective]
    measures = measures_of(searched.study, objective, Last())
    entries: list[tuple[str, Point | None]] = [(point.arm, point) for point in searched.ranked]
    entries += [(arm, None) for arm in searched.baselines]
    for place, (arm, point) in enumerate(entries):
        summaries = {name: searched.summary(arm, name) for name in search.strategy.objectives}
        is_paired = arm != baseline and are_paired(searched.study, (arm, baseline), objective)
        comparison = compare_pair((arm, baseline), measured, measures) if is_paired else None
        values = {} if point is None else point.values
        expected = len(searched.study.seeds_of(arm))
        summary = summaries[objective]
        # Frozen: columns of `tables/points.csv`, which scripts read by name;
        # tests/reports/tables/test_searched.py fails.
        records.append(
            {"arm": arm, "rank": None if point is None else place + 1}
            | {path: values.get(path) for path in paths}
            | {
                column: value
                for name, found in summaries.items()
                for column, value in summary_columns(name, found).items()
            }
            | {"n": 0 if summary is None else summary.n, "seeds_expected": expected}
            | {
                "baseline": baseline,
                "difference": getattr(comparison, "difference", None),
                "difference_ci_low_unadjusted": getattr(comparison, "ci_low", None),
                "difference_ci_high_unadjusted": getattr(comparison, "ci_high", None),
                "on_front": arm in front if several else None,
                "selected": point is not None and point == searched.winner,
                "tied": point in searched.tied,
                "state": "arm" if point is None else point.state,
            }
        )
        if point is None or place < _MOST_POINTS or (several and arm in front):
            state: str = "arm" if point is None else point.state
            if point is not None and point.is_known:
                state += ", known"
            chosen = point is not None and point == searched.winner
            cells.append(
                (
                    title_of(arm),
                    *(_spell_value(values.get(path)) for path in paths),
                    *(spell_summary(found, metric(name)) for name, found in summaries.items()),
                    f"{0 if summary is None else summary.n}/{expected}",
                    "" if arm == baseline else spell_difference(comparison, searched.shown),
                    *(("*" if arm in front else "",) if several else ()),
                    f"{state}, selected" if chosen else state,
                )
            )
    return Listing(
        name="points",
        title="Best points",
        header=header,
        cells=tuple(cells),
        caption=_points_caption(searched, title_of(baseline)),
        records=tuple(records),
    )


def winner_table(searched: Searched, table: Table) -> Listing:
    """Return the table of differences between the winner of a search and each arm."""
    winner, shown = table.selection.winner, table.shown
    assert winner is not None
    members = {
        row.arm: table.family.members.get((winner, row.arm))
        for row in table.rows
        if row.arm != winner
    }
    records: list[dict[str, Any]] = []
    for arm, member in members.items():
        n = None if member is None else member.comparison.n
        records.append({"arm": winner, "baseline": arm, "n": n, **record_of(member)})
    return Listing(
        name="confirmed",
        title="The selected point against each arm",
        header=("comparison", spell_heading(shown.label, shown), "n", "p"),
        cells=tuple(
            (
                " minus ".join(map(table.title_of, (winner, arm))),
                spell_member(member, shown),
                str(0 if member is None else member.comparison.n),
                spell_p(None if member is None else member.p),
            )
            for arm, member in members.items()
        ),
        caption=f"Differences of {shown.label} are paired by seed, at the seeds of the "
        f"confirmation, which the search never used. {spell_family(table.family)} The comparisons "
        "in the table of arms are included in this adjustment. The point was selected by the rule "
        f"{searched.search.strategy.select} ({searched.shown.label}) among "
        f"{len(searched.history.points)} points tried.",
        records=tuple(records),
    )


def _points_caption(searched: Searched, baseline: str) -> str:
    points = searched.history.points
    search = searched.search
    states = [
        f"{sum(point.state == state for point in points)} {state}"
        for state in ("pruned", "failed", "open")
        if any(point.state == state for point in points)
    ]
    strategy = search.strategy
    ended = f" ({', '.join(states)})" if states else ""
    tried = f"The search tried {len(points)} of {search.points} points{ended} with the sampler "
    tried += f"{strategy.sampler}{searched.known}"
    if (waits := START_UP.get(strategy.sampler)) is not None:
        are = "point was" if waits == 1 else "points were"
        tried += f", which sampled at random until {waits} {are} complete"
    parts = [
        f"Selection rule {strategy.select}: {_RULES[strategy.select]} of the "
        f"{searched.shown.label} after the last epoch over {len(searched.study.seeds)} seeds.",
        f"{tried}.",
        *([f"The selected {searched.won}."] if searched.won else []),
        "Values are means ± the half-width of the 95 % t interval over seeds. Differences from "
        f"{baseline} are paired by seed and not adjusted for multiple comparisons.",
        "The arms are one configuration each and were not searched.",
        "The mean of the selected point is biased downwards, because it was selected by this mean; "
        "only the confirmation at other seeds supports a claim.",
    ]
    if strategy.prune_after is not None:
        parts.append(
            f"Pruned: after {strategy.prune_after} seeds the point was worse than the best point "
            "at the same seeds, by a one-sided 95 % confidence bound of the paired difference, "
            "adjusted for all points."
        )
    if len(search.strategy.objectives) > 1:
        parts.append(
            "Pareto *: no other point is better in one objective and at least as good in the "
            "others."
        )
    if len(points) > _MOST_POINTS:
        parts.append(f"The best {_MOST_POINTS} points are shown; all are in tables/points.csv.")
    if searched.history.ended is not None:
        parts.append(f"The search {searched.history.ended}.")
    return " ".join(parts)


def _spell_value(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)
