"""Predictive: tables from stored predictions: calibration, ensembles, error of each class."""

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from mixup_core.images.metrics import PREDICTED
from mixup_core.problem import Metric
from mixup_core.rules import printable
from reports.numbers.families import BySeed, Family, Member, family_of, record_of
from reports.numbers.predicted import MOST_PAIRED, Predicted
from reports.numbers.spelling import DASH, spell_number, spell_p, spell_value
from reports.numbers.summary import ANY, Measure, Summary, summarise, summary_columns
from reports.tables.captions import spell_family
from reports.tables.listings import Listing, digits_of, spell_member, spell_summary

_BOUNDS = {
    metric.removeprefix("predicted/"): Measure(least=shown.bounds[0], most=shown.bounds[1])
    for metric, shown in PREDICTED.items()
}
_ERROR = Metric(label="error", unit="%")
_SHARE, _GAIN = Measure(least=0.0, most=1.0), Measure(least=-1.0, most=math.inf)
_PLAIN = Metric(label="")
_MOST_CLASSES = 20


def calibration_table(
    predicted: Predicted, baseline: str, equal: Mapping[str, str]
) -> Listing | None:
    """Return the table of calibration error and Brier score, also after temperature scaling."""
    if not predicted.arms:
        return None
    some_arm = next(iter(predicted.arms.values()))
    values = {name: predicted.values(name) for name in next(iter(some_arm.runs.values())).measures}
    families = {
        kind: _against_baseline(predicted, values[name], baseline, equal, _BOUNDS[name])
        for kind in ("", "scaled ")
        for name in (f"{kind.replace(' ', '_')}calibration_error",)
    }
    has_scaled = any(values["scaled_calibration_error"].values())
    header = ["arm", "n"]
    for kind in families if has_scaled else ("",):
        header += ["temperature"] if kind else []
        header += [f"{kind}calibration error, %", "if calibrated"]
        header += [f"{kind}minus {predicted.title_of(baseline)}, points", f"{kind}Brier score"]
    cells, records = [], []
    for arm, of_arm in predicted.arms.items():
        summaries = {name: _summary(values[name][arm], _BOUNDS[name]) for name in values}
        line, record = (
            [of_arm.title, str(len(of_arm.runs))],
            dict[str, Any](arm=arm, n=len(of_arm.runs)),
        )
        for name, summary in summaries.items():
            record |= summary_columns(name, summary)
        for kind, family in families.items():
            head = kind.replace(" ", "_")
            name, member = f"{head}calibration_error", family.members.get((arm, baseline))
            bins = [run.scaled if kind else run.raw for run in of_arm.runs.values()]
            floors = [found.floor for found in bins if found is not None]
            floor = float(np.mean(floors)) if floors else None
            # Frozen: columns of `tables/calibration.csv`, which scripts read by name;
            # tests/reports/tables/test_predictive.py fails.
            record |= _compared(f"{name}_difference", member) | {f"{name}_if_calibrated": floor}
            line += [spell_summary(summaries["temperature"], _PLAIN)] if kind else []
            line += [
                spell_summary(summaries[name], _ERROR),
                DASH if floor is None else spell_number(100 * floor, 1),
                spell_member(member, _ERROR),
                spell_summary(summaries[f"{head}brier"], _PLAIN),
            ]
        cells.append(tuple(line[: len(header)]))
        records.append(record)
    fitted = (
        "Temperature: the one with the least negative log-likelihood on the validation images "
        "of the run (Guo et al. 2017). Scaled columns: measured on the test images at that "
        "temperature."
        if has_scaled
        else "No run held out validation images (data.val_size), so no temperature is fitted."
    )
    return Listing(
        name="calibration",
        title="Calibration",
        header=tuple(header),
        cells=tuple(cells),
        caption=f"Computed from the {predicted.counts} on the test images ({predicted.weights}). "
        "Calibration error: expected calibration error of the predicted class, with 15 bins of "
        "equal width. If calibrated: what a perfectly calibrated network with the same confidences "
        "has on as many images; it is not 0. Brier score: mean squared distance between the "
        "probabilities and the one-hot label, from 0 to 2. Values are means ± the half-width of "
        "the 95 % t interval over seeds. "
        f"{_adjusted_columns(*families.values())}{fitted}",
        records=tuple(records),
    )


