"""Joined table: several studies side by side, one column each, for example one per dataset.

joined.md, joined.tex       arms, differences, verdicts and paper values; one column per study
joined.csv                  the rows of every study's `table.csv`
joined_runs.csv             the rows of every study's `runs.csv`
joined_verdicts.csv         the verdicts of every study
provenance.json             the provenance of every study

In the CSV files, the field `column` has the heading of the study's column.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mixup_core.store.json_records import read_note
from reports.numbers.comparison import Comparison
from reports.numbers.families import Member, changed_decisions, record_of
from reports.numbers.judging import verdict_records
from reports.numbers.provenance import describe
from reports.numbers.runs import run_records
from reports.numbers.spelling import (
    DASH,
    spell_csv,
    spell_heading,
    spell_p,
    upper_first,
)
from reports.numbers.verdict import Verdict
from reports.tables.captions import (
    FIXED_ARMS,
    SELECTION_RULE,
    few_seeds,
    spell_family,
    spell_power,
)
from reports.tables.claim_tables import spell_claims_family, spell_numbers
from reports.tables.joined_columns import (
    JoinedColumn,
    heads_of,
    joined_references,
    require_one_protocol,
    same_runs,
    settings_of,
)
from reports.tables.listings import Listing, spell_member, spell_summary
from reports.tables.table import Table, tabulate
from sweeps.state.statements import num_changes
from sweeps.study.study import Study

_LATEX_COLUMNS = {"means": (1, 3), "differences": (2, 2)}
"""Columns per study, and number of studies that fit the width of the text, by LaTeX table."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Joined:
    """A table of several studies side by side; it can be written as Markdown, LaTeX and CSV."""

    heads: tuple[str, ...]
    """Heading of each study's column; all differ."""
    columns: tuple[JoinedColumn, ...]
    tables: tuple[Table, ...]
    """The main table of each study's report."""
    verdicts: tuple[tuple[Verdict, ...], ...]
    """The verdicts of each study's claims."""
    provenances: tuple[Mapping[str, Any], ...]

    def listings(self) -> tuple[Listing, ...]:
        """Return the tables of several studies side by side, without empty ones.

        They are, in this order: means of the arms, differences, verdicts, values of papers, and
        runs that two studies have in common. The full-precision numbers of the table of means are
        the rows of `joined.csv`, and those of the table of verdicts are the rows of
        `joined_verdicts.csv`.
        """
        found = (
            self._means(),
            self._differences(),
            self._verdicts(),
            joined_references(self.heads, self.columns),
            same_runs(self.heads, self.columns, self._first),
        )
        return tuple(listing for listing in found if listing is not None)

    def markdown(self) -> str:
        """Return the tables of several studies side by side as Markdown, each below its title."""
        return "\n".join(f"{listing.title}\n\n{listing.markdown()}" for listing in self.listings())

    def latex(self) -> str:
        """Return means and differences of studies side by side as LaTeX, one text width wide."""
        label = "-".join(dict.fromkeys(column.study.name for column in self.columns))
        texts = []
        for listing in self.listings():
            own = f"tab:{label}-{listing.name}"
            per_head, together = _LATEX_COLUMNS.get(listing.name, (0, 0))
            places = range(1, len(listing.header), max(1, per_head * together))
            for first in places if per_head else ():
                columns = (0, *range(len(listing.header))[first : first + per_head * together])
                part = listing.part(columns, listing.caption if first == 1 else "Further columns.")
                texts.append(part.latex(own if first == 1 else f"{own}-{first}"))
        return "\n".join(texts)

    def files(self) -> dict[str, str]:
        """Return the files of a table of several studies: content by name, such as `joined.csv`."""
        told = self._verdict_records()
        by_column = zip(self.heads, self.provenances, strict=True)
        provenance = {"columns": [{"column": head, **facts} for head, facts in by_column]}
        return {
            "joined.md": self.markdown(),
            "joined.tex": self.latex(),
            "joined.csv": spell_csv(_evened(self._records())),
            "joined_runs.csv": spell_csv(
                _evened(
                    {"column": head, "study": column.study.name, **record}
                    for head, column in zip(self.heads, self.columns, strict=True)
                    for record in run_records(column.study, column.results)
                )
            ),
            "joined_verdicts.csv": spell_csv(told) if told else "column\n",
            "provenance.json": json.dumps(provenance, indent=2, ensure_ascii=False) + "\n",
        }

    def _records(self) -> list[dict[str, Any]]:
        return [
            {"column": head, "study": column.study.name, **record}
            for head, column, table in zip(self.heads, self.columns, self.tables, strict=True)
            for record in table.listing.records
        ]

    def _verdict_records(self) -> list[dict[str, Any]]:
        return [
            {"column": head, **record}
            for head, verdicts in zip(self.heads, self.verdicts, strict=True)
            for record in verdict_records(verdicts)
        ]

    @property
    def _first(self) -> Table:
        return self.tables[0]

    def _means(self) -> Listing:
        shown, readout = self._first.shown, self._first.readout
        arms = dict.fromkeys(row.arm for table in self.tables for row in table.printed)
        rows = [{row.arm: row for row in table.rows} for table in self.tables]
        bold = {
            (line, column)
            for line, arm in enumerate(arms)
            for column, by_arm in enumerate(rows, 1)
            if arm in by_arm and by_arm[arm].is_best
        }
        cells = []
        for arm in arms:
            line = [arm]
            for by_arm, table in zip(rows, self.tables, strict=True):
                row = by_arm.get(arm)
                if row is None:
                    line.append(DASH)
                    continue
                mark = "†" if row.is_close else ""
                mean = spell_summary(row.summaries.get(table.metric), shown)
                line.append(f"{mean}{mark} ({row.seeds})")
            cells.append(tuple(line))
        every = [row for by_arm in rows for row in by_arm.values()]
        best = "lowest" if shown.is_lower_better else "highest"
        marks = []
        if bold:
            marks.append(
                f"Bold: the {best} mean of a column, among the arms whose seeds are all complete."
            )
        if any(row.is_close for row in every):
            marks.append(
                f"†: not significantly different from the {best} mean of the column at 5 % (paired "
                "by seed, Bonferroni-adjusted within the column)."
            )
        if any(row.diverged for row in every):
            marks.append(
                "An arm has no mean if one of its seeds diverged, because the mean of the other "
                "seeds would be biased in its favour."
            )
        parts = [
            f"{upper_first(shown.heading)}: means ± half-widths of the 95 % t intervals over "
            "seeds; in brackets: complete seeds / planned seeds.",
            f"Read-out of each run: {readout}.",
            FIXED_ARMS.brief,
            *marks,
            "Intervals cover the variation over seeds only.",
            *settings_of(self.heads, self.columns, self.provenances),
        ]
        return Listing(
            name="means",
            title=upper_first(shown.heading),
            header=("arm", *self.heads),
            cells=tuple(cells),
            caption=" ".join(parts),
            records=tuple(self._records()),
            bold=frozenset(bold),
        )

    def _differences(self) -> Listing | None:
        pairs = dict.fromkeys(pair for table in self.tables for pair in table.pairs)
        if not pairs:
            return None
        shown = self._first.shown
        cells, records = [], []
        for arm, against in pairs:
            line = [f"{arm} minus {against}"]
            for head, column, table in zip(self.heads, self.columns, self.tables, strict=True):
                member = table.family.members.get((arm, against))
                sides = (arm, against)
                expected = min(len(column.study.seeds_of(side)) for side in sides)
                line += [
                    _spell_member(member, table, expected),
                    spell_p(None if member is None else member.p),
                ]
                records.append({"column": head, "arm": arm, "against": against, **_numbers(member)})
            cells.append(tuple(line))
        families = {
            f"In the column {head}": table.family
            for head, table in zip(self.heads, self.tables, strict=True)
        }
        told = changed_decisions(pairs, families) + self._changed_verdicts()
        told = told or [
            "Between the columns, no difference changes its sign or its significance at 5 %, and "
            "no verdict changes."
        ]
        return Listing(
            name="differences",
            title="Differences",
            header=(
                "comparison",
                *(h for head in self.heads for h in (spell_heading(head, shown), "p")),
            ),
            cells=tuple(cells),
            caption=f"{' '.join(told)} Differences of {shown.label} are paired by seed within each "
            "column, as in the report of its study. They are adjusted within each column, not "
            f"across columns. {self._tests()}",
            records=tuple(records),
        )

    def _tests(self) -> str:
        """Return sentences on each study's tests, and on the differences that they can detect."""
        by_family, power = [], []
        for head, table in zip(self.heads, self.tables, strict=True):
            tested: dict[str, Comparison] = {
                f"{arm} minus {against}": member.comparison
                for arm, against in table.pairs
                if (member := table.family.members[arm, against]).p is not None
            }
            by_family.append(spell_family(table.family))
            found = spell_power(tested, table.family.size, table.shown)
            power += [f"Column {head}: {text}" for text in (*found, *few_seeds(tested.values()))]
        return " ".join((*self._by_column(by_family), *power))

    def _by_column(self, sentences: Sequence[str]) -> list[str]:
        """Return each sentence once, with the columns that it is about if the columns differ."""
        heads: dict[str, list[str]] = {}
        for head, text in zip(self.heads, sentences, strict=True):
            heads.setdefault(text, []).append(head)
        if len(heads) == 1:
            return list(heads)
        return [f"Column {' and '.join(names)}: {text}" for text, names in heads.items()]

    def _told(self) -> dict[tuple[str, str], list[tuple[Study, Verdict] | None]]:
        """Return the verdict in each column for each claim, named by its sentence and source."""
        told: dict[tuple[str, str], list[tuple[Study, Verdict] | None]] = {}
        for place, verdicts in enumerate(self.verdicts):
            for verdict in verdicts:
                key = (verdict.claim.says, verdict.claim.source)
                line = told.setdefault(key, [None for _ in self.heads])
                line[place] = (self.columns[place].study, verdict)
        return told

    def _verdicts(self) -> Listing | None:
        told = self._told()
        if not told:
            return None
        cells = []
        for (says, source), line in told.items():
            spelled = (
                DASH if one is None else f"{one[1].verdict}: {spell_numbers(*one)[0]}"
                for one in line
            )
            cells.append((f"{says} ({source})", *spelled))
        families = [
            spell_claims_family(column.study, num_changes(column.statements))
            if column.study.claims
            else "It has no claims."
            for column in self.columns
        ]
        return Listing(
            name="verdicts",
            title="Claims and verdicts",
            header=("claim", *self.heads),
            cells=tuple(cells),
            caption="Verdict of each claim and its measured value with the confidence interval, "
            "computed from the runs of the column as in the report of its study. "
            + " ".join(self._by_column(families)),
            records=tuple(self._verdict_records()),
        )

    def _changed_verdicts(self) -> list[str]:
        sentences = []
        for (says, _), line in self._told().items():
            found = [None if one is None else one[1].verdict for one in line]
            if len(set(found)) > 1:
                by_column = (
                    f"{verdict or 'not claimed'} in {head}"
                    for head, verdict in zip(self.heads, found, strict=True)
                )
                sentences.append(f"“{says}”: {', '.join(by_column)}.")
        return sentences


