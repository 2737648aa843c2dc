"""Table: one row per arm with its comparison to the baseline, and the rows of `runs.csv`."""

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from mixup_core.catalog import CATALOG
from mixup_core.config import TrainConfig, flatten
from reports.provenance import public
from reports.statistics import (
    CONFIDENCE,
    SUMMARY_COLUMNS,
    Comparison,
    Summary,
    compare,
    detectable_difference,
    holm,
    summarise,
)
from sweeps.results import Outcome, RunResult
from sweeps.study import Study

DASH = "—"
"""Stands where there is no number."""

SELECTION_RULE = "none"
"""How the printed numbers were chosen: arms fixed in advance, value of the last epoch."""

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

_LEVEL = 1 - CONFIDENCE


@dataclass(frozen=True, kw_only=True, slots=True)
class Metric:
    """How a metric is shown."""

    label: str
    unit: str
    """`%` or `nats`; empty for a pure number."""

    @property
    def scale(self) -> float:
        """Factor from the stored value to the shown one; files keep fractions."""
        return 100.0 if self.unit == "%" else 1.0

    @property
    def heading(self) -> str:
        """Label and unit."""
        return f"{self.label}, {self.unit}" if self.unit else self.label


METRICS: dict[str, Metric] = {
    "test/error": Metric(label="test error", unit="%"),
    "test/nll": Metric(label="test NLL", unit="nats"),
    "test/calibration_error": Metric(label="test calibration error", unit="%"),
    "val/error": Metric(label="validation error", unit="%"),
    "val/nll": Metric(label="validation NLL", unit="nats"),
    "val/calibration_error": Metric(label="validation calibration error", unit="%"),
    "train/loss": Metric(label="training loss", unit="nats"),
    "train/excess_loss": Metric(label="excess training loss", unit="nats"),
}
"""Known metrics in the order of columns; others follow by name, under their own name."""


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
    """Whether the mean is the lowest of the arms with every seed."""
    is_close: bool = False
    """Whether the arm is not told apart from the best at 5 % after Holm, a family of its own."""

    @property
    def seeds(self) -> str:
        """`5/5`; `4/5, 1 diverged` if a seed diverged."""
        counted = f"{self.n}/{self.seeds_expected}"
        return f"{counted}, {self.diverged} diverged" if self.diverged else counted


@dataclass(frozen=True, kw_only=True, slots=True)
class Selection:
    """How the arms of a table came to be in it."""

    rule: str
    """For the caption."""
    tried: Mapping[str, int]
    """Arm to the number of configurations it is the best of."""


FIXED_ARMS = Selection(rule="", tried={})
"""Nothing was selected: the arms were fixed in advance."""


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
        return f"{_markdown_grid([self.header, *self.cells])}\n\n{_escape_markdown(self.caption)}\n"

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
    reason: str
    """Last line of the error, or that there is none."""

    def __str__(self) -> str:
        """Return one line that names the run and says why it is missing."""
        done = f"{self.epochs}/{self.epochs_expected} epochs"
        return f"{self.arm} seed {self.seed}: {self.outcome}, {done}: {self.reason}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Table:
    """A study's result. Every rendering is a function of it: no clock, no order of arrival."""

    study: str
    metric: str
    """The metric compared, `test/error` or `val/error`."""
    metrics: tuple[str, ...]
    """Every metric of the complete runs, in the order of columns."""
    baseline: str
    rows: tuple[ArmRow, ...]
    """In the order of the study."""
    unfinished: tuple[UnfinishedRun, ...]
    caption: str
    selection: Selection = FIXED_ARMS

    @property
    def header(self) -> tuple[str, ...]:
        """Headings of the columns of `cells`."""
        signs = ("sign-flip p (Holm)",) if self._has_sign_flip else ()
        comparison = (f"minus {self.baseline}, points", "p (Holm)", *signs, "d [95 %]")
        further = (show(metric).heading for metric in self._further)
        tried = ("points tried",) if self.selection.tried else ()
        return ("arm", show(self.metric).heading, "n", *comparison, *further, *tried)

    @property
    def cells(self) -> tuple[tuple[str, ...], ...]:
        """Text of each cell, row by row, without markup but for the dagger."""
        return tuple(self._cells_of(row) for row in self.rows)

    def markdown(self) -> str:
        """Return the table, its caption and the runs it lacks, as Markdown."""
        lines = [self.header, *self.cells]
        grid = [[_escape_markdown(cell) for cell in line] for line in lines]
        for row, line in zip(self.rows, grid[1:], strict=True):
            if row.is_best:
                line[:2] = [f"**{cell}**" for cell in line[:2]]
        blocks = [_aligned(grid), _escape_markdown(self.caption)]
        if self.unfinished:
            lacking = "\n".join(f"- {_escape_markdown(str(run))}" for run in self.unfinished)
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
        header = [_escape_latex(cell) for cell in self.header]
        cells = [[_escape_latex(cell) for cell in line] for line in self.cells]
        best = [place for place, row in enumerate(self.rows) if row.is_best]
        styler = pd.DataFrame(cells, columns=header).style.hide(axis="index")
        styler.set_properties(subset=pd.IndexSlice[best, header[:2]], textbf="--rwrap")
        lacking = "".join(f" Not in the table: {run}." for run in self.unfinished)
        text: str = styler.to_latex(
            hrules=True,
            column_format="l" * len(header),
            caption=_escape_latex(self.caption + lacking),
            label=f"tab:{self.study}",
            position="t",
            position_float="centering",
        )
        return text

    @property
    def _further(self) -> tuple[str, ...]:
        split = self.metric.partition("/")[0]
        shown = (f"{split}/nll", f"{split}/calibration_error")
        return tuple(metric for metric in shown if metric in self.metrics)

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
        further = (_spell_summary(row, metric) for metric in self._further)
        return (
            row.arm,
            _spell_summary(row, self.metric) + mark,
            row.seeds,
            *comparison,
            *further,
            *((str(self.selection.tried[row.arm]),) if self.selection.tried else ()),
        )

    def _difference_of(self, row: ArmRow) -> str:
        comparison = row.comparison
        if comparison is None:
            return DASH
        scale = show(self.metric).scale
        interval = spell_interval(comparison.ci_low, comparison.ci_high, scale, 2)
        shared = "" if comparison.n == row.seeds_expected else f" (n = {comparison.n})"
        return f"{spell_number(comparison.difference * scale, 2)}{interval}{shared}"

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


