"""Joined columns: studies that one table shows side by side, and what they have in common."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from mixup_core.config.written_forms import flatten
from reports.numbers.comparison import compare
from reports.numbers.judging import verdicts_of
from reports.numbers.predicted import ReadPredictions, gather_predictions
from reports.numbers.provenance import spell_origin
from reports.numbers.runs import arrange, primary_of, values_of
from reports.numbers.spelling import DASH, sentence, spell_amount, spell_heading, spell_number
from reports.numbers.verdict import Statements, Verdict, claims_predictions
from reports.tables.captions import spell_seeds_of, spell_settings, study_notes
from reports.tables.comparisons import REFERENCES_TITLE, UNCOVERED, reference_table, spell_differing
from reports.tables.listings import Listing, spell_difference
from reports.tables.table import Table, tabulate
from sweeps.state.results import RunResult
from sweeps.study.study import Study


class MixedProtocolsError(ValueError):
    """Studies cannot be shown in one table, because they differ in more than data and machines."""


@dataclass(frozen=True, kw_only=True)
class JoinedColumn:
    """A study and its results in one home or store: one column of a table of several studies."""

    study: Study
    results: tuple[RunResult, ...]
    place: str
    data_checksums: Mapping[str, Mapping[str, str]]
    predictions: ReadPredictions | None = None
    statements: Statements = field(default_factory=dict)
    """The store's record of each claim: its first launch and later changes of the seeds."""

    @cached_property
    def table(self) -> Table:
        """The main table of the study's report."""
        return tabulate(self.study, self.results)

    @cached_property
    def verdicts(self) -> tuple[Verdict, ...]:
        """The verdict of each claim of the study, as in its report."""
        study, predicted = self.study, None
        arranged = arrange(study, self.results)
        if self.predictions is not None and claims_predictions(study):
            predicted = gather_predictions(study, arranged, self.predictions)
        return verdicts_of(study, arranged, predicted, self.statements)

    def environments(self, name: str) -> str:
        """Return one property of the machines that trained this study, such as `device`."""
        stages = [result.stage for result in self.results if result.stage is not None]
        found = {stage.environment.get(name, "") for stage in stages}
        return " and ".join(sorted(found - {""}))

    @property
    def data(self) -> str:
        """The names of the datasets on which the study of this table column trains, as text."""
        names = map(self.study.problem.comparing.dataset, self.study.arms.values())
        return " and ".join(dict.fromkeys(filter(None, names)))


def require_one_protocol(columns: Sequence[JoinedColumn]) -> None:
    """Check that studies differ only in their datasets, machines, arms and seeds."""
    faults = [fault for other in columns[1:] for fault in _faults(columns[0].study, other.study)]
    if faults:
        told = "; ".join(dict.fromkeys(faults))
        raise MixedProtocolsError(
            "studies in one table may differ only in datasets, machines, arms and seeds, got "
            f"these other differences: {told}."
        )


def heads_of(columns: Sequence[JoinedColumn]) -> tuple[str, ...]:
    """Return a heading for each study's column of a table, so that all headings differ."""
    limits = [column.environments("onednn_at_most") for column in columns]
    facets = [
        [column.data for column in columns],
        [column.study.name for column in columns],
        [column.environments("device") for column in columns],
        [column.environments("instructions") for column in columns],
        [f"oneDNN at most {limit}" if limit else "" for limit in limits],
        [column.place for column in columns],
    ]
    for facet in facets:
        if len(set(facet)) == len(columns) and all(facet):
            return tuple(facet)
    differing = [facet for facet in facets if len(set(facet)) > 1]
    heads = tuple(", ".join(filter(None, parts)) for parts in zip(*differing, strict=True))
    if len(set(heads)) < len(columns):
        names = ", ".join(f"{column.study.name} in {column.place}" for column in columns)
        raise ValueError(
            "two columns show the same study with the same results, got the columns "
            f"({names}); name each study and results folder once."
        )
    return heads


def settings_of(
    columns: Mapping[str, JoinedColumn], provenances: Mapping[str, Mapping[str, Any]]
) -> list[str]:
    """Return caption sentences on the setting of each study: name, data, seeds and machines."""
    parts = []
    for head, column in columns.items():
        study = column.study
        told = (f"study {study.name}", spell_settings(study, study.headline), spell_seeds_of(study))
        parts.append(f"Column {head}: {', '.join(filter(None, told))}.")
        parts += [origin] if (origin := spell_origin(provenances[head])) else []
        notes = map(sentence, study_notes(study, column.results))
        parts += [f"Column {head}: {note}" for note in (*column.table.warnings, *notes)]
    return parts


