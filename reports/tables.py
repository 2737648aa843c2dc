"""Table: one row per arm with its comparison to the baseline, and the tables beside it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from mixup_core.problem import Metric, Problem
from reports.arms import ArmRow, compare_arms, mark_best, summarise_arm
from reports.captions import FIXED_ARMS, Selection, caption_of, has_differing_populations
from reports.provenance import public
from reports.runs import arrange, counted_runs, metrics_of
from reports.spelling import (
    DASH,
    escape_latex,
    escape_markdown,
    markdown_grid,
    spell_csv,
    spell_heading,
    spell_interval,
    spell_number,
    spell_p,
)
from reports.statistics import SUMMARY_COLUMNS, Comparison, Summary
from sweeps.results import Outcome, RunResult
from sweeps.study import Study

_COMPARISON_COLUMNS = {
    "seeds_shared": "n",
    "difference": "difference",
    "difference_sd": "sd",
    "difference_ci_low": "ci_low",
    "difference_ci_high": "ci_high",
    "d": "effect",
    "d_ci_low": "effect_low",
    "d_ci_high": "effect_high",
    "p": "p",
}
"""Column of `table.csv` to the field of `Comparison` it holds."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Listing:
    """A table beside the main one: cells as text, and everything behind them as CSV."""

    name: str
    """Stem of its files."""
    title: str
    header: tuple[str, ...]
    cells: tuple[tuple[str, ...], ...]
    caption: str
    records: tuple[Mapping[str, Any], ...]

    def markdown(self) -> str:
        """Return the table and its caption as Markdown."""
        grid = [[escape_markdown(cell) for cell in line] for line in (self.header, *self.cells)]
        return f"{markdown_grid(grid)}\n\n{escape_markdown(self.caption)}\n"

    def csv(self) -> str:
        """Return the records at full precision."""
        return spell_csv(self.records)


@dataclass(frozen=True, kw_only=True, slots=True)
class UnfinishedRun:
    """A run the table lacks."""

    arm: str
    seed: int
    outcome: Outcome
    epochs: int
    """Epochs finished."""
    epochs_expected: int
    unit: str
    """What an epoch is called."""
    reason: str
    """Last line of the error, or that there is none."""

    def __str__(self) -> str:
        """Return one line that names the run and says why it is missing."""
        done = f"{self.epochs}/{self.epochs_expected} {self.unit}s"
        return f"{self.arm} seed {self.seed}: {self.outcome}, {done}: {self.reason}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Table:
    """A study's result. Every rendering is a function of it: no clock, no order of arrival."""

    study: str
    problem: Problem
    """Says how metrics are shown."""
    metric: str
    """The metric compared: the study's headline."""
    metrics: tuple[str, ...]
    """Every metric of the complete runs, in the order of columns."""
    baseline: str
    rows: tuple[ArmRow, ...]
    """In the order of the study."""
    unfinished: tuple[UnfinishedRun, ...]
    caption: str
    selection: Selection = FIXED_ARMS

    @property
    def shown(self) -> Metric:
        """How the metric compared is shown."""
        return self.problem.metric(self.metric)

    @property
    def header(self) -> tuple[str, ...]:
        """Headings of the columns of `cells`."""
        signs = ("sign-flip p (Holm)",) if self._has_sign_flip else ()
        minus = spell_heading(f"minus {self.baseline}", self.shown)
        comparison = (minus, "p (Holm)", *signs, "d [95 %]")
        further = (self.problem.metric(metric).heading for metric in self._further)
        tried = ("points tried",) if self.selection.tried else ()
        return ("arm", self.shown.heading, "n", *comparison, *further, *tried)

    @property
    def cells(self) -> tuple[tuple[str, ...], ...]:
        """Text of each cell, row by row, without markup but for the dagger."""
        return tuple(self._cells_of(row) for row in self.rows)

    def markdown(self) -> str:
        """Return the table, its caption and the runs it lacks, as Markdown."""
        lines = [self.header, *self.cells]
        grid = [[escape_markdown(cell) for cell in line] for line in lines]
        for row, line in zip(self.rows, grid[1:], strict=True):
            if row.is_best:
                line[:2] = [f"**{cell}**" for cell in line[:2]]
        blocks = [markdown_grid(grid), escape_markdown(self.caption)]
        if self.unfinished:
            lacking = "\n".join(f"- {escape_markdown(str(run))}" for run in self.unfinished)
            blocks.append(f"Not in the table:\n\n{lacking}")
        return "\n\n".join(blocks) + "\n"

    def csv(self) -> str:
        """Return one line per arm at full precision, metrics as fractions."""
        return spell_csv(self.records())

    def records(self) -> list[dict[str, Any]]:
        """Return the columns of `table.csv` by name, one mapping per arm."""
        return [self._record_of(row) for row in self.rows]

    def latex(self) -> str:
        """Return a LaTeX table that needs the package booktabs."""
        header = [escape_latex(cell) for cell in self.header]
        cells = [[escape_latex(cell) for cell in line] for line in self.cells]
        best = [place for place, row in enumerate(self.rows) if row.is_best]
        styler = pd.DataFrame(cells, columns=header).style.hide(axis="index")
        styler.set_properties(subset=pd.IndexSlice[best, header[:2]], textbf="--rwrap")
        lacking = "".join(f" Not in the table: {run}." for run in self.unfinished)
        text: str = styler.to_latex(
            hrules=True,
            column_format="l" * len(header),
            caption=escape_latex(self.caption + lacking),
            label=f"tab:{self.study}",
            position="t",
            position_float="centering",
        )
        return text

    @property
    def _further(self) -> tuple[str, ...]:
        head = self.metric.partition("/")[0]
        beside = (metric.replace("*", head) for metric in self.problem.beside)
        return tuple(metric for metric in beside if metric in self.metrics)

    @property
    def _has_sign_flip(self) -> bool:
        return any(row.sign_flip_p_holm is not None for row in self.rows)

    def _cells_of(self, row: ArmRow) -> tuple[str, ...]:
        mark = "†" if row.is_close else ""
        signs = (spell_p(row.sign_flip_p_holm),) if self._has_sign_flip else ()
        if row.arm == self.baseline:
            comparison = ("",) * (3 + len(signs))
        else:
            comparison = (
                self._difference_of(row),
                spell_p(row.p_holm),
                *signs,
                _spell_effect(row.comparison),
            )
        further = (self._summary_of(row, metric) for metric in self._further)
        return (
            row.arm,
            self._summary_of(row, self.metric) + mark,
            row.seeds,
            *comparison,
            *further,
            *((str(self.selection.tried[row.arm]),) if self.selection.tried else ()),
        )

    def _difference_of(self, row: ArmRow) -> str:
        comparison = row.comparison
        if comparison is None:
            return DASH
        shared = "" if comparison.n == row.seeds_expected else f" (n = {comparison.n})"
        return spell_difference(comparison, self.shown) + shared

    def _summary_of(self, row: ArmRow, metric: str) -> str:
        return spell_summary(row.summaries.get(metric), self.problem.metric(metric))

    def _record_of(self, row: ArmRow) -> dict[str, Any]:
        record: dict[str, Any] = {
            "arm": row.arm,
            "n": row.n,
            "seeds_expected": row.seeds_expected,
        }
        for metric in self.metrics:
            summary = row.summaries.get(metric)
            record |= {f"{metric}_{name}": getattr(summary, name, None) for name in SUMMARY_COLUMNS}
        compared = {
            name: getattr(row.comparison, field, None)
            for name, field in _COMPARISON_COLUMNS.items()
        }
        return record | {
            "diverged": row.diverged,
            "baseline": self.baseline,
            **compared,
            "p_holm": row.p_holm,
            "sign_flip_p_holm": row.sign_flip_p_holm,
            **({"points_tried": self.selection.tried[row.arm]} if self.selection.tried else {}),
        }


