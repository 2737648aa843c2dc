"""Captions: captions of tables, with data, seeds, selection rule, tests, device and versions."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from mixup_core.problem import Config, Metric, fields_apart
from reports.numbers.arms import ArmRow
from reports.numbers.comparison import Comparison
from reports.numbers.families import Family
from reports.numbers.power import detectable_difference
from reports.numbers.runs import are_paired, copies
from reports.numbers.spelling import spell_amount, spell_number
from reports.numbers.summary import sampling_noise
from sweeps.state.results import RunResult, ended_on_budget
from sweeps.study.study import Study, spell_seeds

SELECTION_RULE = "none"
"""Name of the selection rule if nothing was selected: arms and read-out were fixed in advance."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Selection:
    """The choice of the configurations in a table: fixed in advance, or selected by a search."""

    rule: str = SELECTION_RULE
    """Name of the rule: `none` if all arms were fixed in advance, `val-mean` for the point with the
    lowest mean, `val-1se` for the simplest point within one standard error of the lowest mean."""
    found: str = ""
    tried: Mapping[str, int] = field(default_factory=dict)
    """Number of configurations tried for each arm, 1 for an arm fixed in advance."""
    winner: str | None = None

    @property
    def brief(self) -> str:
        """Return a sentence for captions on how arms were chosen: fixed, or best of a search."""
        if self.winner is None:
            return f"All arms and the read-out were fixed in advance (selection rule: {self.rule})."
        return (
            f"The selected {self.winner} is the best of {self.tried[self.winner]} points tried "
            f"(selection rule: {self.rule}); the other arms were fixed in advance."
        )


FIXED_ARMS = Selection()


def spell_tags(tags: Iterable[str]) -> list[str]:
    """Return sentences for a caption that explain the tags of its arms; empty without tags."""
    if "oracle" not in tags:
        return []
    return [
        "[oracle]: the arm or its teacher was trained on the test images, so its value is only an "
        "optimistic bound."
    ]


def spell_unpaired(configs: Iterable[Config], metric: str) -> str:
    """Return, as text, the settings that change the data on which configurations are evaluated."""
    first, *others = configs
    paths = dict.fromkeys(path for other in others for path in fields_apart(first, other, metric))
    return " and ".join(paths) or "the data that they are measured on"


EFFECT = (
    "d: standardised difference, that is the mean of the paired differences divided by their "
    "standard deviation, with Hedges' correction."
)
SAME_AT_EVERY_SEED = "Each difference is the same at every seed, so no test is possible."
"""Sentence that says why there are no tests although there are several seeds."""


def spell_family(family: Family) -> str:
    """Return a caption's sentence on how intervals and p are adjusted for several comparisons."""
    if family.size == 0:
        if any(member.comparison.is_constant for member in family.members.values()):
            return SAME_AT_EVERY_SEED
        return "No test is possible, because fewer than two seeds are paired."
    if family.size == 1:
        return "There is one comparison, so intervals and p values are not adjusted."
    return (
        f"Intervals and p values are adjusted for {family.size} comparisons (Bonferroni), so that "
        "an interval excludes 0 exactly if p is at most 0.05."
    )


def few_seeds(comparisons: Iterable[Comparison]) -> list[str]:
    """Return a warning for a table's caption if one of its comparisons has only two seeds."""
    if not any(comparison.n == 2 and comparison.p is not None for comparison in comparisons):
        return []
    return [
        "WARNING, two seeds: a 95 % interval reaches 12.7 standard errors to each side, so only "
        "very large differences are significant."
    ]


def spell_power(tested: Mapping[str, Comparison], size: int, shown: Metric) -> list[str]:
    """Return a caption's sentence on how large a difference comparisons detect with power 0.8."""
    varying = {
        arm: detectable_difference(c.n, max(1, size)) * c.spread
        for arm, c in tested.items()
        if c.spread is not None and not c.is_exact
    }
    if not varying:
        return []
    ordered = sorted(varying, key=lambda arm: (varying[arm], arm))
    low, high = ordered[0], ordered[-1]
    text = _spell_detectable(varying[low], shown)
    if low != high:
        text = f"{text} ({low}) to {_spell_detectable(varying[high], shown)} ({high})"
    return [
        f"The smallest detectable difference (power 0.8) is {text}, if the true standard "
        "deviation of the differences equals the observed one."
    ]


def _spell_detectable(difference: float, shown: Metric) -> str:
    """Return a difference with its unit as text, or a note if the metric cannot differ so much."""
    least, most = shown.bounds
    if difference > most - least:
        return f"more than {spell_amount(most - least, shown)} (the largest possible difference)"
    return spell_amount(difference, shown)


def spell_settings(study: Study, metric: str) -> str:
    """Return a caption's phrase on the setting of evaluation: the data, and its size."""
    setting = study.problem.presentation.setting
    texts = dict.fromkeys(text for c in study.arms.values() if (text := setting(c, metric)))
    parts = [text.split(", ") for text in texts]
    if len({len(of_text) for of_text in parts}) > 1:
        return " and ".join(texts)
    return ", ".join(map(_merged, zip(*parts, strict=True)))


