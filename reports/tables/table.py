"""Table: the main table of a report, with one row per arm and its difference from the baseline."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mixup_core.problem import Metric, Problem
from reports.numbers.arms import ArmRow, equals, mark_best, summarise_arm
from reports.numbers.families import Family, Member, family_of, record_of
from reports.numbers.provenance import public
from reports.numbers.runs import (
    are_paired,
    arrange,
    measures_of,
    metrics_of,
    primary_of,
    values_of,
)
from reports.numbers.spelling import (
    DASH,
    escape_markdown,
    sentence,
    sentences,
    spell_heading,
    spell_p,
    spell_value,
    upper_first,
)
from reports.numbers.summary import summary_columns
from reports.tables.captions import (
    FIXED_ARMS,
    Selection,
    spell_comparisons,
    spell_equals,
    spell_guessing,
    spell_noise,
    spell_seeds_of,
    spell_settings,
    spell_tags,
)
from reports.tables.listings import Listing, spell_member, spell_summary
from sweeps.state.results import Outcome, RunResult
from sweeps.study.readouts import Readout
from sweeps.study.study import Study

_MOST_NAMES = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class UnfinishedRun:
    """A run that is missing from the means in the main table, with the reason."""

    arm: str
    seed: int
    outcome: Outcome
    epochs: int
    epochs_expected: int
    unit: str
    """Noun for one unit of `epochs`, in the singular: `epoch`, or another noun that the problem
    defines, such as `doubling`."""
    reason: str
    """Last line of the error; a note if no error is recorded."""

    def __str__(self) -> str:
        """Return one line with the run, its finished epochs, and the reason why it is missing."""
        done = f"{self.epochs}/{self.epochs_expected} {self.unit}s"
        return f"{self.arm} seed {self.seed}: {self.outcome}, {done}: {self.reason}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Table:
    """The main table of a study's report; it can be written as Markdown, LaTeX and CSV."""

    study: str
    problem: Problem
    metric: str
    metrics: tuple[str, ...]
    baseline: str
    readout: Readout
    rows: tuple[ArmRow, ...]
    equal: Mapping[str, str]
    """The arm whose row each arm shares: the first arm that computes the same results, or
    the arm itself. The baseline counts as the first arm."""
    family: Family
    unfinished: tuple[UnfinishedRun, ...]
    caption: str
    selection: Selection = FIXED_ARMS

    @property
    def shown(self) -> Metric:
        """Label, unit and number of decimals of the metric by which a main table compares arms."""
        return self.problem.metric(self.metric)

    @property
    def header(self) -> tuple[str, ...]:
        """Headings of the columns of the main table, as printed."""
        signs = ("sign-flip p",) if self._has_sign_flip else ()
        minus = spell_heading(f"minus {self.title_of(self.baseline)}", self.shown)
        comparison = (minus, "p", *signs, "d")
        further = (self.problem.metric(metric).heading for metric in self.further)
        tried = ("points tried",) if self.selection.tried else ()
        return ("arm", self.shown.heading, "n", *comparison, *further, *tried)

    @property
    def warnings(self) -> tuple[str, ...]:
        """The sentences of the caption that warn."""
        return tuple(text for text in sentences(self.caption) if text.startswith("WARNING"))

    @property
    def cells(self) -> tuple[tuple[str, ...], ...]:
        """Text of each cell of the main table, as printed, without markup."""
        return tuple(self._cells_of(row) for row in self.printed)

    @property
    def printed(self) -> tuple[ArmRow, ...]:
        """The printed rows of the main table; arms that compute the same results share a row."""
        return tuple(row for row in self.rows if self.equal[row.arm] == row.arm)

    @property
    def listing(self) -> Listing:
        """The main table as a `Listing`, which writes it in every format."""
        best = [place for place, row in enumerate(self.printed) if row.is_best]
        return Listing(
            name="table",
            title=upper_first(self.shown.heading),
            header=self.header,
            cells=self.cells,
            caption=self.caption,
            records=tuple(self._record_of(row) for row in self.rows),
            bold=frozenset((place, column) for place in best for column in (0, 1)),
        )

    def markdown(self) -> str:
        """Return the main table, its caption and the list of missing runs as Markdown."""
        lacking = "".join(f"- {escape_markdown(str(run))}\n" for run in self.unfinished)
        return self.listing.markdown() + (f"\nNot in the table:\n\n{lacking}" if lacking else "")

    def csv(self) -> str:
        """Return the text of `table.csv`: one row per arm, full precision, errors as fractions."""
        return self.listing.csv()

    def latex(self) -> str:
        """Return the main table as two LaTeX tables, each one text column wide.

        The first has the arms with their differences, the second the other columns. Both need the
        LaTeX package booktabs.
        """
        num_narrow, label = self.header.index("p") + 1, f"tab:{self.study}"
        lacking = "".join(f" Not in the table: {run}." for run in self.unfinished)
        narrow = self.listing.part(range(num_narrow), self.caption + lacking)
        rest = self.listing.part((0, *range(num_narrow, len(self.header))), "")
        more = f"Further columns of table~\\ref{{{label}}}; see the caption there."
        return f"{narrow.latex(label)}\n{rest.latex(f'{label}-more', more)}"

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """The compared pairs of arms; if several pairs are one test, only the first."""
        pairs: dict[frozenset[str], tuple[str, str]] = {}
        for arm, against in self.family.members:
            sides = frozenset({self.equal[arm], self.equal[against]})
            if len(sides) == 2:
                pairs.setdefault(sides, (arm, against))
        return tuple(pairs.values())

    @property
    def further(self) -> tuple[str, ...]:
        """The metrics that have a column in the main table beside the one that compares arms."""
        head = self.metric.partition("/")[0]
        others = (metric.replace("*", head) for metric in self.problem.presentation.beside)
        return tuple(m for m in others if m in self.metrics and m != self.metric)

    @property
    def _has_sign_flip(self) -> bool:
        return any(row.compared and row.compared.sign_flip_p is not None for row in self.rows)

    def _cells_of(self, row: ArmRow) -> tuple[str, ...]:
        mark = "†" if row.is_close else ""
        sign = row.compared.sign_flip_p if row.compared else None
        signs = (spell_p(sign),) if self._has_sign_flip else ()
        if row.arm == self.baseline:
            comparison = ("",) * (3 + len(signs))
        else:
            comparison = (
                spell_member(row.compared, self.shown, row.seeds_expected),
                spell_p(row.compared.p if row.compared else None),
                *signs,
                _spell_effect(row.compared),
            )
        further = (self._summary_of(row, metric) for metric in self.further)
        return (
            self._name_of(row),
            self._summary_of(row, self.metric) + mark,
            row.seeds,
            *comparison,
            *further,
            *((str(self.selection.tried[row.arm]),) if self.selection.tried else ()),
        )

    def title_of(self, arm: str) -> str:
        """Return the name of an arm with its tags: `bound [oracle]` for an arm `bound`."""
        return next(row.title for row in self.rows if row.arm == arm)

    def _name_of(self, row: ArmRow) -> str:
        names = [
            self.title_of(other)
            for other, representative in self.equal.items()
            if representative == row.arm and other != row.arm
        ]
        if len(names) < _MOST_NAMES:
            return " = ".join([row.title, *names])
        return f"{row.title} and {len(names)} equal arms"

    def _summary_of(self, row: ArmRow, metric: str) -> str:
        return spell_summary(row.summaries.get(metric), self.problem.metric(metric))

    def _record_of(self, row: ArmRow) -> dict[str, Any]:
        # Frozen: columns of `table.csv`, which scripts read by name;
        # tests/reports/test_recomputed.py fails.
        record: dict[str, Any] = {"arm": row.arm, "n": row.n, "seeds_expected": row.seeds_expected}
        for metric in self.metrics:
            record |= summary_columns(metric, row.summaries.get(metric))
        shared = None if row.compared is None else row.compared.comparison.n
        return record | {
            "diverged": row.diverged,
            "baseline": self.baseline,
            "seeds_shared": shared,
            **record_of(row.compared),
            "comparisons": self.family.size,
            "readout": str(self.readout),
            "equal_to": None if self.equal[row.arm] == row.arm else self.equal[row.arm],
            **({"tags": " ".join(row.tags)} if any(other.tags for other in self.rows) else {}),
            **({"points_tried": self.selection.tried[row.arm]} if self.selection.tried else {}),
        }