def ensemble_table(predicted: Predicted, baseline: str, equal: Mapping[str, str]) -> Listing | None:
    """Return the table of errors of one network, of two together, and of all together."""
    arms = {arm: of_arm for arm, of_arm in predicted.arms.items() if len(of_arm.runs) > 1}
    if not arms:
        return None
    values = {arm: of_arm.pair_gain for arm, of_arm in arms.items() if of_arm.pair_gain}
    family = _against_baseline(predicted, values, baseline, equal, _GAIN)
    cells, records = [], []
    for arm, of_arm in arms.items():
        pairs = _summary(of_arm.pair_gain, _GAIN)
        differ = _summary(of_arm.disagreement, _SHARE)
        member = family.members.get((arm, baseline))
        ends = (of_arm.gain + side * of_arm.gain_half_width for side in (-1, 1))
        low, high = (max(-1.0, min(1.0, end)) for end in ends)
        digits = digits_of(len(of_arm.runs), 2)
        cells.append(
            (
                of_arm.title,
                str(len(of_arm.runs)),
                spell_number(100 * of_arm.error, 2),
                spell_summary(differ, _ERROR),
                spell_summary(pairs, _ERROR),
                spell_member(member, _ERROR),
                spell_p(None if member is None else member.p),
                spell_number(100 * of_arm.ensemble_error, 2),
                spell_value(of_arm.gain, low, high, 100.0, digits),
            )
        )
        records.append(
            {
                "arm": arm,
                "n": len(of_arm.runs),
                "error": of_arm.error,
                "ensemble_error": of_arm.ensemble_error,
                "gain": of_arm.gain,
                "gain_low": low,
                "gain_high": high,
                **summary_columns("disagreement", differ),
                **summary_columns("pair_gain", pairs),
                **_compared("pair_gain_difference", member),
            }
        )
    return Listing(
        name="ensembles",
        title="Ensembles over seeds",
        header=(
            "arm",
            "n",
            "error of one network, %",
            "disagreement of two, %",
            "gain of two, points",
            f"gain of two minus {predicted.title_of(baseline)}, points",
            "p",
            "error of all n together, %",
            "gain of all n, points",
        ),
        cells=tuple(cells),
        caption=f"Computed from the {predicted.counts} on the test images ({predicted.weights}). "
        "An ensemble averages the predicted probabilities of networks of one arm. Gain: mean error "
        "of the networks minus the error of their ensemble. Disagreement: share of images for "
        "which two networks predict different classes. The columns of two networks are means over "
        f"all pairs of seeds (of at most {MOST_PAIRED} seeds), with a 95 % t interval over the "
        "jackknife pseudo-values of the seeds, by which arms are also paired. "
        f"{_adjusted('', family)}The columns of all n networks are of a single ensemble; its 95 % "
        "interval is over test images, for the same networks.",
        records=tuple(records),
    )


def class_table(predicted: Predicted, names: Mapping[str, Sequence[str]]) -> Listing | None:
    """Return the table of each arm's test error by class; None if no predictions are stored."""
    if not predicted.arms:
        return None
    num_classes = max(
        len(run.classes) for of_arm in predicted.arms.values() for run in of_arm.runs.values()
    )
    summaries = {
        (label, arm): summarise(
            [float(run.classes[label]) for run in of_arm.runs.values()],
            Measure(least=0.0, most=1.0, size=of_arm.of_class[label]),
        )
        for label in range(num_classes)
        for arm, of_arm in predicted.arms.items()
        if label < len(of_arm.of_class) and of_arm.of_class[label]
    }
    names = {arm: [printable(name) for name in of_arm] for arm, of_arm in names.items()}
    of_all = {tuple(names.get(arm, ())) for arm in predicted.arms}
    shared = next(iter(of_all)) if len(of_all) == 1 else ()
    by = "name" if shared else "label number"
    return Listing(
        name="classes",
        title="Error of each class",
        header=("class", *(of_arm.title for of_arm in predicted.arms.values())),
        cells=tuple(
            (
                shared[label] if label < len(shared) else str(label),
                *(spell_summary(summaries.get((label, arm)), _ERROR) for arm in predicted.arms),
            )
            for label in range(min(num_classes, _MOST_CLASSES))
        ),
        caption=f"Test error in % of the images of each class, by {by}, from the "
        f"{predicted.counts} ({predicted.weights}). Values are means with a 95 % t interval over "
        "seeds, or with an exact binomial interval where the t interval would exceed 0 to 100 %. "
        "Intervals are not adjusted for the number of classes."
        + (f" The first {_MOST_CLASSES} classes are shown." if num_classes > _MOST_CLASSES else ""),
        records=tuple(
            {
                "class": label,
                "name": names[arm][label] if label < len(names.get(arm, ())) else "",
                "arm": arm,
                "n": summary.n,
                **summary_columns("error", summary),
            }
            for (label, arm), summary in summaries.items()
        ),
        is_long=True,
    )