def show(metric: str) -> Metric:
    """Return how a metric is shown; an unknown one under its own name."""
    unknown = Metric(label=metric, unit="%" if metric.endswith("error") else "")
    return METRICS.get(metric, unknown)


def arrange(study: Study, results: Iterable[RunResult]) -> dict[str, dict[int, RunResult]]:
    """Return arm to seed to result, both in the order of the study; a run without one is missing.

    Raises:
        ValueError: If a result belongs to no run of the study.
    """
    given = {(result.run.arm, result.run.seed): result for result in results}
    arranged: dict[str, dict[int, RunResult]] = {arm: {} for arm in study.arms}
    for run in study.runs():
        nothing = RunResult(run=run, stage=None, failure=None)
        arranged[run.arm][run.seed] = given.pop((run.arm, run.seed), nothing)
    if given:
        raise ValueError(f"`results are runs of the study` must hold, got ({sorted(given)}).")
    return arranged


def complete_runs(results: Mapping[int, RunResult]) -> dict[int, RunResult]:
    """Return the complete runs of an arm, by seed."""
    return {seed: result for seed, result in results.items() if result.outcome == "complete"}


def counted_runs(results: Mapping[int, RunResult]) -> dict[int, RunResult]:
    """Return the runs whose mean may be shown: the complete ones, none if a seed diverged."""
    has_diverged = any(result.outcome == "diverged" for result in results.values())
    return {} if has_diverged else complete_runs(results)


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
    metric = main_metric(study)
    baseline = "erm" if "erm" in study.arms else next(iter(study.arms))
    metrics = _metrics_of(arranged, metric)
    values = {
        arm: {
            seed: result.records[-1].metrics[metric]
            for seed, result in counted_runs(by_seed).items()
            if metric in result.records[-1].metrics
        }
        for arm, by_seed in arranged.items()
    }
    rows = [_summarised(arm, by_seed, metrics) for arm, by_seed in arranged.items()]
    if not _differing_data(study):
        rows = _marked(_compared(rows, values, baseline), values, metric)
    return Table(
        study=study.name,
        metric=metric,
        metrics=metrics,
        baseline=baseline,
        rows=tuple(rows),
        unfinished=tuple(
            _unfinished(result)
            for by_seed in arranged.values()
            for result in by_seed.values()
            if result.outcome != "complete"
        ),
        caption=_caption(study, metric, baseline, rows, made_with, selection),
        selection=selection,
    )


def main_metric(study: Study) -> str:
    """Return the metric a study's arms are compared by: `test/error` if a run measures it."""
    has_test = any(config.data.test for config in study.arms.values())
    return "test/error" if has_test else "val/error"


