"""Manuscript: a page of text into which verdicts, numbers and figures of studies are filled.

A manuscript is a Jinja template of Markdown. Its text says what papers state. The template calls
functions that insert measured results: `verdicts`, `results`, `again`, `number`, `first`, `cost`,
`figure`, and `winner` for the point that a search selected.

    python -m docs.pages.manuscript docs/pages/manuscripts/theory.md --home runs --out FOLDER

The page links to the figures in the folder of each report, and copies nothing. With `--reports
reports/published`, published reports are used instead of those in the home. Values at a position on
the axis, such as an epoch, are read from the store of the home; they are `—` if it lacks the runs.
"""

import argparse
import csv
import json
import math
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from jinja2 import Environment, StrictUndefined

from docs.pages.manuscript_cells import (
    NEAR,
    OTHER,
    SAME,
    MeasuredColumn,
    escaped,
    mark_of,
    read_cell,
    spell_claim,
    spell_judged_value,
    spell_mean,
    spell_number,
    spell_summary,
)
from docs.pages.published import file_of
from mixup_core.records import EpochRecord
from mixup_core.store.checkpoints import Store
from reports.numbers.runs import arrange, counted_runs, measure_of
from reports.numbers.spelling import DASH, escape_markdown, markdown_grid
from reports.numbers.summary import Summary, summarise
from reports.tables.searched import spell_winner
from sweeps.machine.home import Home
from sweeps.reading.study_file import load_study
from sweeps.state.results import RunResult, read_results
from sweeps.study.readouts import Last
from sweeps.study.study import Study


