"""Captions: captions of tables, with data, seeds, selection rule, tests, device and versions."""

import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from mixup_core.problem import Config, Metric, problem_of
from mixup_core.tree.building import with_values
from mixup_core.tree.written_forms import flatten
from reports.numbers.arms import ArmRow
from reports.numbers.comparison import Comparison
from reports.numbers.effects import detectable_difference, upper_sd
from reports.numbers.families import Family
from reports.numbers.spelling import spell_amount
from sweeps.study.study import Study

SELECTION_RULE = "none"
"""Name of the selection rule if nothing was selected: arms and read-out were fixed in advance."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Selection:
    """The choice of the configurations in a table: fixed in advance, or selected by a search."""

    rule: str = SELECTION_RULE
    """Name of the rule: `none`, or `val-mean` for the lowest mean on validation images, ..."""
    found: str = ""
    """Sentence on how the winner was selected; empty if all arms were fixed in advance."""
    tried: Mapping[str, int] = field(default_factory=dict)
    """Number of configurations tried for each arm, 1 for an arm fixed in advance; empty without a
    search.
    """
    winner: str | None = None
    """The arm that a search selected; None if all arms were fixed in advance."""

    @property
    def brief(self) -> str:
        """Return in a few words how arms were chosen (fixed, or best of a search), for captions."""
        if self.winner is None:
            return f"Selection rule {self.rule}: arms fixed in advance"
        return (
            f"Selection rule {self.rule}: {self.winner} is the best of "
            f"{self.tried[self.winner]} points tried, the other arms were fixed in advance"
        )


FIXED_ARMS = Selection()
"""The selection of a study whose arms were all fixed in advance."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Captioned:
    """Study, rows and comparisons of a main table, from which its caption is written."""

    study: Study
    rows: Sequence[ArmRow]
    """The printed rows."""
    family: Family
    equal: Mapping[str, str]
    """Name of the arm in whose row each arm is printed; arms that compute the same share a row."""
    selection: Selection
    made_with: str
    notes: Sequence[str] = ()
    """Further notes, which come after the explanation of the comparisons."""


def caption_of(table: Captioned) -> str:
    """Return the caption of a report's main table: data, seeds, selection rule, tests, versions."""
    study, rows = table.study, table.rows
    shown = study.problem.metric(study.headline)
    readout = str(study.readout)
    settings = spell_settings(study, study.headline)
    parts = [
        *([settings] if settings else []),
        f"mean ± 95 % t interval over {spell_seeds_of(study)}",
        (f"{table.selection.found}; {readout}" if table.selection.found else "")
        or f"selection rule {SELECTION_RULE} (arms fixed in advance, {readout}, "
        f"{study.headline.partition('/')[0]} results select nothing)",
        *_spell_comparisons(table, shown),
        *_spell_equals(table.equal),
        *study.remarks(),
        *table.notes,
    ]
    if any(row.is_best for row in rows):
        best = "lowest" if shown.is_lower_better else "highest"
        parts.append(f"bold: {best} mean of the arms with every seed")
    if "oracle" in {tag for row in rows for tag in row.tags}:
        parts.append(
            "[oracle]: has learned from the test images, itself or through its teacher: a bound, "
            "never a result"
        )
    if any(row.is_close for row in rows):
        parts.append("†: not significantly different from it at the level of the table")
    if any(0 < row.n < row.seeds_expected for row in rows):
        parts.append("an arm with missing seeds is summarised and compared over the others")
    if any(row.diverged for row in rows):
        parts.append("no mean if a seed diverged, as the other seeds would flatter the arm")
    if any(row.n and not row.diverged and study.headline not in row.summaries for row in rows):
        parts.append(f"no mean where a run has no {shown.label} by the {readout}")
    if any(row.summaries and row.n > 1 for row in rows):
        parts.append(
            "intervals are over seeds: they leave out what another sample of the data "
            f"{_spell_noise(study, rows)}and another kind of processor would change"
        )
    parts += [table.made_with] if table.made_with else []
    return "; ".join(parts) + "."


def has_differing_populations(study: Study) -> bool:
    """Return True if a study evaluates its arms on different data, so they cannot be paired."""
    population = study.problem.comparing.population
    return len({population(config) for config in study.arms.values()}) > 1


