"""Predicted: measures of runs and arms that a report computes from stored predictions (logits)."""

import math
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy import special

from mixup_core.predictions import Predictions, Split, auroc, balanced_accuracy
from mixup_core.records import AVERAGED
from reports.numbers.calibration import (
    Reliability,
    brier,
    fitted_temperature,
    negative_log_likelihood,
    probabilities,
    reliability,
)
from reports.numbers.ensembles import EnsembleSize, ensemble_sizes
from reports.numbers.runs import Arranged, complete_runs, counted_runs
from reports.numbers.spread import Spread, split_spread
from reports.numbers.summary import CONFIDENCE
from sweeps.state.results import RunResult
from sweeps.study.readouts import Averaged, of_predictions
from sweeps.study.study import Study

ReadPredictions = Callable[[Sequence[RunResult]], Sequence[Predictions | None]]
"""Function that returns the stored predictions of each run; None for a run without any."""

_FITTED = ("temperature", "scaled_calibration_error", "scaled_brier", "scaled_nll")
"""Measures that need validation images."""

MOST_PAIRED = 20
"""Largest number of seeds of an arm whose runs are compared in pairs (20 seeds have 190 pairs)."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class PredictedRun:
    """Error, NLL, ... of one run on its test images, computed from its stored predictions."""

    error: float
    classes: NDArray[np.float64]
    raw: Reliability
    scaled: Reliability | None
    """Reliability at the temperature fitted on the validation images; None without them."""
    measures: Mapping[str, float | None]
    """Values by measure; the metric of a measure is named `predicted/NAME`. Measures of the fitted
    temperature are None without validation images, the AUROC if a class has no test image.
    """


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class PredictedArm:
    """Error, NLL, ... of an arm's runs and of ensembles of them, from stored predictions."""

    title: str
    """The name of the arm with its tags, such as `oracle`, for tables and figures."""
    measured_on: Hashable
    """The test images, and what else must be equal for arms to be paired by seed."""
    runs: Mapping[int, PredictedRun]
    ensemble_error: float
    gain: float
    """Advantage of the ensemble: mean error of the runs minus `ensemble_error`."""
    gain_half_width: float
    """Half the width of the 95 % interval of `gain` over test images, for fixed networks. If every
    image has the same gain, the width is computed as if the gain of one image differed by 1.
    """
    pair_gain: Mapping[int, float]
    """Advantage of ensembles of two: mean error of two runs minus the error of their mean
    prediction. One jackknife pseudo-value per seed (`pseudo_values`); empty with fewer than three
    seeds.
    """
    disagreement: Mapping[int, float]
    """Fraction of images that two runs classify differently, as a jackknife pseudo-value per seed.
    """
    sizes: Mapping[int, EnsembleSize]
    spread: Spread | None
    of_class: Sequence[int]

    @property
    def error(self) -> float:
        """The mean test error of the arm's networks, each alone (no ensemble), as a fraction."""
        return float(np.mean([run.error for run in self.runs.values()]))


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Predicted:
    """Error, NLL, ... of all arms of a study, computed from its stored predictions."""

    arms: Mapping[str, PredictedArm]
    """Each arm with at least one run whose predictions are stored, in the order of the study."""
    num_runs: int
    num_complete: int
    """Number of complete runs, without those of an arm that has a diverged run, and without those
    whose stored predictions contain no test images.
    """
    weights: str
    """Name of the weights that made the predictions, for captions."""
    beside_diverged: Mapping[str, Mapping[int, PredictedRun]] = field(default_factory=dict)
    """Complete runs of each arm that also has a diverged run, by arm and seed. Only claims at
    planned looks use them; it is empty in a study without planned looks.
    """

    def paired_with(self, arm: str) -> dict[str, PredictedArm]:
        """Return the arms that can be paired with an arm by seed; none if it is unknown."""
        same = self.arms[arm].measured_on if arm in self.arms else None
        return {name: of_arm for name, of_arm in self.arms.items() if of_arm.measured_on == same}

    def values(self, metric: str) -> dict[str, dict[int, float]]:
        """Return one measure, such as NLL, of every run that has it, by arm and seed."""
        return _values({arm: of_arm.runs for arm, of_arm in self.arms.items()}, metric)

    def claimed_values(self, metric: str) -> dict[str, dict[int, float]]:
        """Return one measure of the runs on which claims are tested, by arm and seed."""
        return self.values(metric) | _values(self.beside_diverged, metric)

    def values_together(self, metric: str, arm: str, networks: int) -> dict[int, float]:
        """Return a measure, such as NLL, of networks together (ensembles), as one value per seed.

        A seed's value is the jackknife pseudo-value: the mean over all ensembles, changed by the
        effect of leaving out this seed's network. The mean of the values is the mean over the
        ensembles. The result is empty if the arm is unknown, or has too few seeds.
        """
        name = metric.removeprefix("predicted/")
        of_arm = self.arms.get(arm)
        of_size = None if of_arm is None else of_arm.sizes.get(networks)
        if of_size is None:
            return {}
        if name == "accuracy":
            return {seed: 1 - error for seed, error in of_size.measures["error"].by_seed.items()}
        measured = of_size.measures.get(name)
        return {} if measured is None else dict(measured.by_seed)

    def title_of(self, arm: str) -> str:
        """Return the name of an arm with its tags, for tables and figures."""
        return self.arms[arm].title if arm in self.arms else arm

    @property
    def counts(self) -> str:
        """The number of runs with predictions, as text: `predictions of 14 of 15 runs`."""
        return f"predictions of {self.num_runs} of {self.num_complete} runs"