@dataclass(kw_only=True)
class Manuscript:
    """Makes a page from a manuscript: a template of a text, with calls of methods of this class.

    Most methods return measured results as a piece of Markdown.
    """

    home: Home
    out: Path
    reports: Path | None = None
    """Folder in which each study's report is the subfolder with the study's name; None: the reports
    of the home are used.
    """
    _read: dict[str, Mapping[str, Mapping[int, RunResult]]] = field(default_factory=dict)

    def write(self, template: Path) -> Path:
        """Fill results into a manuscript, write it as a page of Markdown, and return its path.

        Args:
            template: File of the manuscript, a Jinja template.

        Raises:
            FileNotFoundError: If a study has no report in `reports`, or, if that is None, in the
                home.
            KeyError: If the manuscript names an unknown study, arm or metric.
        """
        # The page is Markdown, not HTML; each function escapes its own output.
        environment = Environment(  # noqa: S701
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=True,
        )
        functions = (
            self.has, self.verdicts, self.winner, self.results, self.again, self.number, self.first,
            self.cost, self.figure,
        )  # fmt: skip
        environment.globals |= {function.__name__: function for function in functions}
        environment.globals["Column"] = MeasuredColumn
        text = environment.from_string(template.read_text(encoding="utf-8")).render()
        page = self.out / "README.md"
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(text, encoding="utf-8")
        return page

    def has(self, study: str) -> bool:
        """Return True if a study has a report in `reports`, or in the home if `reports` is None."""
        return self._report(study).exists()

    def verdicts(self, study: str) -> str:
        """Return a table of a study's claims and verdicts; an empty text if it has none.

        The column `comparison` names metric and arms, such as `test error, %: uniform less than
        erm`. The column `value` is the mean over seeds of its left side minus its right side (or
        of the left side alone, if it is compared with a number), in the metric's unit.

        Raises:
            ValueError: If the report has verdicts of other claims than the study has now.
        """
        rows = self._rows(study, "verdicts.csv")
        if not rows:
            return ""
        measured = _study(study)
        if [claim.says for claim in measured.claims] != [row["says"] for row in rows]:
            raise ValueError(
                f"{self._report(study) / 'verdicts.csv'} has other claims than {study}; write the "
                "report again."
            )
        grid = [["claim", "source", "verdict", "comparison", "value [interval]", "n"]]
        for claim, row in zip(measured.claims, rows, strict=True):
            grid.append(
                [
                    claim.says,
                    claim.source,
                    f"**{row['verdict']}**",
                    spell_claim(measured, claim, row["reference"]),
                    spell_judged_value(measured, claim, row),
                    row["n"],
                ]
            )
        return markdown_grid([[escaped(cell) for cell in line] for line in grid])

    def winner(self, study: str) -> str:
        """Return the point that a search selected, from `points.csv`, to be put into a sentence.

        For example: `point 3 has network.init = 0.13, network.neurons = 4; 2 other points have the
        same mean (features not learned, %: 1.2 ± 0.4 over 3 seeds; 20 points tried)`.
        """
        search, problem = _study(study).search, _study(study).problem
        assert search is not None, "only the study of a search has a winner"
        points = [row for row in self._rows(study, "points.csv") if row["rank"]]
        chosen = [row for row in points if row["selected"] == "true"]
        if not chosen:
            return f"none of {len(points)} points is selected"
        (row,) = chosen
        paths = [parameter.path for parameter in search.space.parameters]
        values = {path: read_cell(row[path]) for path in paths if row[path]}
        tied = sum(other["tied"] == "true" for other in points)
        mean = spell_summary(row, search.strategy.objectives[0], problem)
        return escape_markdown(
            f"{spell_winner(row['arm'], values, tied)} "
            f"({problem.metric(search.strategy.objectives[0]).heading}: {mean} over {row['n']} "
            f"seeds; {len(points)} points tried)"
        )

    def results(self, study: str, *metrics: str) -> str:
        """Return a table of metrics by arm, from `table.csv`: mean ± half of the 95 % interval.

        If all seeds have the same value, the cell is `100 (all 5)` instead of an interval.
        """
        problem = _study(study).problem
        grid = [["arm", "n", *(problem.metric(metric).heading for metric in metrics)]]
        for row in self._rows(study, "table.csv"):
            cells = [row["arm"], f"{row['n']}/{row['seeds_expected']}"]
            cells += [spell_summary(row, metric, problem) for metric in metrics]
            grid.append(cells)
        return markdown_grid([[escaped(cell) for cell in line] for line in grid])

    def again(
        self,
        study: str,
        columns: Sequence[MeasuredColumn],
        rows: Mapping[str, str],
        printed_seeds: int | None = None,
    ) -> str:
        """Return a table of a paper with our number, the printed number and a mark in each cell.

        The mark `=`: our number rounds to the printed digits. `≈`: the printed number
        lies in a 95 % interval or within 10 % of our number. `≠`: neither. If all seeds have the
        same value, no ± is written.

        Args:
            study: Name of the study that measures the table again.
            columns: Heading and metric of each column.
            rows: Printed numbers of each arm, separated by spaces; `-` for a missing number.
            printed_seeds: Number of seeds of which each printed number is the mean. `≈` then uses
                the 95 % prediction interval of a mean of so many seeds,
                `mean ± t s sqrt(1/n + 1/printed_seeds)`, with s the sd over our n seeds. None if
                the printed number does not vary over seeds, or their number is unknown; `≈` then
                uses the interval of our mean.
        """
        measured = _study(study)
        counts: Counter[str] = Counter()
        grid = [["arm", "n", *(column.heading for column in columns)]]
        for arm, printed in rows.items():
            cells, most = [], 0
            for column, word in zip(columns, printed.split(), strict=True):
                ours = self._measured(study, arm, column)
                if word == "-" or ours is None:
                    cells.append(DASH if word == "-" else f"{DASH} ({word})")
                    continue
                most = max(most, ours.n)
                mark = mark_of(ours, word, printed_seeds)
                counts[mark] += 1
                cells.append(f"{spell_mean(ours.mean, ours.ci_low, ours.ci_high)} ({word}) {mark}")
            grid.append([arm, f"{most}/{len(measured.seeds_of(arm))}", *cells])
        table = markdown_grid([[escaped(cell) for cell in line] for line in grid])
        told = ", ".join(f"{counts[mark]} {mark}" for mark in (SAME, NEAR, OTHER))
        judged = ""
        if printed_seeds is not None:
            of = "one seed" if printed_seeds == 1 else f"a mean of {printed_seeds} seeds"
            judged = f" ≈: within 10 %, or within the 95 % prediction interval of {of}."
        entries = "entry" if counts.total() == 1 else "entries"
        return f"{table}\n\n{counts.total()} {entries} compared: {told}.{judged}"

    def number(
        self, study: str, arm: str, metric: str, place: float | None = None, scale: float = 1.0
    ) -> str:
        """Return the mean of a metric over the seeds of an arm, to be put into a sentence.

        Args:
            study: Name of the study.
            arm: Name of the arm.
            metric: Name of the metric.
            place: Position on the axis at which to read the metric; None for the read-out.
            scale: Factor from the stored to the printed value.
        """
        column = MeasuredColumn(heading="", metric=metric, place=place, scale=scale)
        found = self._measured(study, arm, column)
        return DASH if found is None else spell_number(found.mean)

    def first(self, study: str, arm: str, metric: str, level: float) -> str:
        """Return when the mean of a metric over the seeds of an arm is first at most `level`.

        The result is a position on the axis of learning curves, such as an epoch. If the mean is
        never that low, it is `> P`, where P is the last position.
        """
        runs = counted_runs(self._arranged(study)[arm]).values()
        told = DASH
        for records in zip(*(result.records for result in runs), strict=True):
            place = f"{_place_of(_study(study), records[0]):,g}"
            values = [record.metrics[metric] for record in records if metric in record.metrics]
            if values and sum(values) / len(values) <= level:
                return place
            told = f"> {place}"
        return told

    def cost(self, study: str, *metrics: str) -> str:
        """Return a table of seconds per run for each arm, beside metrics at the end of training.

        A dash replaces the metrics of an arm that `table.csv` lacks or that has a diverged run.
        """
        seconds: dict[str, list[float]] = {}
        provenance = json.loads((self._report(study) / "provenance.json").read_text())
        for run in provenance["runs"]:
            if run["outcome"] == "complete":
                seconds.setdefault(run["arm"], []).append(run["seconds"])
        rows = {row["arm"]: row for row in self._rows(study, "table.csv")}
        problem = _study(study).problem
        grid = [["arm", "runs", *(problem.metric(m).heading for m in metrics), "s per run"]]
        for arm, each in seconds.items():
            cells = {metric: rows.get(arm, {}).get(f"{metric}_mean") for metric in metrics}
            means = [
                spell_number(problem.metric(metric).scale * float(cell)) if cell else DASH
                for metric, cell in cells.items()
            ]
            mean, least, most = map(spell_number, (sum(each) / len(each), min(each), max(each)))
            spread = f"{mean} ({least} to {most})"
            grid.append([arm, str(len(each)), *means, spread])
        return markdown_grid([[escaped(cell) for cell in line] for line in grid])

    def figure(self, study: str, name: str) -> str:
        """Return a figure of a report with its caption, as a link to the report's folder."""
        source, title = self._report(study) / "figures", _study(study).name
        caption = escape_markdown((source / f"{name}.txt").read_text(encoding="utf-8"))
        picture = Path(os.path.relpath(source / name, self.out)).as_posix()
        return f"![{title}: {name}]({picture}.png)\n\nFigure of `{title}`. {caption.strip()}"

    def _measured(self, study: str, arm: str, column: MeasuredColumn) -> Summary | None:
        part = _study(study)
        if column.place is None:
            values, readout = self._final_values(study, arm, column.metric), part.readout
        else:
            arranged = self._arranged(study)
            readout = Last()
            values = [
                record.metrics[column.metric]
                for result in counted_runs(arranged[arm]).values()
                for record in result.records
                if math.isclose(_place_of(part, record), column.place, rel_tol=1e-6)
            ]
        if not values:
            return None
        own = summarise(values, measure_of(part, arm, column.metric, readout))
        sd, low, high = (
            None if value is None else column.scale * value
            for value in (own.sd, own.ci_low, own.ci_high)
        )
        return Summary(n=own.n, mean=column.scale * own.mean, sd=sd, ci_low=low, ci_high=high)

    def _final_values(self, study: str, arm: str, metric: str) -> list[float]:
        """Return the values of a metric in `runs.csv`; none for an arm with a diverged run.

        Raises:
            KeyError: If the study has no such arm or metric.
        """
        rows = [row for row in self._rows(study, "runs.csv") if row["arm"] == arm]
        part = _study(study)
        if not rows and arm not in part.arms:
            raise KeyError(f"{study} has no arm {arm!r}.")
        if metric not in {*part.problem.metrics, *(rows[0] if rows else ())}:
            raise KeyError(f"{study} has no metric {metric!r}.")
        if any(row["outcome"] == "diverged" for row in rows):
            return []
        complete = (row.get(metric) for row in rows if row["outcome"] == "complete")
        return [float(value) for value in complete if value]

    def _arranged(self, study: str) -> Mapping[str, Mapping[int, RunResult]]:
        if study not in self._read:
            part = _study(study)
            self._read[study] = arrange(part, read_results(part.runs(), Store(self.home.store)))
        return self._read[study]

    def _report(self, study: str) -> Path:
        name = _study(study).name
        return self.home.report_of(name) if self.reports is None else self.reports / name

    def _rows(self, study: str, name: str) -> list[dict[str, str]]:
        with file_of(self._report(study), name).open(encoding="utf-8") as lines:
            return list(csv.DictReader(lines))


@cache
def _study(name: str) -> Study:
    """Return a bundled study as its file defines it."""
    return load_study(name, ())


def _place_of(study: Study, record: EpochRecord) -> float:
    """Return the position of a record on the horizontal axis of the study's problem."""
    axis = study.problem.axis.metric
    return record.epoch + 1 if axis is None else record.metrics[axis]


def main() -> None:
    """Fill results from reports into a manuscript, and write it as a page of Markdown."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("manuscript", type=Path)
    parser.add_argument("--home", type=Path, default=Path("runs"))
    parser.add_argument("--reports", type=Path, help="default: the reports of the home")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    home = Home(folder=given.home)
    Manuscript(home=home, out=given.out, reports=given.reports).write(given.manuscript)


if __name__ == "__main__":
    main()
