"""Screen: what a study found, in sentences and on one screen of a terminal.

A sentence says `lower` or `higher` only if a claim is decided, or if the adjusted interval of the
main table excludes 0. Each difference has one interval: that of its claim, else that of the table.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from textwrap import wrap

from mixup_core.problem import Metric
from reports.numbers.families import Member
from reports.numbers.power import detectable_difference
from reports.numbers.spelling import (
    spell_amount,
    spell_heading,
    spell_interval,
    spell_p,
    spell_value,
    upper_first,
)
from reports.numbers.verdict import Verdict, family_size
from reports.tables.captions import spell_seeds_of, spell_settings
from reports.tables.claim_tables import metric_of, spell_compared, spell_numbers
from reports.tables.listings import digits_of, spell_member, spell_summary
from reports.tables.table import Table
from sweeps.machine.terminal_text import COLUMNS, clipped, padded, shortened, width_of
from sweeps.study.study import Study

LINES = 29
"""Most lines of the screen; a command adds at most eleven, so that all fit on 40."""
_NOT = "not decided"
_MOST_SENTENCES, _MOST_LINES, _MOST_ARMS, _MOST_NAMED, _LONGEST_ARM = 6, 9, 12, 4, 30


@dataclass(frozen=True, kw_only=True, slots=True)
class ComparisonResult:
    """The result of one comparison: a claim, or an arm and the baseline."""

    sentence: str
    kind: str
    """Decision: `lower`, `higher`, `undecided`, `untested`, or the verdict of another claim."""
    arm: str | None = None
    """The arm whose row of the main table shows this difference; None if no row does."""
    title: str = ""
    """The name of that arm with its tags; empty for a claim."""
    difference: str = ""
    """Difference of the arm from the baseline with its only interval, as text of a cell."""
    p: str = ""
    claim: str = ""


def findings(
    study: Study, table: Table, verdicts: Sequence[Verdict]
) -> tuple[ComparisonResult, ...]:
    """Return the result for each claim, then for each arm of the table without one."""
    claimed: set[str | None] = {None}
    found = []
    for verdict in verdicts:
        finding = _of_claim(study, table, verdict)
        if finding.arm in claimed - {None}:  # a further interval of this difference may differ
            compared = spell_compared(study, verdict.claim, study.title_of)
            finding = replace(
                finding, sentence=f"Claim {verdict.spelled}: {compared}.", difference=""
            )
        claimed.add(finding.arm)
        found.append(finding)
    rows = [row for row in table.printed if row.arm not in {*claimed, table.baseline}]
    return (*found, *(_of_row(table, row.arm, row.compared) for row in rows))


def conclusion(found: Sequence[ComparisonResult]) -> tuple[str, ...]:
    """Return the findings as a few sentences: decided claims first, many arms in one sentence."""
    claims = [finding for finding in found if finding.claim]
    rows = [finding for finding in found if not finding.claim]
    ordered = sorted(claims, key=lambda f: f.kind in {"undecided", "unfinished"})
    if len(rows) > _MOST_NAMED:
        rows = list(_grouped(rows))
    told = [*ordered, *rows][:_MOST_SENTENCES]
    left = [_COUNTED.get(f.kind, f.kind) for f in ordered if f not in told]
    counts = ", ".join(f"{kind} {left.count(kind)}" for kind in dict.fromkeys(left))
    more = (f"Further claims: {counts}.",) if left else ()
    return (*(finding.sentence for finding in told), *more)


_COUNTED = {"lower": "holds", "higher": "holds"}


def screen(study: Study, table: Table, verdicts: Sequence[Verdict]) -> str:
    """Return the end of a run as text of at most `LINES` lines and `COLUMNS` columns."""
    found = findings(study, table, verdicts)
    head: list[str] = []
    for text in conclusion(found):
        lines = _wrapped(text)
        if len(head) + len(lines) > _MOST_LINES - 1:
            head.append("... more in the report")
            break
        head += lines
    foot = [*_wrapped(_caption(study, table)), *_attention(table, verdicts)]
    grid = _grid(table, found)
    room = max(4, min(_MOST_ARMS + 1, LINES - len(head) - min(len(foot), 8) - 2))
    lines = [*head, *([""] if head else []), *_fitted(grid, room), "", *_limited(foot, 8)]
    return "\n".join(lines) + "\n"


def _of_claim(study: Study, table: Table, verdict: Verdict) -> ComparisonResult:
    """Return the result of a claim as a sentence on its arms, or else in the words of the claim."""
    claim, kind = verdict.claim, str(verdict.verdict)
    shown, that = metric_of(study, claim), claim.that
    compared = spell_compared(study, claim, study.title_of)
    value, _ = spell_numbers(study, verdict)
    told = "" if verdict.value is None else f"; measured: {value}"
    sentence = f"Claim {verdict.spelled}: {compared}{told}."
    sides = that.left, that.right
    is_usual = (
        that.readout in (None, study.readout) and that.times == 1 and not (that.together or that.of)
    )
    if not is_usual or not all(isinstance(side, str) for side in sides):
        return ComparisonResult(sentence=sentence, kind=kind, claim=kind)
    left, right = map(str, sides)
    arm = _row_of(table, that.metric, (left, right))
    is_plain = that.margin is None and that.relation in ("less", "greater")
    if is_plain and verdict.value is not None:
        word = "lower" if that.relation == "less" else "higher"
        than = f"{word} for {study.title_of(left)} than for {study.title_of(right)}"
        if kind == "holds":
            kind = word
            by = _spell_size(verdict.value, verdict.low, verdict.high, verdict.n, shown)
            sentence = f"{shown.label} is {than}, by {by}."
        elif kind == "fails":
            sentence = f"{shown.label} is not {than}: the difference is {_with_unit(value, shown)}."
        elif kind == "undecided":
            member = table.family.members.get((arm, table.baseline)) if arm else None
            finds = _finds(member, family_size(study), shown) if not verdict.looks else ""
            sentence = f"whether {shown.label} is {than} is {_NOT} {verdict.looks}".rstrip()
            sentence += f"{finds or f': the difference is {_with_unit(value, shown)}'}."
    sign = 1 if table.equal.get(left) == arm else -1
    relation = compared.partition(": ")[2]
    if sign == 1:
        relation = relation.removeprefix(f"{study.title_of(left)} ")
    return ComparisonResult(
        sentence=upper_first(sentence),
        kind=kind,
        arm=arm,
        difference=_oriented(verdict, shown, sign),
        p=spell_p(verdict.p) if is_plain else "",
        claim=f"{relation}: {verdict.spelled}",
    )


def _row_of(table: Table, metric: str, sides: tuple[str, str]) -> str | None:
    """Return the arm whose difference from the baseline two arms have; None if it is another."""
    arms = [table.equal.get(side, "") for side in sides]
    if metric != table.metric or arms.count(table.baseline) != 1:
        return None
    (arm,) = (arm for arm in arms if arm != table.baseline)
    return arm if any(row.arm == arm for row in table.printed) else None


def _of_row(table: Table, arm: str, member: Member | None) -> ComparisonResult:
    """Return the result of comparing an arm, about which no claim is made, with the baseline."""
    shown = table.shown
    title = table.title_of(arm)
    baseline = table.title_of(table.baseline)
    against = f"{title} against {baseline}"
    if member is None or member.p is None:
        is_constant = member is not None and member.comparison.is_constant
        why = "the same at every seed" if is_constant else "of fewer than two paired seeds"
        difference = "" if member is None else spell_member(member, shown)
        sentence = f"{against} is not tested: the difference is {why}."
        if member is None:
            sentence = f"{against} is not compared."
        return ComparisonResult(
            sentence=sentence, kind="untested", arm=arm, title=title, difference=difference
        )
    cell, value = spell_member(member, shown), member.comparison.difference
    if not member.is_told:
        finds = _finds(member, table.family.size, shown)
        told = finds or f": the difference is {_with_unit(cell, shown)}"
        kind, sentence = "undecided", f"{against} is {_NOT}{told}."
    else:
        kind = "lower" if value < 0 else "higher"
        by = _spell_size(value, member.low, member.high, member.comparison.n, shown)
        than = f"{kind} for {title} than for {baseline}"
        sentence = f"{upper_first(shown.label)} is {than}, by {by}."
    return ComparisonResult(
        sentence=sentence, kind=kind, arm=arm, title=title, difference=cell, p=spell_p(member.p)
    )


def _grouped(rows: Sequence[ComparisonResult]) -> Iterable[ComparisonResult]:
    """Return one finding per decision for many arms: `lower: a, b, c and 4 more of 9 arms`."""
    by_kind: dict[str, list[str]] = {}
    for row in rows:
        by_kind.setdefault(row.kind, []).append(row.title)
    for kind in ("lower", "higher", "undecided", "untested"):
        if arms := by_kind.get(kind):
            names = ", ".join(arms[:_MOST_NAMED])
            more = f" and {len(arms) - _MOST_NAMED} more" if len(arms) > _MOST_NAMED else ""
            text = f"{_GROUPS[kind]}: {names}{more} ({len(arms)} of {len(rows)} arms)."
            yield ComparisonResult(sentence=text, kind=kind)


_GROUPS: Mapping[str, str] = {
    "lower": "Significantly lower than the baseline",
    "higher": "Significantly higher than the baseline",
    "undecided": "Not decided against the baseline",
    "untested": "Not tested against the baseline",
}


def _finds(member: Member | None, size: int, shown: Metric) -> str:
    """Return a phrase on the difference that is detected with power 0.8; empty if it is unknown."""
    comparison = None if member is None else member.comparison
    if comparison is None or comparison.spread is None or comparison.is_exact or comparison.n < 2:
        return ""
    least = detectable_difference(comparison.n, max(1, size)) * comparison.spread
    if least > shown.bounds[1] - shown.bounds[0]:
        return f": {comparison.n} seeds find not even the largest possible difference 4 times in 5"
    amount = spell_amount(least, shown)
    return f": {comparison.n} seeds find a difference of {amount} 4 times in 5"


def _spell_size(value: float, low: float | None, high: float | None, n: int, shown: Metric) -> str:
    """Return the size of a difference with its interval; the words before it say its sign."""
    low, high = _times_sign(value, low, high)
    interval = spell_interval(low, high, shown.scale, digits_of(n, shown))
    return spell_amount(abs(value), shown) + interval


def _times_sign(
    sign: float, low: float | None, high: float | None
) -> tuple[float | None, float | None]:
    """Return the ends of an interval times the sign of a number."""
    return (-high, -low) if sign < 0 and low is not None and high is not None else (low, high)


def _with_unit(text: str, shown: Metric) -> str:
    """Return a value with its unit and then its interval: `1.20 points [1.10, 1.35]`."""
    value, bracket, interval = text.partition(" [")
    return f"{value} {shown.difference_unit}".rstrip() + bracket + interval


def _oriented(verdict: Verdict, shown: Metric, sign: int) -> str:
    """Return value and interval of a claim as the difference of its arm from the baseline."""
    if verdict.value is None:
        return ""
    low, high = _times_sign(sign, verdict.low, verdict.high)
    return spell_value(sign * verdict.value, low, high, shown.scale, digits_of(verdict.n, shown))


def _grid(table: Table, found: Sequence[ComparisonResult]) -> list[list[str]]:
    by_arm: dict[str, list[ComparisonResult]] = {}
    for finding in found:
        if finding.arm is not None:
            by_arm.setdefault(finding.arm, []).append(finding)
    has_claims = any(finding.claim and finding.arm for finding in found)
    minus = spell_heading(f"minus {table.title_of(table.baseline)}", table.shown)
    header = ["arm", table.shown.heading, "n", minus, "p", *(["claim"] if has_claims else [])]
    rows = [header]
    for row in table.printed:
        own = by_arm.get(row.arm, [])
        first = own[0] if own else None
        claim = "" if first is None else first.claim
        claim += f" and {len(own) - 1} more" if len(own) > 1 else ""
        rows.append(
            [
                row.title,
                spell_summary(row.summaries.get(table.metric), table.shown),
                row.seeds,
                "" if first is None else first.difference,
                "" if first is None else first.p,
                *([claim] if has_claims else []),
            ]
        )
    return rows


def _fitted(grid: Sequence[Sequence[str]], room: int) -> list[str]:
    """Return the lines of a table that fits: long names are shortened, then columns are cut."""
    shown = grid if len(grid) <= room else grid[: room - 1]
    cells = [[shortened(line[0], _LONGEST_ARM), *line[1:]] for line in shown]
    widths = [max(width_of(line[place]) for line in cells) for place in range(len(grid[0]))]
    lines = []
    for line in cells:
        text = "  ".join(map(padded, line, widths)).rstrip()
        is_long = width_of(text) > COLUMNS
        lines.append(f"{clipped(text, COLUMNS - 3)}..." if is_long else text)
    more = len(grid) - len(shown)
    return [*lines, *([f"... {more} more arms in the report"] if more else [])]


def _caption(study: Study, table: Table) -> str:
    settings = spell_settings(study, table.metric)
    parts = [settings, f"read-out: {study.readout}", f"95 % intervals over {spell_seeds_of(study)}"]
    told, others = [], table.family.size
    if study.claims:
        told.append(f"rows with a claim are adjusted for {_tests(family_size(study))} (Holm)")
    if others:
        told.append(f"{'others' if told else 'adjusted'} for {_tests(others)} (Bonferroni)")
    parts += [", ".join(told)]
    return upper_first("; ".join(part for part in parts if part)) + "."


def _tests(number: int) -> str:
    return f"{number} test" if number == 1 else f"{number} tests"


def _attention(table: Table, verdicts: Sequence[Verdict]) -> list[str]:
    """Return the lines on warnings of the caption, late claims and missing runs."""
    texts = [*table.warnings]
    if table.selection.winner is not None:
        texts.append(table.selection.brief)
    late = [verdict for verdict in verdicts if "after" in verdict.stated]
    if late:
        which = f"{len(late)} of {len(verdicts)} claims"
        texts.append(f"Stated or changed after first results were known: {which}.")
    kinds: dict[str, int] = {}
    for run in table.unfinished:
        kinds[run.outcome] = kinds.get(run.outcome, 0) + 1
    if kinds:
        counts = ", ".join(f"{number} {kind}" for kind, number in kinds.items())
        texts.append(f"Not in the table: {len(table.unfinished)} runs ({counts}).")
    if any("oracle" in row.tags for row in table.printed):
        texts.append("[oracle]: trained on the test images, so only an optimistic bound.")
    return [line for text in texts for line in _wrapped(text)]


def _wrapped(text: str) -> list[str]:
    return wrap(text, COLUMNS, break_long_words=True, break_on_hyphens=False) or [""]


def _limited(lines: Sequence[str], most: int) -> list[str]:
    if len(lines) <= most:
        return list(lines)
    return [*lines[: most - 1], "... more in the report"]