def class_differences(
    predicted: Predicted,
    baseline: str,
    equal: Mapping[str, str],
    names: Mapping[str, Sequence[str]],
) -> Listing | None:
    """Return the table of each arm's error by class, minus the baseline's error of that class."""
    if baseline not in predicted.arms:
        return None
    sizes = predicted.arms[baseline].of_class
    values = {
        arm: {
            label: {seed: float(run.classes[label]) for seed, run in of_arm.runs.items()}
            for label, size in enumerate(sizes)
            if size
        }
        for arm, of_arm in predicted.paired_with(baseline).items()
    }
    family = family_by_part(
        values, baseline, equal, lambda label: Measure(least=0.0, most=1.0, size=sizes[label])
    )
    if not family.members:
        return None
    others = [arm for arm in values if arm != baseline]
    found = {
        (label, arm): family.members.get((part_of(arm, label), part_of(baseline, label)))
        for label, arm in product(range(len(sizes)), others)
    }
    told = {place for place, member in found.items() if member is not None and member.is_told}
    shown = [printable(name) for name in names.get(baseline, ())]
    named = [shown[label] if label < len(shown) else "" for label in range(len(sizes))]
    printed = range(min(len(sizes), _MOST_CLASSES))
    return Listing(
        name="class_differences",
        title=f"Error of each class, minus {predicted.arms[baseline].title}",
        header=("class", "test images", *(predicted.arms[arm].title for arm in others)),
        cells=tuple(
            (
                named[label] or str(label),
                str(sizes[label]),
                *(spell_member(found[label, arm], _ERROR) for arm in others),
            )
            for label in printed
        ),
        caption="Test error of the images of each class minus that of "
        f"{predicted.title_of(baseline)} at the same seed, in points, from the {predicted.counts} "
        f"({predicted.weights}). "
        f"{spell_family(family)} The adjustment covers all classes and arms together. Bold: "
        f"significantly different from 0 ({len(told)} of {family.size})."
        + (f" The first {_MOST_CLASSES} classes are shown." if len(sizes) > _MOST_CLASSES else ""),
        records=tuple(
            {
                "class": label,
                "name": named[label],
                "images": sizes[label],
                "arm": arm,
                "n": 0 if member is None else member.comparison.n,
                **record_of(member),
            }
            for (label, arm), member in found.items()
        ),
        bold=frozenset((label, 2 + others.index(arm)) for label, arm in told if label in printed),
        is_long=True,
    )


def part_of(arm: str, part: int) -> str:
    """Return the name of a part of an arm's results: one class, or one number of networks."""
    return f"{arm}: {part}"


def family_by_part(
    values: Mapping[str, Mapping[int, BySeed]],
    baseline: str,
    equal: Mapping[str, str],
    measure: Callable[[int], Measure] = lambda _: ANY,
) -> Family:
    """Compare each part of the arms with the same part of the baseline, as one family."""
    parts = [(arm, part) for arm, by_part in values.items() for part in by_part]
    return family_of(
        [(part_of(arm, p), part_of(baseline, p)) for arm, p in parts if arm != baseline],
        {part_of(arm, part): values[arm][part] for arm, part in parts},
        {part_of(arm, part): part_of(equal.get(arm, arm), part) for arm, part in parts},
        {part_of(arm, part): measure(part) for arm, part in parts},
    )


def _summary(values: BySeed, measure: Measure) -> Summary | None:
    return summarise(list(values.values()), measure) if values else None


def _against_baseline(
    predicted: Predicted,
    values: Mapping[str, BySeed],
    baseline: str,
    equal: Mapping[str, str],
    measure: Measure,
) -> Family:
    """Return the comparisons with the baseline of the arms that can be paired with it."""
    arms = [arm for arm in predicted.paired_with(baseline) if arm in values and arm != baseline]
    measures = dict.fromkeys(values, measure)
    return family_of([(arm, baseline) for arm in arms], values, equal, measures)


def _adjusted(before: str, family: Family) -> str:
    """Return `before`, a sentence on how differences are adjusted, and a space."""
    return f"{before}{spell_family(family)} " if family.size else ""


def _adjusted_columns(raw: Family, scaled: Family) -> str:
    if raw.size == scaled.size or not scaled.size:
        return _adjusted("In each column of differences: ", raw)
    unscaled = _adjusted("Differences of the calibration error: ", raw)
    return unscaled + _adjusted("Differences of the scaled calibration error: ", scaled)


def _compared(name: str, member: Member | None) -> dict[str, Any]:
    comparison = None if member is None else member.comparison
    return {
        name: getattr(comparison, "difference", None),
        f"{name}_ci_low": getattr(member, "low", None),
        f"{name}_ci_high": getattr(member, "high", None),
        f"{name}_p": getattr(member, "p", None),
        f"{name}_p_unadjusted": getattr(comparison, "p", None),
    }
