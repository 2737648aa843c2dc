"""Build: all files of a study's report (tables, figures, page, provenance), from its results."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from reports.figures.canvas import Figure, Styles, arm_styles
from reports.figures.final import draw_finals, draw_ranks
from reports.figures.learning_curves import draw_curves
from reports.figures.predictions import draw_decisions, draw_reliability
from reports.figures.response_curves import draw_responses
from reports.figures.schedules import draw_schedules
from reports.figures.search_figures import draw_search
from reports.figures.series import draw_series
from reports.numbers.judging import varied_verdicts, verdicts_of
from reports.numbers.predicted import Predicted, ReadPredictions, gather_predictions
from reports.numbers.provenance import describe, spell_origin
from reports.numbers.runs import Arranged, arrange, primary_of, runs_csv
from reports.numbers.spelling import escape_markdown
from reports.numbers.verdict import Statements
from reports.pages.html_pages import MAIN_FIGURE, render_page
from reports.pages.report_folders import Content, holds_report, listed_files, replace_files
from reports.pages.screen import conclusion, findings, screen
from reports.tables.captions import FIXED_ARMS, Selection, study_notes
from reports.tables.claim_tables import looks_table, verdict_table
from reports.tables.comparisons import (
    changed_by_readout,
    equivalence_table,
    reference_table,
    seeds_table,
    sensitivity_table,
)
from reports.tables.ensemble_tables import size_table, spread_table
from reports.tables.listings import Listing, tagged
from reports.tables.predictive import (
    calibration_table,
    class_differences,
    class_table,
    ensemble_table,
)
from reports.tables.searched import Searched, gather, points_table, winner_table
from reports.tables.table import Table, tabulate
from reports.tables.variation import crossed_table, variation_table
from sweeps.state.results import RunResult, judged_of
from sweeps.study.search import SearchHistory
from sweeps.study.study import Study


@dataclass(frozen=True, kw_only=True, slots=True)
class Report:
    """A report that was written to a folder: its files, main table, and text for the console."""

    table: Table
    screen: str
    markdown: str
    """The conclusion, then the verdicts, main table and short tables, as Markdown."""
    folder: Path
    files: tuple[Path, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Draft:
    """The content of a study's report, before it is written to files."""

    table: Table
    screen: str
    markdown: str
    contents: Mapping[str, Content]
    predicted: frozenset[str]

    def write(self, out: Path) -> Report:
        """Write this report to a folder; each file is replaced atomically.

        Files of an earlier report that this report does not have are deleted, if its provenance
        lists them. All others may belong to another program.
        """
        former = [name for name in listed_files(out) if name not in self.contents]
        replace_files(out, self.contents, is_own=holds_report(out), former=former)
        return Report(
            table=self.table,
            screen=self.screen,
            markdown=self.markdown,
            folder=out,
            files=tuple(out / name for name in sorted(self.contents)),
        )