def gather_predictions(study: Study, arranged: Arranged, read: ReadPredictions) -> Predicted:
    """Read the predictions of all complete runs; compute error, NLL, ... of runs and ensembles."""
    readout = of_predictions(study.readout)
    weights = AVERAGED if isinstance(readout, Averaged) else ""
    arms, num_runs, num_complete = {}, 0, 0
    beside_diverged: dict[str, dict[int, PredictedRun]] = {}
    for arm, by_seed in arranged.items():
        counted = counted_runs(by_seed)
        runs = counted if study.until is None else complete_runs(by_seed)
        every = dict(zip(runs, read(list(runs.values())), strict=True))
        tested = {s: p for s, p in every.items() if p is None or "test" in p.splits}
        predicted = {
            seed: predictions
            for seed, predictions in tested.items()
            if predictions is not None and weights in predictions.splits["test"].logits
        }
        found = _alike(predicted, weights)
        if runs and not counted:
            beside_diverged[arm] = {seed: _run_of(p, weights) for seed, p in found.items()}
            continue
        num_complete += len(tested)
        num_runs += len(found)
        if found:
            population = study.problem.comparing.population(study.arms[arm], "predicted/accuracy")
            arms[arm] = _arm_of(study.title_of(arm), found, weights, population)
    return Predicted(
        arms=arms,
        beside_diverged=beside_diverged,
        num_runs=num_runs,
        num_complete=num_complete,
        weights=str(readout),
    )