def spell_unpaired(configs: Iterable[Config]) -> str:
    """Return, as text, the settings by which configurations are evaluated on different data.

    For example `data.val_size`. If no single setting is the cause, the text is a general phrase.

    Args:
        configs: The configurations of two or more arms; the others are compared with the first.
    """
    first, *others = configs
    problem = problem_of(first)
    own = flatten(first)
    found: dict[str, None] = {}
    for theirs in map(flatten, others):
        for path in (path for path, value in theirs.items() if value != own.get(path)):
            with suppress(ValueError):  # this value alone may contradict other fields
                other = with_values(first, {path: theirs[path]})
                if problem.comparing.population(other) != problem.comparing.population(first):
                    found[path] = None
    return " and ".join(found) or "the data that they are measured on"


SAME_AT_EVERY_SEED = "each difference is the same at every seed, which shows no spread"
"""Reason why there are no tests although there are several seeds."""


def spell_family(family: Family) -> str:
    """Return a caption's phrase on how intervals and p are adjusted for several comparisons."""
    if family.size == 0:
        if any(member.comparison.is_constant for member in family.members.values()):
            return f"{SAME_AT_EVERY_SEED}, so no tests"
        return "no two seeds to pair, so no tests"
    if family.size == 1:
        return "one comparison"
    return (
        f"intervals and p simultaneous over {family.size} comparisons (Bonferroni), so that an "
        "interval leaves out 0 exactly where p is at most 0.05"
    )


def few_seeds(comparisons: Iterable[Comparison]) -> list[str]:
    """Return a warning for a table's caption if one of its comparisons has only two seeds.

    The result is a list of one text; it is empty if no comparison has only two seeds.
    """
    if not any(comparison.n == 2 and comparison.p is not None for comparison in comparisons):
        return []
    return [
        "WARNING, two seeds: an interval is 12.7 standard errors to each side, and hides any "
        "difference that is not very large"
    ]


def spell_power(tested: Mapping[str, Comparison], size: int, shown: Metric) -> list[str]:
    """Return a caption's phrase on how large a difference comparisons detect with power 0.8.

    The detectable difference depends on the sd over seeds: the phrase has the smallest and the
    largest one, at the observed sd and at its upper 95 % limit. The result is a list of one text;
    it is empty if no comparison has a t interval.

    Args:
        tested: Comparison of each arm, over two seeds or more.
        size: Number of comparisons that are adjusted together.
        shown: The compared metric.
    """
    varying = {
        arm: detectable_difference(c.n, max(1, size)) * c.spread
        for arm, c in tested.items()
        if c.spread is not None and not c.is_exact
    }
    if not varying:
        return []
    ordered = sorted(varying, key=lambda arm: (varying[arm], arm))
    limits = [varying[arm] * upper_sd(1.0, tested[arm].n) for arm in ordered]
    low, high = ordered[0], ordered[-1]
    found = _spell_detectable(varying[low], shown)
    if low != high:
        found = f"{found} ({low}) to {_spell_detectable(varying[high], shown)} ({high})"
    ends = (_spell_detectable(limit, shown) for limit in (min(limits), max(limits)))
    at_most = " to ".join(dict.fromkeys(ends))
    return [
        f"a study with this number of seeds detects a difference of {found} in 4 of 5 cases if "
        "the true sd of the differences equals the observed one; if the true sd is as large as its "
        f"95 % confidence limit, the difference must be {at_most}"
    ]


def _spell_detectable(difference: float, shown: Metric) -> str:
    """Return a difference with its unit as text, or a note if the metric cannot differ so much."""
    least, most = shown.bounds
    if difference > most - least:
        return f"more than the largest possible one, {spell_amount(most - least, shown)}"
    return spell_amount(difference, shown)


def spell_settings(study: Study, metric: str) -> str:
    """Return a caption's phrase on the data that arms are evaluated on, and its size.

    If the data differs between arms, the words that they share are written once: `k = 4/6/8, flow
    time 1e+07`.

    Args:
        study: Study with the arms.
        metric: The metric that the table shows.
    """
    setting = study.problem.presentation.setting
    found = dict.fromkeys(text for c in study.arms.values() if (text := setting(c, metric)))
    parts = [text.split(", ") for text in found]
    if len({len(of_text) for of_text in parts}) > 1:
        return " and ".join(found)
    return ", ".join(map(_merged, zip(*parts, strict=True)))


