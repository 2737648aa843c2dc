"""Ensembles: error, NLL, Brier score and calibration of ensembles, by number of networks."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy import special

from reports.numbers.calibration import (
    NUM_BINS,
    confidence_bins,
    fitted_temperature,
    probabilities,
)
from reports.numbers.summary import CONFIDENCE, Measure, share_limits, t_quantile

Array = NDArray[np.float64]
Labels = NDArray[np.int64]

SIZES = (1, 2, 3, 5, 10, 20, 50, 100)

NAMES = ("error", "nll", "brier", "calibration_error")
SCALED = ("scaled_nll", "scaled_brier", "scaled_calibration_error")
"""Measures after temperature scaling. The temperature minimises the NLL of the ensemble on the
validation images.
"""

_MOST_PER_SEED = 4
"""At most this many ensembles per network are evaluated of one size."""

_MOST_NUMBERS = 200_000_000
"""Approximate largest number of probabilities that are averaged for one size of ensemble in one
arm.
"""

_GROUPS = 40
"""Number of groups of test images; the jackknife leaves out one at a time."""

_LEAST_PROBABILITY = 1e-300

_MOST = {"error": 1.0, "calibration_error": 1.0, "brier": 2.0}
"""Upper bounds of the measures that have an upper bound. All measures are at least 0."""

_ROUNDING = 1e-12
"""An interval narrower than this fraction of its value is attributed to rounding."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Measured:
    """One measure, such as the error, averaged over ensembles of one size."""

    mean: float
    low: float | None
    """Lower end of the 95 % interval over networks, for fixed test images."""
    high: float | None
    """Upper end. Both ends are None, too, if every choice of networks gives the same value."""
    image_low: float | None
    """Lower end of the 95 % interval over test images, for fixed networks."""
    image_high: float | None
    by_seed: Mapping[int, float]
    """Jackknife pseudo-value of each seed, for paired comparisons."""


@dataclass(frozen=True, kw_only=True, slots=True)
class EnsembleSize:
    """Error, NLL and other measures of ensembles that have a given number of an arm's networks."""

    size: int
    num_ensembles: int
    is_complete: bool
    """True if every subset of this size was evaluated, rather than a choice of subsets."""
    measures: Mapping[str, Measured]


def ensemble_sizes(
    chances: Mapping[int, Array],
    labels: Labels,
    val: tuple[Mapping[int, Array], Labels] | None = None,
) -> dict[int, EnsembleSize]:
    """Return error, NLL, ... of ensembles of an arm's networks, by the number of networks.

    Each has an interval over networks, from the jackknife, which leaves out one network at a time.
    The jackknife estimates variances on average too large rather than too small (Efron and Stein
    1981, The jackknife estimate of variance). A second interval, over test images, is from a
    jackknife that leaves out one of 40 random groups of images at a time.
    """
    seeds = list(chances)
    groups = np.random.default_rng(0).permutation(np.arange(len(labels)) % _GROUPS)
    used = groups.max() + 1
    found = {}
    for size in sorted({*(k for k in SIZES if k < len(seeds)), len(seeds)}):
        chosen = chosen_subsets(len(seeds), size, _most(len(seeds), size, chances[seeds[0]].size))
        left_out = chosen
        if size == len(seeds) > 1:
            left_out = tuple(combinations(range(size), size - 1))
        table = {
            subset: _measure([seeds[place] for place in subset], chances, labels, val, groups, used)
            for subset in {**dict.fromkeys(chosen), **dict.fromkeys(left_out)}
        }
        found[size] = EnsembleSize(
            size=size,
            num_ensembles=len(chosen),
            is_complete=len(chosen) == math.comb(len(seeds), size),
            measures=_summarised(
                seeds, chosen, left_out, table, has_scaled=val is not None, num_images=len(labels)
            ),
        )
    return found