def run_records(study: Study, results: Iterable[RunResult]) -> list[dict[str, Any]]:
    """Return the columns of `runs.csv` by name, one mapping per run, arm by arm, seed by seed.

    `epochs` is the number of finished epochs; metrics are those of the last epoch of a complete
    run and None for any other.
    """
    arranged = arrange(study, results)
    metrics = _metrics_of(arranged, main_metric(study))
    records = []
    for arm, by_seed in arranged.items():
        flat = flatten(study.arms[arm])
        for seed, result in by_seed.items():
            is_complete = result.outcome == "complete"
            last = result.records[-1].metrics if is_complete else {}
            records.append(
                {"run_key": result.run.key, "arm": arm, "seed": seed}
                | {"epochs": len(result.records)}
                | {_column(path): flat.get(path) for path in study.varying()}
                | {name: last.get(name) for name in metrics}
                | {"outcome": result.outcome}
            )
    return records


def runs_csv(study: Study, results: Iterable[RunResult]) -> str:
    """Return `runs.csv`: one line per run, numbers at full precision, errors as fractions."""
    return spell_csv(run_records(study, results))


def spell_csv(records: Sequence[Mapping[str, Any]]) -> str:
    """Return records as CSV at full precision, with no cell that a spreadsheet would run."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    if records:
        writer.writerow([_csv_cell(name) for name in records[0]])
    writer.writerows([_csv_cell(value) for value in record.values()] for record in records)
    return text.getvalue()


def _column(path: str) -> str:
    """Return the column of a dotted path; `epochs` is taken by the number of finished epochs."""
    return "epochs_expected" if path == "epochs" else path


def _metrics_of(arranged: Mapping[str, Mapping[int, RunResult]], metric: str) -> tuple[str, ...]:
    found = {metric}
    for by_seed in arranged.values():
        for result in complete_runs(by_seed).values():
            found |= result.records[-1].metrics.keys()
    known = [name for name in METRICS if name in found]
    return (*known, *sorted(found - METRICS.keys()))


def _summarised(arm: str, by_seed: Mapping[int, RunResult], metrics: Sequence[str]) -> ArmRow:
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


def _compared(
    rows: Sequence[ArmRow], values: Mapping[str, Mapping[int, float]], baseline: str
) -> list[ArmRow]:
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


def _marked(
    rows: Sequence[ArmRow], values: Mapping[str, Mapping[int, float]], metric: str
) -> list[ArmRow]:
    """Return the rows with the best of them and those not told apart from it marked."""
    full = [row for row in rows if row.n == row.seeds_expected >= 2 and metric in row.summaries]
    if len(full) < 2:
        return list(rows)
    best = min(full, key=lambda row: row.summaries[metric].mean)
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


def _unfinished(result: RunResult) -> UnfinishedRun:
    message = result.failure.message.strip() if result.failure is not None else ""
    reason = message.splitlines()[-1] if message else "not trained to the end yet"
    return UnfinishedRun(
        arm=result.run.arm,
        seed=result.run.seed,
        outcome=result.outcome,
        epochs=len(result.records),
        epochs_expected=result.run.config.epochs,
        reason=public(reason),
    )


def _differing_data(study: Study) -> bool:
    """Return whether the arms are measured on different images, which no seed can pair."""
    return not {"data.name", "data.digest"}.isdisjoint(study.varying())


def _caption(  # noqa: PLR0913  each is a part of the text
    study: Study,
    metric: str,
    baseline: str,
    rows: Sequence[ArmRow],
    made_with: str,
    selection: Selection,
) -> str:
    parts = [
        _spell_data(study, metric),
        f"mean ± 95 % t interval over {_spell_seeds(study.seeds)}",
        selection.rule
        or f"selection rule {SELECTION_RULE} (arms fixed in advance, last epoch, "
        f"{metric.partition('/')[0]} results choose nothing)",
    ]
    family = [row for row in rows if row.p_holm is not None]
    if family:
        noun = "comparison" if len(family) == 1 else "comparisons"
        parts += [
            f"differences from {baseline} paired by seed, Holm over {len(family)} {noun}, "
            "intervals unadjusted",
            _spell_power(family, metric),
        ]
    elif len(rows) > 1:
        parts.append(
            "arms measured on different data, so no differences"
            if _differing_data(study)
            else f"no two seeds to pair with {baseline}, so no tests"
        )
    if any(row.is_best for row in rows):
        parts.append("bold: lowest mean of the arms with every seed")
    if any(row.is_close for row in rows):
        parts.append("†: not told apart from it at 5 % (paired by seed, Holm, its own family)")
    if any(0 < row.n < row.seeds_expected for row in rows):
        parts.append("an arm that lacks seeds is summarised and compared over those it has")
    if any(row.diverged for row in rows):
        parts.append("no mean where a seed diverged, for the survivors flatter the arm")
    parts += [made_with] if made_with else []
    return "; ".join(parts) + "."


def _spell_data(study: Study, metric: str) -> str:
    return " and ".join(
        dict.fromkeys(_spell_images(config, metric) for config in study.arms.values())
    )


def _spell_images(config: TrainConfig, metric: str) -> str:
    data = config.data
    known = CATALOG.get(data.name)
    title = known.title if known else data.name
    if data.views == "concat":
        title += " (two views by channel concatenation)"
    if metric == "val/error":
        return f"{title}, {_spell_count(data.val_size)} validation images"
    return f"{title}, {_spell_count(known.num_test)} test images" if known else title


def _spell_count(count: int) -> str:
    return f"{count:,}".replace(",", " ")


def _spell_seeds(seeds: Sequence[int]) -> str:
    ordered = sorted(seeds)
    if len(ordered) == 1:
        return f"one seed ({ordered[0]})"
    if ordered == list(range(ordered[0], ordered[-1] + 1)):
        return f"seeds {ordered[0]}-{ordered[-1]}"
    return "seeds " + ", ".join(map(str, ordered))


def _spell_power(family: Sequence[ArmRow], metric: str) -> str:
    scale = show(metric).scale
    many = len(family) > 1
    found = []
    for row in family:
        comparison = row.comparison
        assert comparison is not None
        assert comparison.sd is not None
        sds = detectable_difference(comparison.n, len(family))
        arm = f" ({row.arm})" if many else ""
        found.append(f"{spell_number(sds * comparison.sd * scale, 2)} points{arm}")
    step = f", at the first Holm step of {len(family)}" if many else ""
    return f"a difference of {' or '.join(found)} is found 4 times in 5{step}"


def _spell_summary(row: ArmRow, metric: str) -> str:
    summary = row.summaries.get(metric)
    if summary is None:
        return DASH
    shown = show(metric)
    digits = 2 if shown.unit == "%" else 3
    half = (
        DASH
        if summary.half_width is None
        else spell_number(summary.half_width * shown.scale, digits)
    )
    return f"{spell_number(summary.mean * shown.scale, digits)} ± {half}"


def _spell_effect(comparison: Comparison | None) -> str:
    if comparison is None or comparison.effect is None:
        return DASH
    interval = spell_interval(comparison.effect_low, comparison.effect_high, 1.0, 1)
    return spell_number(comparison.effect, 1) + interval


def spell_interval(low: float | None, high: float | None, scale: float, digits: int) -> str:
    """Return ` [low, high]`, scaled and rounded; nothing without an interval."""
    if low is None or high is None:
        return ""
    return f" [{spell_number(low * scale, digits)}, {spell_number(high * scale, digits)}]"


def spell_number(value: float, digits: int) -> str:
    """Return a rounded number; one that rounds to zero has no sign."""
    return f"{value:z.{digits}f}"


def spell_p(p: float | None) -> str:
    """Return a p value to two digits; a dash without one."""
    if p is None:
        return DASH
    return "< 0.001" if p < 0.001 else f"{p:#.2g}"


def _csv_cell(value: Any) -> str:
    match value:
        case None:
            return ""
        case float():
            return repr(float(value))
        case str():
            # A spreadsheet runs a cell that starts like this as a formula.
            return f"'{value}" if value.startswith(("=", "+", "-", "@", "\t", "\r")) else value
        case _:
            return json.dumps(value)


def _markdown_grid(lines: Iterable[Iterable[str]]) -> str:
    return _aligned([[_escape_markdown(cell) for cell in line] for line in lines])


def _aligned(grid: Sequence[Sequence[str]]) -> str:
    """Return escaped cells as a Markdown table, the first line as its header."""
    widths = [max(3, *map(len, column)) for column in zip(*grid, strict=True)]
    lines = [grid[0], ["-" * width for width in widths], *grid[1:]]
    return "\n".join("| " + " | ".join(map(str.ljust, line, widths)) + " |" for line in lines)


def _escape_markdown(text: str) -> str:
    return re.sub(r"([\\`*|]|<(?=[A-Za-z/!]))", r"\\\1", " ".join(text.split()))


_LATEX = str.maketrans(
    {
        **{character: f"\\{character}" for character in "&%$#_{}"},
        "\\": "\\textbackslash{}",
        "~": "\\textasciitilde{}",
        "^": "\\textasciicircum{}",
        "<": "$<$",
        ">": "$>$",
        "±": "$\\pm$",
        "†": "$^\\dagger$",
        DASH: "---",
    }
)


def _escape_latex(text: str) -> str:
    return re.sub(r"(?<![\w.-])-(?=\d)", "$-$", text.translate(_LATEX))
