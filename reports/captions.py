"""Caption: what a table was measured on, and how its numbers were chosen and compared."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mixup_core.problem import Metric
from reports.arms import ArmRow
from reports.spelling import spell_amount
from reports.statistics import detectable_difference
from sweeps.study import Study

SELECTION_RULE = "none"
"""How the printed numbers were chosen: arms fixed in advance, value of the last epoch."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Selection:
    """How the arms of a table came to be in it."""

    rule: str
    """For the caption."""
    tried: Mapping[str, int]
    """Arm to the number of configurations it is the best of."""


FIXED_ARMS = Selection(rule="", tried={})
"""Nothing was selected: the arms were fixed in advance."""


def caption_of(study: Study, rows: Sequence[ArmRow], made_with: str, selection: Selection) -> str:
    """Return the caption: data, seeds, selection rule, tests, marks, and what it was made with."""
    metric, baseline = study.headline, study.baseline
    shown = study.problem.metric(metric)
    settings = _spell_settings(study, metric)
    parts = [
        *([settings] if settings else []),
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
            _spell_power(family, shown),
        ]
    elif len(rows) > 1:
        parts.append(
            "arms measured on different data, so no differences"
            if has_differing_populations(study)
            else f"no two seeds to pair with {baseline}, so no tests"
        )
    if any(row.is_best for row in rows):
        best = "lowest" if shown.is_lower_better else "highest"
        parts.append(f"bold: {best} mean of the arms with every seed")
    if any(row.is_close for row in rows):
        parts.append("†: not told apart from it at 5 % (paired by seed, Holm, its own family)")
    if any(0 < row.n < row.seeds_expected for row in rows):
        parts.append("an arm that lacks seeds is summarised and compared over those it has")
    if any(row.diverged for row in rows):
        parts.append("no mean where a seed diverged, for the survivors flatter the arm")
    parts += [made_with] if made_with else []
    return "; ".join(parts) + "."


def has_differing_populations(study: Study) -> bool:
    """Return whether the arms are measured on different data, which no seed can pair."""
    population = study.problem.population
    return len({population(config) for config in study.arms.values()}) > 1


def _spell_settings(study: Study, metric: str) -> str:
    setting = study.problem.setting
    return " and ".join(dict.fromkeys(setting(config, metric) for config in study.arms.values()))


def _spell_seeds(seeds: Sequence[int]) -> str:
    ordered = sorted(seeds)
    if len(ordered) == 1:
        return f"one seed ({ordered[0]})"
    if ordered == list(range(ordered[0], ordered[-1] + 1)):
        return f"seeds {ordered[0]}-{ordered[-1]}"
    return "seeds " + ", ".join(map(str, ordered))


def _spell_power(family: Sequence[ArmRow], shown: Metric) -> str:
    many = len(family) > 1
    found = []
    for row in family:
        comparison = row.comparison
        assert comparison is not None
        assert comparison.sd is not None
        sds = detectable_difference(comparison.n, len(family))
        arm = f" ({row.arm})" if many else ""
        found.append(f"{spell_amount(sds * comparison.sd, shown)}{arm}")
    step = f", at the first Holm step of {len(family)}" if many else ""
    return f"a difference of {' or '.join(found)} is found 4 times in 5{step}"