def chosen_subsets(n: int, size: int, most: int) -> tuple[tuple[int, ...], ...]:
    """Return subsets of the numbers 0 to n - 1, so that each number is in equally many subsets.

    If there are at most `most` subsets of the size, all are returned. Otherwise the n numbers are
    arranged in random circles, from a fixed seed, and a subset consists of numbers that are next to
    each other in a circle.
    """
    if math.comb(n, size) <= most:
        return tuple(combinations(range(n), size))
    # Frozen: these draws. Published tables of ensembles would change without new runs;
    # tests/reports/numbers/test_ensembles.py fails.
    rng = np.random.default_rng([n, size])
    circles = [rng.permutation(n).tolist() for _ in range(max(1, most // n))]
    return tuple(
        tuple(sorted((circle + circle)[start : start + size]))
        for circle in circles
        for start in range(n)
    )


def _most(n: int, size: int, numbers: int) -> int:
    return max(n, min(_MOST_PER_SEED * n, _MOST_NUMBERS // (size * numbers)))


def _measure(  # noqa: PLR0913  one ensemble on two sets of images
    seeds: Sequence[int],
    chances: Mapping[int, Array],
    labels: Labels,
    val: tuple[Mapping[int, Array], Labels] | None,
    groups: NDArray[np.int64],
    used: int,
) -> Array:
    """Return the measures of one ensemble; the first row is over all images."""
    together = _mean(seeds, chances)
    columns = [_of_images(together, labels, groups, used)]
    if val is not None:
        logits = _logits(_mean(seeds, val[0]))
        temperature = fitted_temperature(logits, val[1])
        scaled = probabilities(_logits(together), temperature)
        columns.append(_of_images(scaled, labels, groups, used)[:, 1:])
    return np.concatenate(columns, axis=1)


def _mean(seeds: Sequence[int], chances: Mapping[int, Array]) -> Array:
    return sum((chances[seed] for seed in seeds[1:]), chances[seeds[0]]) / len(seeds)


def _logits(chances: Array) -> Array:
    logits: Array = np.log(np.maximum(chances, _LEAST_PROBABILITY))
    return logits


def _of_images(chances: Array, labels: Labels, groups: NDArray[np.int64], used: int) -> Array:
    """Return error, NLL, Brier score and calibration error over all images."""
    own = chances[np.arange(len(labels)), labels]
    predicted = chances.argmax(1)
    confidence = chances[np.arange(len(labels)), predicted]
    is_right = (predicted == labels).astype(np.float64)
    brier = np.square(chances).sum(1) - 2 * own + 1
    nll = -np.log(np.maximum(own, _LEAST_PROBABILITY))
    sums = np.stack(
        [np.bincount(groups, values, used) for values in (1 - is_right, nll, brier)], axis=1
    )
    bins = groups * NUM_BINS + confidence_bins(confidence)
    gaps = np.bincount(bins, is_right - confidence, used * NUM_BINS)
    gaps = gaps.reshape(used, NUM_BINS)
    counts = np.bincount(groups, minlength=used)[:, None]
    parts = [np.concatenate([whole.sum(0, keepdims=True), whole.sum(0) - whole]) for whole in
             (sums, gaps, counts)]  # fmt: skip
    errors = np.abs(parts[1]).sum(1, keepdims=True)
    measured: Array = np.concatenate([parts[0], errors], axis=1) / np.maximum(parts[2], 1)
    return measured


def _summarised(  # noqa: PLR0913  measures of all subsets, and their layout
    seeds: Sequence[int],
    chosen: Sequence[tuple[int, ...]],
    left_out: Sequence[tuple[int, ...]],
    table: Mapping[tuple[int, ...], Array],
    *,
    has_scaled: bool,
    num_images: int,
) -> dict[str, Measured]:
    """Return each measure of ensembles of one size, with intervals over seeds and over test images.

    Both are from the jackknife: `left_out` are the ensembles without one of the seeds, and the rows
    of `table` after the first are measured without one group of the images.
    """
    n = len(seeds)
    measured = np.mean([table[subset] for subset in chosen], axis=0)
    whole, by_group = measured[0], measured[1:]
    num_groups = len(by_group)
    spread = np.sqrt((num_groups - 1) / num_groups * np.square(by_group - by_group.mean(0)).sum(0))
    image_half = float(special.ndtri((1 + CONFIDENCE) / 2)) * spread
    without = (
        np.array(
            [
                np.mean([table[subset][0] for subset in left_out if place not in subset], axis=0)
                for place in range(n)
            ]
        )
        if n >= 3
        else np.empty((0, len(whole)))
    )
    pseudo = whole + (n - 1) * (without.mean(0) - without) if n >= 3 else without
    found = {}
    for column, name in enumerate((*NAMES, *(SCALED if has_scaled else ()))):
        mean, values = float(whole[column]), pseudo[:, column]
        half = 0.0
        if n >= 3:
            half = t_quantile(n, CONFIDENCE) * float(values.std(ddof=1)) / math.sqrt(n)
        most = _MOST.get(name.removeprefix("scaled_"), math.inf)
        low, high = _ends(mean, half, most)
        image_low, image_high = _ends(mean, float(image_half[column]), most)
        if name == "error" and image_low is None:
            share = Measure(least=0.0, most=1.0, size=num_images)
            image_low, image_high = share_limits(mean, 0.0, 1, share, CONFIDENCE)
        found[name] = Measured(
            mean=mean,
            low=low,
            high=high,
            image_low=image_low,
            image_high=image_high,
            by_seed=dict(zip(seeds, values.tolist(), strict=True)) if n >= 3 else {},
        )
    return found


def _ends(mean: float, half: float, most: float) -> tuple[float | None, float | None]:
    """Return the ends of an interval, cut at the bounds of its measure; None if it has no width."""
    if half <= _ROUNDING * abs(mean) or half == 0:
        return None, None
    return max(0.0, mean - half), min(most, mean + half)