def tabulate(
    study: Study,
    results: Iterable[RunResult],
    *,
    made_with: str = "",
    selection: Selection = FIXED_ARMS,
    notes: Callable[[Table], Sequence[str]] = lambda _: (),
) -> Table:
    """Return the main table of a study, computed from the results so far, even without any."""
    study, results = primary_of(study, results)
    arranged = arrange(study, results)
    metric, baseline = study.headline, study.baseline
    metrics = metrics_of(study, arranged)
    values = values_of(arranged, metric, study.readout)
    equal = equals(study)
    measures = measures_of(study, metric, study.readout)
    is_paired = are_paired(study, study.arms, metric)
    family = family_of(printed_pairs(study, selection.winner), values, equal, measures)
    rows = [
        replace(
            summarise_arm(study, arm, by_seed, metrics),
            compared=None if arm == baseline else family.members.get((arm, baseline)),
            tags=study.tags_of(arm),
        )
        for arm, by_seed in arranged.items()
    ]
    if is_paired:
        rows = mark_best(rows, values, equal, family, study)
    table = Table(
        study=study.name,
        problem=study.problem,
        metric=metric,
        metrics=metrics,
        baseline=baseline,
        readout=study.readout,
        rows=tuple(rows),
        equal=equal,
        family=family,
        unfinished=tuple(
            _unfinished(result, study.problem.axis.unit)
            for by_seed in arranged.values()
            for result in by_seed.values()
            if result.outcome != "complete"
        ),
        caption="",
        selection=selection,
    )
    return replace(table, caption=_caption(study, table, made_with, notes(table)))


