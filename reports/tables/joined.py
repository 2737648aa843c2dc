"""Joined table: several studies side by side, one column each, for example one per dataset.

joined.md, joined.tex       arms, differences, verdicts and paper values; one column per study
joined.csv                  the rows of every study's `table.csv`
joined_runs.csv             the rows of every study's `runs.csv`
joined_verdicts.csv         the verdicts of every study
provenance.json             the provenance of every study

In the CSV files, the field `column` has the heading of the study's column.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from mixup_core.store.json_records import read_note
from reports.numbers.comparison import Comparison
from reports.numbers.families import changed_decisions, record_of
from reports.numbers.judging import verdict_records
from reports.numbers.provenance import describe
from reports.numbers.runs import run_records
from reports.numbers.spelling import DASH, spell_csv, spell_heading, spell_p, upper_first
from reports.numbers.verdict import Verdict
from reports.tables.captions import (
    FIXED_ARMS,
    SELECTION_RULE,
    spell_family,
    spell_power,
    spell_tags,
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
from reports.tables.table import Table
from sweeps.state.statements import num_changes

_LATEX_COLUMNS = {"means": (1, 3), "differences": (2, 2)}
"""Columns per study, and number of studies that fit the width of the text, by LaTeX table."""

_Told = dict[tuple[str, str, int], dict[str, Verdict]]
"""Verdicts by column, by sentence and source of a claim, and by its number among claims of both."""


@dataclass(frozen=True, kw_only=True)
class Joined:
    """A table of several studies side by side; it can be written as Markdown, LaTeX and CSV."""

    columns: Mapping[str, JoinedColumn]
    command: str

    @property
    def heads(self) -> tuple[str, ...]:
        """Heading of each study's column; all differ."""
        return tuple(self.columns)

    @cached_property
    def provenances(self) -> Mapping[str, Mapping[str, Any]]:
        """The provenance of each study, by the heading of its column."""
        return {
            head: describe(
                column.study,
                column.results,
                selection_rule=SELECTION_RULE,
                data_checksums=column.data_checksums,
                command=self.command,
            )
            for head, column in self.columns.items()
        }

    def listings(self) -> tuple[Listing, ...]:
        """Return the tables of several studies side by side, without empty ones."""
        listings = (
            self._means(),
            self._differences(),
            self._verdicts(),
            joined_references(self.columns),
            same_runs(self.columns),
        )
        return tuple(listing for listing in listings if listing is not None)

    def markdown(self) -> str:
        """Return the tables of several studies side by side as Markdown, each below its title."""
        return "\n".join(f"{listing.title}\n\n{listing.markdown()}" for listing in self.listings())

    def latex(self) -> str:
        """Return means and differences of studies side by side as LaTeX, one text width wide."""
        label = "-".join(dict.fromkeys(column.study.name for column in self.columns.values()))
        texts = []
        for listing in self.listings():
            name = f"tab:{label}-{listing.name}"
            per_head, together = _LATEX_COLUMNS.get(listing.name, (0, 0))
            places = range(1, len(listing.header), max(1, per_head * together))
            for first in places if per_head else ():
                columns = (0, *range(len(listing.header))[first : first + per_head * together])
                part = listing.part(columns, listing.caption if first == 1 else "Further columns.")
                texts.append(part.latex(name if first == 1 else f"{name}-{first}"))
        return "\n".join(texts)

    def files(self) -> dict[str, str]:
        """Return the files of a table of several studies: content by name, such as `joined.csv`."""
        verdicts = _evened(self._verdict_records())
        provenance = {"columns": [{"column": h, **facts} for h, facts in self.provenances.items()]}
        return {
            "joined.md": self.markdown(),
            "joined.tex": self.latex(),
            # Frozen: names of files, and their column `column`, which scripts read by name;
            # tests/reports/tables/test_joined.py fails.
            "joined.csv": spell_csv(_evened(self._records())),
            "joined_runs.csv": spell_csv(
                _evened(
                    {"column": head, "study": column.study.name, **record}
                    for head, column in self.columns.items()
                    for record in run_records(column.study, column.results)
                )
            ),
            "joined_verdicts.csv": spell_csv(verdicts) if verdicts else "column\n",
            "provenance.json": json.dumps(provenance, indent=2, ensure_ascii=False) + "\n",
        }

    def _records(self) -> list[dict[str, Any]]:
        return [
            {"column": head, "study": column.study.name, **record}
            for head, column in self.columns.items()
            for record in column.table.listing.records
        ]

    def _verdict_records(self) -> list[dict[str, Any]]:
        return [
            {"column": head, **record}
            for head, column in self.columns.items()
            for record in verdict_records(column.verdicts)
        ]

    @property
    def _tables(self) -> tuple[Table, ...]:
        return tuple(column.table for column in self.columns.values())

    def _means(self) -> Listing:
        first = self._tables[0]
        arms = dict.fromkeys(row.arm for table in self._tables for row in table.printed)
        rows = [{row.arm: row for row in table.rows} for table in self._tables]
        bold = {
            (line, column)
            for line, arm in enumerate(arms)
            for column, by_arm in enumerate(rows, 1)
            if arm in by_arm and by_arm[arm].is_best
        }
        cells = []
        for arm in arms:
            line = [next(by_arm[arm].title for by_arm in rows if arm in by_arm)]
            for by_arm in rows:
                row = by_arm.get(arm)
                if row is None:
                    line.append(DASH)
                    continue
                mark = "†" if row.is_close else ""
                mean = spell_summary(row.summaries.get(first.metric), first.shown)
                line.append(f"{mean}{mark} ({row.seeds})")
            cells.append(tuple(line))
        every = [row for by_arm in rows for row in by_arm.values()]
        best = "lowest" if first.shown.is_lower_better else "highest"
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
        marks += spell_tags(tag for row in every for tag in row.tags)
        parts = [
            f"{upper_first(first.shown.heading)}: means ± half-widths of the 95 % t intervals over "
            "seeds; in brackets: complete seeds / planned seeds.",
            f"Read-out of each run: {first.readout}.",
            FIXED_ARMS.brief,
            *marks,
            "Intervals cover the variation over seeds only.",
            *settings_of(self.columns, self.provenances),
        ]
        return Listing(
            name="means",
            title=upper_first(first.shown.heading),
            header=("arm", *self.heads),
            cells=tuple(cells),
            caption=" ".join(parts),
            records=tuple(self._records()),
            bold=frozenset(bold),
        )

    def _differences(self) -> Listing | None:
        pairs = dict.fromkeys(pair for table in self._tables for pair in table.pairs)
        if not pairs:
            return None
        shown = self._tables[0].shown
        titles = {row.arm: row.title for table in self._tables for row in table.rows}
        cells, records = [], []
        for pair in pairs:
            line = [" minus ".join(titles[arm] for arm in pair)]
            for head, column in self.columns.items():
                member = column.table.family.members.get(pair)
                expected = min(len(column.study.seeds_of(side)) for side in pair)
                line += [
                    spell_member(member, shown, expected),
                    spell_p(None if member is None else member.p),
                ]
                place = {"column": head, "arm": pair[0], "against": pair[1]}
                n = None if member is None else member.comparison.n
                records.append({**place, "n": n, **record_of(member)})
            cells.append(tuple(line))
        families = {
            f"In the column {head}": column.table.family for head, column in self.columns.items()
        }
        told = changed_decisions(pairs, families, titles.__getitem__) + self._changed_verdicts()
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
        power = []
        for head, column in self.columns.items():
            table = column.table
            tested: dict[str, Comparison] = {
                " minus ".join(map(table.title_of, (arm, against))): member.comparison
                for arm, against in table.pairs
                if (member := table.family.members[arm, against]).p is not None
            }
            texts = spell_power(tested, table.family.size, table.shown)
            power += [f"Column {head}: {text}" for text in texts]
        families = self._by_column([spell_family(table.family) for table in self._tables])
        return " ".join((*families, *power))

    def _by_column(self, sentences: Sequence[str]) -> list[str]:
        """Return each sentence once, with the columns that it is about if the columns differ."""
        heads: dict[str, list[str]] = {}
        for head, text in zip(self.heads, sentences, strict=True):
            heads.setdefault(text, []).append(head)
        if len(heads) == 1:
            return list(heads)
        return [f"Column {' and '.join(names)}: {text}" for text, names in heads.items()]

    def _told(self) -> _Told:
        verdicts: _Told = {}
        for head, column in self.columns.items():
            numbers = Counter[tuple[str, str]]()
            for verdict in column.verdicts:
                words = (verdict.claim.says, verdict.claim.source)
                verdicts.setdefault((*words, numbers[words]), {})[head] = verdict
                numbers[words] += 1
        return verdicts

    def _verdicts(self) -> Listing | None:
        verdicts = self._told()
        if not verdicts:
            return None
        cells = []
        for (says, source, _), line in verdicts.items():
            spelled = (
                f"{line[head].verdict}: {spell_numbers(column.study, line[head])[0]}"
                if head in line
                else DASH
                for head, column in self.columns.items()
            )
            cells.append((f"{says} ({source})", *spelled))
        families = [
            spell_claims_family(column.study, num_changes(column.statements))
            if column.study.claims
            else "It has no claims."
            for column in self.columns.values()
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
        for (says, _, _), line in self._told().items():
            verdicts = {h: line[h].verdict if h in line else "not claimed" for h in self.heads}
            if len(set(verdicts.values())) > 1:
                by_column = (f"{verdict} in {head}" for head, verdict in verdicts.items())
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
    return Joined(columns=dict(zip(heads_of(columns), columns, strict=True)), command=command)


def _evened(records: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return records that all have the same fields; a field that a record lacked is None."""
    records = list(records)
    names = dict.fromkeys(name for record in records for name in record)
    return [{name: record.get(name) for name in names} for record in records]


def holds_joined(folder: Path) -> bool:
    """Return whether a folder contains a table of several studies that this module wrote."""
    return isinstance((read_note(folder / "provenance.json") or {}).get("columns"), list)