def _faults(first: Study, other: Study) -> list[str]:
    """Return a text for each setting in which two studies of one table differ and may not."""
    names = (first.name, other.name)
    general = {
        "problem": (first.problem.name, other.problem.name),
        "headline metric": (first.headline, other.headline),
        "read-out": (str(first.readout), str(other.readout)),
        "baseline": (first.baseline, other.baseline),
    }
    faults = [
        _spell_fault(what, pair, names) for what, pair in general.items() if len(set(pair)) > 1
    ]
    if first.problem.name != other.problem.name:
        return faults
    shared = [arm for arm in first.arms if arm in other.arms]
    if not shared:
        return [
            *faults,
            _spell_fault("arms", (", ".join(first.arms), ", ".join(other.arms)), names),
        ]
    told: dict[str, dict[str, tuple[Any, Any]]] = {}
    for arm in shared:
        ours, theirs = flatten(first.arms[arm]), flatten(other.arms[arm])
        for path in dict.fromkeys((*ours, *theirs)):
            pair = (ours.get(path), theirs.get(path))
            if path not in {"seed", *first.problem.comparing.data_paths} and pair[0] != pair[1]:
                told.setdefault(path, {})[arm] = pair
    for path, by_arm in told.items():
        pairs = set(map(repr, by_arm.values()))
        if len(by_arm) == len(shared) and len(pairs) == 1:
            faults.append(_spell_fault(path, next(iter(by_arm.values())), names))
        else:
            faults += [_spell_fault(f"{arm}.{path}", pair, names) for arm, pair in by_arm.items()]
    return faults


def _spell_fault(what: str, values: tuple[Any, Any], names: tuple[str, str]) -> str:
    (ours, theirs), (first, other) = values, names
    return f"{what}: {_plain(ours)} in {first}, {_plain(theirs)} in {other}"


def _plain(value: Any) -> str:
    return "nothing" if value is None else str(value)


def same_runs(columns: Mapping[str, JoinedColumn]) -> Listing | None:
    """Return the table of differences between runs of equal run key in several studies."""
    first, *others = columns.items()
    table = first[1].table
    shown = table.shown
    cells, records = [], []
    for head, other in others:
        for arm, pairs in _paired_runs(first[1], other, table).items():
            seeds = sorted(pairs)
            theirs, ours = ({s: pairs[s][side] for s in seeds} for side in (0, 1))
            comparison = compare(ours, theirs)
            equal = sum(ours[seed] == theirs[seed] for seed in seeds)
            sd = comparison.sd
            cells.append(
                (
                    table.title_of(arm),
                    f"{head} minus {first[0]}",
                    spell_difference(comparison, shown),
                    DASH if sd is None else spell_number(sd * shown.scale, shown.digits),
                    spell_amount(max(abs(ours[s] - theirs[s]) for s in seeds), shown),
                    f"{equal} of {len(seeds)}",
                )
            )
            # Frozen: keys of `report STUDY OTHER --json`, which scripts read by name;
            # tests/reports/tables/test_joined.py fails.
            records.append(
                {"arm": arm, "column": head, "against": first[0], "n": comparison.n}
                | {"difference": comparison.difference, "difference_sd": sd}
                | {
                    "difference_ci_low_unadjusted": comparison.ci_low,
                    "difference_ci_high_unadjusted": comparison.ci_high,
                    "equal": equal,
                }
            )
    if not cells:
        return None
    return Listing(
        name="same_runs",
        title="Runs that two columns have in common",
        header=(
            "arm",
            "columns",
            spell_heading(shown.label, shown),
            "sd over seeds",
            "largest difference",
            "identical runs",
        ),
        cells=tuple(cells),
        caption="Runs with the same configuration and seed compute the same results except for "
        "rounding. The columns are: mean difference with its 95 % t interval (not adjusted for "
        "multiple comparisons), standard deviation of the differences over seeds, largest "
        "absolute difference, and number of runs that are identical to the last digit.",
        records=tuple(records),
    )


def _paired_runs(
    first: JoinedColumn, other: JoinedColumn, table: Table
) -> dict[str, dict[int, tuple[float, float]]]:
    """Return the values of the runs that both columns have, by arm and seed."""
    found: dict[str, dict[int, tuple[float, float]]] = {}
    shown = [primary_of(column.study, column.results) for column in (first, other)]
    arranged = [arrange(study, results) for study, results in shown]
    ours, theirs = (values_of(of, table.metric, table.readout) for of in arranged)
    for arm, by_seed in ours.items():
        for seed in by_seed.keys() & theirs.get(arm, {}).keys():
            keys = {of[arm][seed].run.key for of in arranged}
            if len(keys) == 1:
                found.setdefault(arm, {})[seed] = (by_seed[seed], theirs[arm][seed])
    return found


def joined_references(columns: Mapping[str, JoinedColumn]) -> Listing | None:
    """Return our values beside those that papers print, by study; None if no study has any."""
    rows: dict[tuple[str, str], dict[str, tuple[str, str]]] = {}
    records = []
    for head, column in columns.items():
        listing = reference_table(column.study, arrange(column.study, column.results))
        if listing is not None:
            records += [{"column": head, **record} for record in listing.records]
            for arm, metric, *_, paper, difference in listing.cells:
                rows.setdefault((arm, metric), {})[head] = (paper, difference)
    if not rows:
        return None
    headings = (h for head in columns for h in (f"{head}, paper", "ours minus paper"))
    return Listing(
        name="references",
        title=REFERENCES_TITLE,
        header=("arm", "metric", *headings),
        cells=tuple(
            (*row, *(cell for head in columns for cell in by_head.get(head, (DASH, DASH))))
            for row, by_head in rows.items()
        ),
        caption=f"{UNCOVERED}."
        + "".join(dict.fromkeys(spell_differing(column.study) for column in columns.values())),
        records=tuple(records),
    )