def _caption(study: Study, table: Table, made_with: str, notes: Sequence[str]) -> str:
    """Return the caption: data, seeds, selection rule, tests, marks, devices and versions."""
    rows, shown = table.printed, table.shown
    settings = spell_settings(study, study.headline)
    best = "lowest" if shown.is_lower_better else "highest"
    marks = {
        f"Bold: the {best} mean among the arms whose seeds are all complete.": any(
            row.is_best for row in rows
        ),
        **dict.fromkeys(spell_tags(tag for row in rows for tag in row.tags), True),
        f"†: not significantly different from the {best} mean at 5 % (paired by seed, adjusted "
        "in the same way).": any(row.is_close for row in rows),
        "If seeds of an arm are missing, it is summarised and compared over the rest.": any(
            0 < row.n < row.seeds_expected for row in rows
        ),
        "An arm has no mean if one of its seeds diverged, because the mean of the other seeds "
        "would be biased in its favour.": any(row.diverged for row in rows),
        f"An arm has no mean if the read-out of one of its runs has no {shown.label}.": any(
            row.n and not row.diverged and table.metric not in row.summaries for row in rows
        ),
        "Intervals cover the variation over seeds only, not the variation over samples of the "
        f"data{spell_noise(study, rows)} or over kinds of processors.": any(
            row.summaries and row.n > 1 for row in rows
        ),
    }
    parts = (
        f"Data: {settings}." if settings else "",
        f"Values are means ± the half-width of the 95 % t interval over {spell_seeds_of(study)}.",
        "n: complete seeds / planned seeds.",
        f"Read-out of each run: {study.readout}.",
        table.selection.found or table.selection.brief,
        *spell_comparisons(study, rows, table.family),
        *spell_guessing(study, rows),
        *spell_equals(table.equal),
        *map(sentence, (*study.remarks(), *notes)),
        *(text for text, is_needed in marks.items() if is_needed),
        made_with,
    )
    return " ".join(filter(None, parts))


def printed_pairs(study: Study, winner: str | None) -> tuple[tuple[str, str], ...]:
    """Return the pairs of arms that a report compares on the headline metric.

    Each arm is compared with the baseline, and the winner of a search with each other arm. There
    are no pairs if the arms are evaluated on different data. The comparisons are adjusted together,
    and separately from claims.
    """
    if not are_paired(study, study.arms, study.headline):
        return ()
    against = [(arm, study.baseline) for arm in study.arms if arm != study.baseline]
    won = [(winner, arm) for arm in study.arms if winner and arm != winner]
    return tuple(dict.fromkeys([*against, *won]))


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


def _spell_effect(member: Member | None) -> str:
    if member is None:
        return DASH
    return spell_value(member.comparison.effect, member.effect_low, member.effect_high, 1.0, 1)