def join(columns: Sequence[JoinedColumn], *, command: str) -> Joined:
    """Return a table of several studies side by side, one column each.

    The studies may differ in their datasets and in the machines that trained them, and one may have
    arms and seeds that another lacks. Problem, headline metric, read-out, baseline and all other
    settings of an arm must be equal.
    """
    if len(columns) < 2:
        raise ValueError(
            "a table of studies side by side needs two columns or more (several studies, or one "
            f"study in several homes), got {len(columns)}; name another study or home."
        )
    for column in columns:
        if column.study.search is not None:
            raise ValueError(
                "a table of studies side by side cannot show a search, got the study "
                f"{column.study.name}; leave it out."
            )
    require_one_protocol(columns)
    tables = [tabulate(column.study, column.results) for column in columns]
    return Joined(
        heads=heads_of(columns),
        columns=tuple(columns),
        tables=tuple(tables),
        verdicts=tuple(column.judge() for column in columns),
        provenances=tuple(
            describe(
                column.study,
                column.results,
                selection_rule=SELECTION_RULE,
                data_checksums=column.data_checksums,
                command=command,
            )
            for column in columns
        ),
    )


def _evened(records: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return records that all have the same fields; a field that a record lacked is None."""
    records = list(records)
    names = dict.fromkeys(name for record in records for name in record)
    return [{name: record.get(name) for name in names} for record in records]


def _spell_member(member: Member | None, table: Table, expected: int) -> str:
    if member is None:
        return DASH
    n = member.comparison.n
    return spell_member(member, table.shown) + ("" if n == expected else f" (n = {n})")


def _numbers(member: Member | None) -> dict[str, Any]:
    """Return all numbers of a comparison as columns; all are None if there is no comparison."""
    return {"n": member and member.comparison.n, **record_of(member)}


def holds_joined(folder: Path) -> bool:
    """Return whether a folder contains a table of several studies that this module wrote."""
    return isinstance((read_note(folder / "provenance.json") or {}).get("columns"), list)