def draft_report(  # noqa: PLR0913  what a report is made from
    study: Study,
    results: Sequence[RunResult],
    *,
    data_checksums: Mapping[str, Mapping[str, str]],
    command: str,
    history: SearchHistory | None = None,
    predictions: ReadPredictions | None = None,
    pages: str | None = None,
    statements: Statements | None = None,
) -> Draft:
    """Return the report of a study from its results so far, which may be none.

    Times appear only in `report.html` and `provenance.json`. All other files have the same bytes
    for the same results, device, versions and commit.
    """
    ordered = [
        result for by_seed in arrange(study, results).values() for result in by_seed.values()
    ]
    parts = _parts(study, ordered, history)
    arranged = parts.arranged
    predicted = _predicted(parts, predictions)
    read = _read_of(predicted, arranged)
    provenance = describe(
        study,
        ordered,
        predicted=read,
        selection_rule=parts.selection.found or parts.selection.rule,
        data_checksums=data_checksums,
        command=command,
        history=history,
    )
    table = _tabulated(parts, spell_origin(provenance), predicted)
    judged, of_judged = primary_of(*parts.judged)
    verdicts = verdicts_of(judged, arrange(judged, of_judged), predicted, statements)
    varied = varied_verdicts(*parts.judged, statements)
    claims = (verdict_table(parts.study, verdicts, varied, statements),) if verdicts else ()
    found = (
        winner_table(parts.searched, table) if parts.searched and parts.selection.winner else None,
        looks_table(parts.study, arranged, predicted, statements),
        sensitivity_table(parts.study, arranged, table),
        seeds_table(arranged, table),
        equivalence_table(table, study.equivalence),
        reference_table(parts.study, arranged),
        points_table(parts.searched) if parts.searched else None,
        variation_table(parts.study, arranged),
        crossed_table(parts.study, arranged),
        *(_of_predictions(predicted, table, parts.study) if predicted else ()),
    )
    listings = tuple(
        replace(listing, records=tagged(listing.records, parts.study))
        for listing in found
        if listing is not None
    )
    figures = _drawn(parts, table, predicted)
    # Frozen: names of the files of a report, which scripts and pages link to;
    # tests/reports/pages/test_build.py fails.
    texts = {
        "table.md": "\n".join([*_blocks(claims), table.markdown()]),
        "table.csv": table.csv(),
        "table.tex": table.latex(),
        "runs.csv": runs_csv(study, ordered),
    }
    if claims:
        texts["tables/verdicts.csv"] = claims[0].csv()
    for listing in listings:
        texts[f"tables/{listing.name}.md"] = listing.markdown()
        texts[f"tables/{listing.name}.csv"] = listing.csv()
    told = conclusion(findings(parts.study, table, verdicts))
    page = render_page(
        parts.study,
        table,
        told,
        figures,
        provenance,
        leading=claims,
        listings=listings,
        files=texts,
        pages=pages,
    )
    contents: dict[str, Content] = {**texts, "report.html": page}
    for figure in figures:
        contents |= {
            f"figures/{figure.name}.svg": figure.svg,
            f"figures/{figure.name}.png": figure.png,
            f"figures/{figure.name}.csv": figure.numbers,
            f"figures/{figure.name}.txt": figure.caption + "\n",
        }
    listed = provenance | {
        "conclusion": told,
        "main_figure": next(
            (f"figures/{f.name}.svg" for f in figures if f.name == MAIN_FIGURE), ""
        ),
        "files": sorted(["provenance.json", *contents]),
    }
    # Order matters: provenance first, so that an interrupted writer leaves no report without it;
    # tests/reports/pages/test_build.py fails.
    contents = {
        "provenance.json": json.dumps(listed, indent=2, ensure_ascii=False) + "\n", **contents,
    }  # fmt: skip
    return Draft(
        table=table,
        screen=screen(parts.study, table, verdicts),
        markdown="\n".join(
            [
                escape_markdown(" ".join(told)) + "\n",
                *_blocks(claims),
                table.markdown(),
                *_blocks([listing for listing in listings if not listing.is_long]),
            ]
        ),
        contents=contents,
        predicted=read,
    )


def report_table(
    study: Study,
    results: Sequence[RunResult],
    *,
    history: SearchHistory | None = None,
    predictions: ReadPredictions | None = None,
) -> Table:
    """Return the main table of a study's report, with its caption, without making the report."""
    parts = _parts(study, results, history)
    provenance = describe(study, results, selection_rule="", data_checksums={}, command="")
    return _tabulated(parts, spell_origin(provenance), _predicted(parts, predictions))


def report_classes(
    study: Study,
    results: Sequence[RunResult],
    *,
    history: SearchHistory | None,
    predictions: ReadPredictions,
) -> Listing | None:
    """Return the table of the error of each class of a report, without making the report."""
    parts = _parts(study, results, history)
    predicted = _predicted(parts, predictions)
    table = None if predicted is None else class_table(predicted, _classes(predicted, parts.study))
    return None if table is None else replace(table, records=tagged(table.records, parts.study))


def draw_report(
    study: Study, results: Sequence[RunResult], history: SearchHistory | None = None
) -> tuple[Figure, ...]:
    """Return the figures of a report, except those computed from predictions; write no file."""
    parts = _parts(study, results, history)
    return _drawn(parts, _tabulated(parts, "", None), None)