def tabulate(
    study: Study,
    results: Iterable[RunResult],
    *,
    made_with: str = "",
    selection: Selection = FIXED_ARMS,
) -> Table:
    """Return a study's table from whatever is there, down to no result at all.

    Args:
        study: Decides the arms, the seeds and their order.
        results: Results of its runs, in any order; runs without one count as missing.
        made_with: Device, versions and commit, for the end of the caption.
        selection: How the arms were chosen.
    """
    arranged = arrange(study, results)
    metric, baseline = study.headline, study.baseline
    metrics = metrics_of(study, arranged)
    values = {
        arm: {
            seed: result.records[-1].metrics[metric]
            for seed, result in counted_runs(by_seed).items()
            if metric in result.records[-1].metrics
        }
        for arm, by_seed in arranged.items()
    }
    rows = [summarise_arm(arm, by_seed, metrics) for arm, by_seed in arranged.items()]
    if not has_differing_populations(study):
        rows = mark_best(
            compare_arms(rows, values, baseline),
            values,
            metric,
            is_lower_better=study.problem.metric(metric).is_lower_better,
        )
    return Table(
        study=study.name,
        problem=study.problem,
        metric=metric,
        metrics=metrics,
        baseline=baseline,
        rows=tuple(rows),
        unfinished=tuple(
            _unfinished(result, study.problem.axis.unit)
            for by_seed in arranged.values()
            for result in by_seed.values()
            if result.outcome != "complete"
        ),
        caption=caption_of(study, rows, made_with, selection),
        selection=selection,
    )


def _unfinished(result: RunResult, unit: str) -> UnfinishedRun:
    message = result.failure.message.strip() if result.failure is not None else ""
    reason = message.splitlines()[-1] if message else "not trained to the end yet"
    return UnfinishedRun(
        arm=result.run.arm,
        seed=result.run.seed,
        outcome=result.outcome,
        epochs=len(result.records),
        epochs_expected=result.run.config.epochs,
        unit=unit,
        reason=public(reason),
    )


def spell_summary(summary: Summary | None, metric: Metric) -> str:
    """Return `22.22 ± 1.63`; a dash without a summary, and in place of a width there is not."""
    if summary is None:
        return DASH
    half = summary.half_width
    spread = DASH if half is None else spell_number(half * metric.scale, metric.digits)
    return f"{spell_number(summary.mean * metric.scale, metric.digits)} ± {spread}"


def spell_difference(comparison: Comparison | None, metric: Metric) -> str:
    """Return `-2.45 [-4.01, -0.89]`; a dash without a comparison."""
    if comparison is None:
        return DASH
    scale, digits = metric.scale, metric.digits
    interval = spell_interval(comparison.ci_low, comparison.ci_high, scale, digits)
    return f"{spell_number(comparison.difference * scale, digits)}{interval}"


def _spell_effect(comparison: Comparison | None) -> str:
    if comparison is None or comparison.effect is None:
        return DASH
    interval = spell_interval(comparison.effect_low, comparison.effect_high, 1.0, 1)
    return spell_number(comparison.effect, 1) + interval
