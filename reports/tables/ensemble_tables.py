"""Ensembles: tables of ensembles by number of networks, and of the spread of errors over seeds."""

from collections.abc import Mapping
from typing import Any

from mixup_core.problem import Metric
from reports.numbers.ensembles import NAMES, SCALED, Measured
from reports.numbers.families import Family, record_of
from reports.numbers.predicted import Predicted
from reports.numbers.spelling import DASH, spell_number, spell_value
from reports.tables.captions import spell_family
from reports.tables.listings import Listing, digits_of, spell_member
from reports.tables.predictive import family_by_part, part_of

_PERCENT = Metric(label="", unit="%")
_PLAIN = Metric(label="")
_SHOWN = {
    "error": ("error, %", _PERCENT),
    "nll": ("NLL, nats", _PLAIN),
    "brier": ("Brier score", _PLAIN),
    "calibration_error": ("calibration error, %", _PERCENT),
    "scaled_nll": ("scaled NLL, nats", _PLAIN),
    "scaled_brier": ("scaled Brier score", _PLAIN),
    "scaled_calibration_error": ("scaled calibration error, %", _PERCENT),
}


def size_table(predicted: Predicted, baseline: str, equal: Mapping[str, str]) -> Listing | None:
    """Return the table of ensembles by number of networks: error, NLL, Brier score, calibration."""
    arms = {arm: of_arm for arm, of_arm in predicted.arms.items() if len(of_arm.runs) > 1}
    if not arms:
        return None
    found = [(arm, of_size) for arm, of_arm in arms.items() for of_size in of_arm.sizes.values()]
    known = {name for _, of_size in found for name in of_size.measures}
    names = [name for name in (*NAMES, *SCALED) if name in known]
    families = {name: _family(predicted, name, baseline, equal) for name in names}
    cells, records = [], []
    for arm, of_size in found:
        line = [arms[arm].title, str(of_size.size), str(of_size.num_ensembles)]
        record: dict[str, Any] = {
            "arm": arm,
            "n": len(arms[arm].runs),
            "size": of_size.size,
            "ensembles": of_size.num_ensembles,
            "is_complete": of_size.is_complete,
        }
        for name in names:
            measured = of_size.measures.get(name)
            line.append(_spell(measured, _SHOWN[name][1]))
            record |= _record(name, measured)
            member = families[name].members.get(
                (part_of(arm, of_size.size), part_of(baseline, of_size.size))
            )
            if name == "calibration_error":
                line.append(spell_member(member, _PERCENT))
            compared = record_of(member)
            record |= {
                f"{name}_{column}": compared[column]
                for column in ("difference", "difference_ci_low", "difference_ci_high", "p")
            }
        cells.append(tuple(line))
        records.append(record)
    heads = [_SHOWN[name][0] for name in names]
    heads.insert(
        names.index("calibration_error") + 1,
        f"calibration error minus {predicted.title_of(baseline)}, points",
    )
    family = families["calibration_error"]
    adjusted = f"Differences are paired by seed. {spell_family(family)} " if family.size else ""
    scaled = (
        "Scaled columns: after temperature scaling, at the temperature with the least NLL on the "
        "validation images, fitted for each ensemble. "
        if "scaled_nll" in names
        else "The runs of an arm share no validation images, so no temperature is fitted. "
    )
    return Listing(
        name="ensemble_sizes",
        title="Ensembles by number of networks",
        header=("arm", "networks", "ensembles", *heads),
        cells=tuple(cells),
        caption=f"Computed from the {predicted.counts} on the test images ({predicted.weights}). "
        "An ensemble averages the predicted probabilities of networks of one arm. Each row is a "
        "mean over ensembles of the same size: all of them, or a balanced selection if there are "
        f"many. {scaled}Intervals are 95 % jackknife intervals over seeds, for other networks on "
        f"the same images. {adjusted}Intervals for other images, with the same networks, are in "
        "the CSV file (`_image_low`, `_image_high`). Intervals are cut at the bounds of their "
        "measure, and left out where nothing varies. The calibration error is biased upwards if "
        "bins contain few images.",
        records=tuple(records),
        is_long=True,
    )


def spread_table(predicted: Predicted) -> Listing | None:
    """Return the table of the spread of the error over seeds, split into two parts."""
    found = {
        arm: of_arm.spread for arm, of_arm in predicted.arms.items() if of_arm.spread is not None
    }
    if not found:
        return None
    scale = 100.0
    return Listing(
        name="spread",
        title="Standard deviation of the test error over seeds",
        header=(
            "arm",
            "n",
            "test images",
            "sd of the test error, points",
            "sd from the finite test set, points",
            "sd on the data distribution, points",
        ),
        cells=tuple(
            (
                predicted.arms[arm].title,
                str(spread.n),
                str(spread.images),
                spell_value(spread.total, spread.total_low, spread.total_high, scale, digits),
                spell_number(scale * spread.noise, digits),
                spell_value(
                    spread.distribution,
                    spread.distribution_low,
                    spread.distribution_high,
                    scale,
                    digits,
                ),
            )
            for arm, spread in found.items()
            for digits in (digits_of(spread.n, 2),)
        ),
        caption="Standard deviation (sd) of the test error over seeds, from the "
        f"{predicted.counts} ({predicted.weights}). The variance is split into two parts: sd^2 = "
        "noise^2 + (1 - 1 / images) times distribution^2. The noise comes from the finite number "
        "of test images. The other part is the sd of the error on the distribution that the images "
        "are drawn from (Jordan 2023, arXiv:2304.01910). It is 0 if the noise explains the whole "
        "sd, and has no interval if the noise also explains the upper limit. The 95 % intervals "
        "are from the chi-square distribution, which assumes normal values.",
        records=tuple(
            {"arm": arm} | {name: getattr(spread, name) for name in spread.__slots__}
            for arm, spread in found.items()
        ),
    )


def _family(predicted: Predicted, name: str, baseline: str, equal: Mapping[str, str]) -> Family:
    """Return the comparisons with the baseline, at equal numbers of networks, as one family."""
    values = {
        arm: {
            size: of_size.measures[name].by_seed
            for size, of_size in of_arm.sizes.items()
            if name in of_size.measures
        }
        for arm, of_arm in predicted.paired_with(baseline).items()
    }
    return family_by_part(values, baseline, equal)


def _spell(measured: Measured | None, metric: Metric) -> str:
    if measured is None:
        return DASH
    return spell_value(measured.mean, measured.low, measured.high, metric.scale, metric.digits)


def _record(name: str, measured: Measured | None) -> dict[str, float | None]:
    # Frozen: columns of `tables/ensemble_sizes.csv`, which scripts read by name;
    # tests/reports/tables/test_ensemble_tables.py fails.
    return {
        f"{name}_{column}": getattr(measured, field, None)
        for column, field in (
            ("mean", "mean"),
            ("ci_low", "low"),
            ("ci_high", "high"),
            ("image_low", "image_low"),
            ("image_high", "image_high"),
        )
    }