def _drawn(parts: "_Parts", table: Table, predicted: Predicted | None) -> tuple[Figure, ...]:
    study, styles, arranged = parts.study, parts.styles, parts.arranged
    figures = (
        draw_curves(study, arranged, table, styles),
        draw_finals(arranged, table, styles),
        *draw_responses(study, table, styles),
        *draw_series(arranged, table, styles),
        draw_decisions(arranged, table),
        draw_ranks(study, arranged, table),
        *draw_schedules(study, styles),
        *(draw_search(parts.searched, styles) if parts.searched else ()),
        draw_reliability(predicted, styles) if predicted else None,
    )
    return tuple(figure for figure in figures if figure is not None)


def _predicted(parts: "_Parts", predictions: ReadPredictions | None) -> Predicted | None:
    """Return the measures computed from stored predictions; None if no predictions can be read."""
    configs, cost = parts.study.arms.values(), parts.study.problem.cost
    if predictions is None or not any(cost.prediction_bytes(config) > 0 for config in configs):
        return None
    return gather_predictions(parts.study, parts.arranged, predictions)


def _read_of(predicted: Predicted | None, arranged: Arranged) -> frozenset[str]:
    """Return the keys of the runs whose predictions the report uses."""
    if predicted is None:
        return frozenset()
    used = [(arm, of_arm.runs) for arm, of_arm in predicted.arms.items()]
    used += predicted.beside_diverged.items()
    return frozenset(arranged[arm][seed].run.key for arm, runs in used for seed in runs)


def _classes(predicted: Predicted, study: Study) -> dict[str, Sequence[str]]:
    return {arm: study.problem.presentation.classes(study.arms[arm]) for arm in predicted.arms}


def _of_predictions(predicted: Predicted, table: Table, study: Study) -> tuple[Listing | None, ...]:
    baseline, equal = table.baseline, table.equal
    classes = _classes(predicted, study)
    return (
        calibration_table(predicted, baseline, equal),
        ensemble_table(predicted, baseline, equal),
        size_table(predicted, baseline, equal),
        spread_table(predicted),
        class_table(predicted, classes),
        class_differences(predicted, baseline, equal, classes),
    )


def _tabulated(parts: "_Parts", made_with: str, predicted: Predicted | None) -> Table:
    """Return the main table, with notes on read-outs, missing predictions and a study cut short."""
    is_short = predicted is not None and predicted.num_runs < predicted.num_complete
    counts = f"tables of predictions use the {predicted.counts}" if predicted else ""
    short = [counts] if is_short else []
    return tabulate(
        parts.study,
        parts.results,
        made_with=made_with,
        selection=parts.selection,
        notes=lambda table: [
            *changed_by_readout(sensitivity_table(parts.study, parts.arranged, table)),
            *short,
            *study_notes(*parts.judged),
        ],
    )


def _blocks(listings: Sequence[Listing]) -> list[str]:
    return [f"{listing.title}\n\n{listing.markdown()}" for listing in listings]


@dataclass(frozen=True, kw_only=True)
class _Parts:
    """The study whose arms the main table shows, and the tables and figures that go with it."""

    study: Study
    results: Sequence[RunResult]
    judged: tuple[Study, Sequence[RunResult]]
    """The study on which claims are judged (`judged_of`), also with arms only for variants."""
    styles: Styles
    selection: Selection = FIXED_ARMS
    searched: Searched | None = None

    @cached_property
    def arranged(self) -> Arranged:
        return arrange(self.study, self.results)


def _parts(study: Study, results: Sequence[RunResult], history: SearchHistory | None) -> _Parts:
    """Return the parts of a report."""
    primary, shown = primary_of(study, results)
    if study.search is None or history is None:
        return _Parts(
            study=primary, results=shown, judged=(study, results), styles=arm_styles(primary.arms)
        )  # fmt: skip
    searched = gather(primary, shown, history)
    winners = () if searched.winner is None else (searched.winner.arm,)
    styles = arm_styles({arm: primary.arms[arm] for arm in (*searched.baselines, *winners)})
    judged = judged_of(study, results)
    if study.confirmation() is None or searched.winner is None:
        arms = primary.part(searched.baselines)
        of_arms = [result for result in shown if result.run.arm in arms.arms]
        return _Parts(study=arms, results=of_arms, judged=judged, styles=styles, searched=searched)
    confirmed, own = primary_of(*judged)
    return _Parts(
        study=confirmed,
        results=own,
        judged=judged,
        styles=styles,
        selection=searched.selection(confirmed.headline),
        searched=searched,
    )