def _merged(phrases: Sequence[str]) -> str:
    words = [phrase.split(" ") for phrase in dict.fromkeys(phrases)]
    if len({len(of_phrase) for of_phrase in words}) > 1:
        return " and ".join(dict.fromkeys(phrases))
    return " ".join("/".join(dict.fromkeys(word)) for word in zip(*words, strict=True))


def spell_seeds(seeds: Sequence[int]) -> str:
    """Return seeds as text: `seeds 0-4`, or a list of all seeds if they are not consecutive."""
    ordered = sorted(seeds)
    if len(ordered) == 1:
        return f"one seed ({ordered[0]})"
    if ordered == list(range(ordered[0], ordered[-1] + 1)):
        return f"seeds {ordered[0]}-{ordered[-1]}"
    return "seeds " + ", ".join(map(str, ordered))


def spell_seeds_of(study: Study) -> str:
    """Return a caption's phrase on the seeds of a study, or on its planned looks if it has any."""
    if study.until is None:
        return spell_seeds(study.seeds)
    sizes = ", ".join(map(str, study.until.sizes))
    return (
        f"the seeds of each arm, added at looks at {sizes} seeds until the claims were decided "
        "(intervals of the verdicts allow for the looks, those of this table do not)"
    )


def _spell_comparisons(table: Captioned, shown: Metric) -> list[str]:
    study, rows = table.study, table.rows
    compared = {row.arm: row.compared.comparison for row in rows if row.compared is not None}
    tested = {arm: c for arm, c in compared.items() if c.p is not None}
    if not tested:
        if len(rows) < 2:
            return []
        if has_differing_populations(study):
            unpaired = spell_unpaired(study.arms.values())
            return [f"arms differ in {unpaired}, which no seed pairs, so no differences"]
        if any(comparison.is_constant for comparison in compared.values()):
            return [f"{SAME_AT_EVERY_SEED}, so no tests"]
        return [f"no two seeds to pair with {study.baseline}, so no tests"]
    parts = [f"differences from {study.baseline} paired by seed, {spell_family(table.family)}"]
    if any(comparison.effect is not None for comparison in tested.values()):
        parts.append("d: mean over sd of the differences, times Hedges' factor")
    if study.claims:
        parts.append("the claims of the study are a family apart")
    power = spell_power(tested, table.family.size, shown)
    constant = [arm for arm, c in compared.items() if c.is_constant]
    if constant:
        parts.append(
            f"the difference of {', '.join(constant)} is the same at every seed, which shows no "
            "spread to judge it by"
        )
    exact = [arm for arm, c in tested.items() if c.is_exact]
    if exact:
        parts.append(
            f"the interval of {', '.join(exact)} is the exact one of shares (Clopper-Pearson, by "
            "seed), for the t interval leaves the bounds of the metric or has no width"
        )
    return [*parts, *power, *few_seeds(tested.values())]


def _spell_equals(equal: Mapping[str, str]) -> list[str]:
    groups: dict[str, list[str]] = {}
    for arm, representative in equal.items():
        if arm != representative:
            groups.setdefault(representative, [representative]).append(arm)
    if not groups:
        return []
    named = ", ".join(" = ".join(group) for group in groups.values())
    return [f"arms that compute the same share a row: {named}"]


def _spell_noise(study: Study, rows: Sequence[ArmRow]) -> str:
    """Return a phrase on the largest sampling noise of a fraction, sqrt(p (1 - p) / N)."""
    shown = study.problem.metric(study.headline)
    noises = [
        math.sqrt(p * (1 - p) / size)
        for row in rows
        if (summary := row.summaries.get(study.headline)) is not None
        and (size := study.problem.measuring.sample_size(study.arms[row.arm], study.headline))
        and 0 <= (p := summary.mean) <= 1
    ]
    return f"(sd {spell_amount(max(noises), shown)}) " if noises else ""