def _merged(phrases: Sequence[str]) -> str:
    words = [phrase.split(" ") for phrase in dict.fromkeys(phrases)]
    if len({len(of_phrase) for of_phrase in words}) > 1:
        return " and ".join(dict.fromkeys(phrases))
    return " ".join("/".join(dict.fromkeys(word)) for word in zip(*words, strict=True))


def spell_seeds_of(study: Study) -> str:
    """Return a caption's phrase on the seeds of a study, or on its planned looks if it has any."""
    if study.until is None:
        return spell_seeds(study.seeds)
    sizes = ", ".join(map(str, study.until.sizes))
    return (
        f"the seeds of each arm, which were added at planned looks (at {sizes} seeds) until the "
        "claims were decided; the intervals of the verdicts are adjusted for the looks, those of "
        "this table are not"
    )


def spell_comparisons(study: Study, rows: Sequence[ArmRow], family: Family) -> list[str]:
    """Return a caption's sentences on how arms are compared with the baseline, or why not."""
    compared = {row.title: row.compared.comparison for row in rows if row.compared is not None}
    tested = {arm: c for arm, c in compared.items() if c.p is not None}
    baseline = study.title_of(study.baseline)
    if not tested:
        if len(rows) < 2:
            return []
        if not are_paired(study, study.arms, study.headline):
            unpaired = spell_unpaired(study.arms.values(), study.headline)
            return [f"Arms differ in {unpaired}, so they cannot be paired by seed or compared."]
        if any(comparison.is_constant for comparison in compared.values()):
            return [SAME_AT_EVERY_SEED]
        return [f"No test is possible, because no arm shares two seeds with {baseline}."]
    parts = [f"Differences from {baseline} are paired by seed.", spell_family(family)]
    if any(comparison.effect is not None for comparison in tested.values()):
        parts.append(EFFECT)
    if study.claims:
        parts.append("Tests of the study's claims are adjusted separately.")
    constant = [arm for arm, c in compared.items() if c.is_constant]
    if constant:
        parts.append(
            f"The difference of {', '.join(constant)} is the same at every seed, so it has no "
            "interval and no p value."
        )
    exact = [arm for arm, c in tested.items() if c.is_exact]
    if exact:
        parts.append(
            f"The interval of {', '.join(exact)} is computed from exact binomial limits "
            "(Clopper-Pearson), because a t interval would exceed the bounds of the metric or have "
            "no width."
        )
    power = spell_power(tested, family.size, study.problem.metric(study.headline))
    return [*parts, *power, *few_seeds(tested.values())]


def study_notes(study: Study, results: Sequence[RunResult]) -> list[str]:
    """Return notes on a budget that ended a study, and on arms that computed the same."""
    reason = ended_on_budget(study, results)
    return [
        *([] if reason is None else [f"the study {reason}"]),
        *(
            f"the runs of {copy} and {arm} have equal results to the last digit at each seed "
            "although their settings differ: a comparison of the two, such as of student and "
            "teacher, is void"
            for copy, arm in copies(study, results)
        ),
    ]


def spell_equals(equal: Mapping[str, str]) -> list[str]:
    groups: dict[str, list[str]] = {}
    for arm, representative in equal.items():
        if arm != representative:
            groups.setdefault(representative, [representative]).append(arm)
    if not groups:
        return []
    listed = ", ".join(" = ".join(group) for group in groups.values())
    return [f"Arms that compute exactly the same share a row: {listed}."]


def spell_guessing(study: Study, rows: Sequence[ArmRow]) -> list[str]:
    """Return a warning if no arm has a lower mean than guessing, beyond the sampling noise."""
    guesses: dict[str, float] = {}
    shown, measuring = study.problem.metric(study.headline), study.problem.measuring
    for row in rows:
        config, summary = study.arms[row.arm], row.summaries.get(study.headline)
        guessed = measuring.guessing(config, study.headline)
        if summary is None or guessed is None:
            continue
        size = measuring.sample_size(config, study.headline)
        noise = sampling_noise(guessed, size) if size else 0.0
        if summary.mean < guessed - 2 * noise:
            return []
        guesses[row.arm] = guessed
    if not guesses:
        return []
    level = spell_number(shown.scale * max(guesses.values()), shown.digits)
    return [
        f"WARNING, no arm is better than guessing a class ({level} % {shown.label}): train for "
        "more epochs, or raise optimizer.lr."
    ]


def spell_noise(study: Study, rows: Sequence[ArmRow]) -> str:
    """Return a phrase on the largest sampling noise of a fraction."""
    shown = study.problem.metric(study.headline)
    noises = [
        sampling_noise(p, size)
        for row in rows
        if (summary := row.summaries.get(study.headline)) is not None
        and (size := study.problem.measuring.sample_size(study.arms[row.arm], study.headline))
        and 0 <= (p := summary.mean) <= 1
    ]
    return f" (standard deviation {spell_amount(max(noises), shown)})" if noises else ""