def pseudo_values(by_pair: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return jackknife pseudo-values, one per seed, of a mean over all pairs of seeds.

    With U the mean over all pairs of n seeds, the pseudo-value of a seed is

        n U - (n - 1) (U without the seed)

    The mean of the pseudo-values is U. Intervals and paired comparisons use them like values by
    seed; this accounts for the dependence between pairs that share a seed.

    Source: Arvesen 1969, Jackknifing U-statistics, Annals of Mathematical Statistics 40.
    """
    n = len(by_pair)
    off = by_pair * ~np.eye(n, dtype=bool)
    total = off.sum() / 2
    without = (total - off.sum(1)) / math.comb(n - 1, 2)
    values: NDArray[np.float64] = n * total / math.comb(n, 2) - (n - 1) * without
    return values


def _values(
    runs: Mapping[str, Mapping[int, PredictedRun]], metric: str
) -> dict[str, dict[int, float]]:
    name = metric.removeprefix("predicted/")
    return {
        arm: {s: v for s, run in by_seed.items() if (v := run.measures[name]) is not None}
        for arm, by_seed in runs.items()
    }


def _run_of(predictions: Predictions, weights: str) -> PredictedRun:
    """Return what reports compute from the predictions of one run, for one set of its weights."""
    test, val = predictions.splits["test"], predictions.splits.get("val")
    logits, labels = test.logits[weights], test.labels
    chance = probabilities(logits)
    is_wrong = chance.argmax(1) != labels
    error, raw = float(is_wrong.mean()), reliability(chance, labels)
    numbers = np.bincount(labels, minlength=chance.shape[1])
    wrong = np.bincount(labels, weights=is_wrong, minlength=chance.shape[1])
    scaled, fitted = None, dict[str, float]()
    if val is not None:
        temperature = fitted_temperature(val.logits[weights], val.labels)
        chance_scaled = probabilities(logits, temperature)
        scaled = reliability(chance_scaled, labels)
        fitted = {
            "temperature": temperature,
            "scaled_calibration_error": scaled.error,
            "scaled_brier": brier(chance_scaled, labels),
            "scaled_nll": negative_log_likelihood(logits, labels, temperature),
        }
    return PredictedRun(
        error=error,
        classes=wrong / np.maximum(numbers, 1),
        raw=raw,
        scaled=scaled,
        # Frozen: names of metrics (`predicted/NAME`), which study files and CSV files have;
        # tests/reports/tables/test_predictive.py fails.
        measures={
            "calibration_error": raw.error,
            "brier": brier(chance, labels),
            **dict.fromkeys(_FITTED),
            **fitted,
            "accuracy": 1 - error,
            "balanced_accuracy": balanced_accuracy(chance, labels),
            "auroc": auroc(chance, labels),
        },
    )


def _alike(found: Mapping[int, Predictions], weights: str) -> dict[int, Predictions]:
    """Return the predictions for the test images and classes that most of the given runs have.

    Others may come from an archive, and cannot be averaged with these.
    """
    tested = {seed: predictions.splits["test"] for seed, predictions in found.items()}
    kinds = {seed: (_kind(split), split.logits[weights].shape) for seed, split in tested.items()}
    usual = Counter(kinds.values()).most_common(1)
    return {seed: found[seed] for seed, kind in kinds.items() if kind == usual[0][0]}


def _kind(split: Split) -> tuple[str, bytes]:
    return split.images, split.labels.tobytes()


def _arm_of(
    title: str, found: Mapping[int, Predictions], weights: str, population: Hashable
) -> PredictedArm:
    """Return the measures of an arm's runs, and of the ensemble of these runs."""
    runs = {seed: _run_of(predictions, weights) for seed, predictions in found.items()}
    chances = [probabilities(p.splits["test"].logits[weights]) for p in found.values()]
    splits = [predictions.splits["test"] for predictions in found.values()]
    labels = splits[0].labels
    predicted = np.stack([chance.argmax(1) for chance in chances])
    together = sum(chances[1:], chances[0]).argmax(1)
    saved = (predicted != labels).mean(0) - (together != labels)
    spread = float(saved.std(ddof=1)) if len(saved) > 1 else 0.0
    quantile = float(special.ndtri((1 + CONFIDENCE) / 2))
    pair_gain, disagreement = _of_pairs(list(found), chances, predicted, labels)
    held_out = {seed: p.splits["val"] for seed, p in found.items() if "val" in p.splits}
    is_held_out = len(held_out) == len(found)
    is_shared = is_held_out and len(set(map(_kind, held_out.values()))) == 1
    shared = (
        {seed: probabilities(split.logits[weights]) for seed, split in held_out.items()},
        next(iter(held_out.values())).labels,
    ) if is_shared else None  # fmt: skip
    return PredictedArm(
        title=title,
        measured_on=(splits[0].images, population),
        runs=runs,
        ensemble_error=float((together != labels).mean()),
        gain=float(saved.mean()),
        gain_half_width=quantile * (spread / math.sqrt(len(saved)) or 1 / len(saved)),
        pair_gain=pair_gain,
        disagreement=disagreement,
        sizes=ensemble_sizes(dict(zip(found, chances, strict=True)), labels, shared),
        spread=split_spread(predicted != labels) if min(predicted.shape) > 1 else None,
        of_class=np.bincount(labels, minlength=chances[0].shape[1]).tolist(),
    )


def _of_pairs(
    seeds: Sequence[int],
    chances: Sequence[NDArray[np.float64]],
    predicted: NDArray[np.int64],
    labels: NDArray[np.int64],
) -> tuple[dict[int, float], dict[int, float]]:
    """Return gain and disagreement of pairs of runs, as jackknife pseudo-values by seed."""
    n = min(len(seeds), MOST_PAIRED)
    if n < 3:
        return {}, {}
    gains, disagreements = np.zeros((n, n)), np.zeros((n, n))
    errors = (predicted != labels).mean(1)
    for first, second in combinations(range(n), 2):
        together = (chances[first] + chances[second]).argmax(1)
        gain = (errors[first] + errors[second]) / 2 - (together != labels).mean()
        gains[first, second] = gains[second, first] = gain
        differ = (predicted[first] != predicted[second]).mean()
        disagreements[first, second] = disagreements[second, first] = differ
    return (
        dict(zip(seeds[:n], pseudo_values(gains).tolist(), strict=True)),
        dict(zip(seeds[:n], pseudo_values(disagreements).tolist(), strict=True)),
    )
