"""METRICS and PREDICTED: which metrics image training records, and what a run needs for each."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from mixup_core.config.catalogue import CatalogueError, cached_until_growth
from mixup_core.config.parts import members
from mixup_core.images.choices.models import in_full
from mixup_core.images.choices.optimizers import Cosine, WarmUp
from mixup_core.images.config import MixConfig, TrainConfig
from mixup_core.images.data.data_config import DataConfig
from mixup_core.images.data.sets.corrupted import CORRUPTED_SPLITS, CORRUPTIONS
from mixup_core.images.epoch import Planned
from mixup_core.images.feasibility import at_seed, held_out_labels
from mixup_core.images.image_data import described
from mixup_core.images.objectives.objective import Objective, Plain
from mixup_core.images.probes.probe import Probe
from mixup_core.images.probes.scores import Scores
from mixup_core.problem import Metric, spell_odd_name
from mixup_core.records import AVERAGED


class _Metrics(Mapping[str, Metric]):
    """Mapping of all metrics by name, including those that plugins declare."""

    def __getitem__(self, name: str) -> Metric:
        return _metrics()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(_metrics())

    def __len__(self) -> int:
        return len(_metrics())


METRICS: Mapping[str, Metric] = _Metrics()
"""Metrics of training and evaluation, and those that objectives and probes declare, by name."""

PREDICTED = {
    f"predicted/{scaled}{name}": Metric(
        label=f"test {label}{at}", unit=unit, least=0.0, most=2.0 if name == "brier" else None
    )
    for scaled, at in (("", ""), ("scaled_", " after temperature scaling"))
    for name, label, unit in (
        ("calibration_error", "calibration error", "%"),
        ("brier", "Brier score", ""),
        ("nll", "NLL", "nats"),
    )
    if (scaled, name) != ("", "nll")
} | {
    "predicted/temperature": Metric(
        label="fitted temperature", least=math.exp(-5), most=math.exp(5)
    ),
    **{
        f"predicted/{name}": replace(metric, label=f"{metric.label} from predictions")
        for name in ("accuracy", "balanced_accuracy", "auroc")
        for metric in (Scores.metrics[f"test/{name}"],)
    },
}
"""Metrics computed from the stored logits of the test images after the last epoch. Those with
`scaled_` use a temperature fitted on the validation images.
"""

EXCESS = "train/excess_loss"
"""Training loss minus its infimum over all classifiers, where the infimum is known."""

# Frozen: each metric name below. After a change, stored results are not found or get another
# meaning; tests/golden/test_keys.py fails.
_MEASURED = {
    **{
        f"{split}/{name}{suffix}": Metric(label=f"{title} {label}{note}", unit=unit, least=0.0)
        for suffix, note in (("", ""), (AVERAGED, ", averaged weights"))
        for split, title in (
            ("test", "test"),
            ("val", "validation"),
            ("test_corrupted", "corrupted test"),
            *((f"test_{name}", f"test under {name.replace('_', ' ')}") for name in CORRUPTIONS),
        )
        for name, label, unit in (
            ("error", "error", "%"),
            ("nll", "NLL", "nats"),
            ("calibration_error", "calibration error", "%"),
        )
    },
    "train/loss": Metric(label="training loss", unit="nats", least=0.0),
    EXCESS: Metric(
        label="excess training loss",
        unit="nats",
        note="Excess: training loss minus its lower bound, the entropy of the mixed labels.",
    ),
}


def require_own_metrics(kinds: Iterable[type]) -> None:
    """Check that no metric of a plugin's objectives and probes has an odd or a taken name."""
    declaring = (*members(Objective), *members(Probe))
    for kind in kinds:
        if issubclass(kind, (Objective, Probe)):
            if odd := spell_odd_name("metric", kind.metrics):
                raise CatalogueError(f"`metrics` of {kind.__name__}: {odd}")
            others = [other.metrics for other in declaring if other is not kind]
            taken = set().union(_MEASURED, PREDICTED, *others)
            if shared := sorted(taken & kind.metrics.keys()):
                raise CatalogueError(
                    f"`metrics` of {kind.__name__} declares {', '.join(shared)}, "
                    "which another measurement records; choose another name"
                )


@cached_until_growth
def _metrics() -> Mapping[str, Metric]:
    kinds = (*members(Objective), *members(Probe))
    return _MEASURED | {name: metric for kind in kinds for name, metric in kind.metrics.items()}


_NO_TEST = "the run has no test images; set data.test: true"


def lacks(config: TrainConfig, metric: str, records: int) -> str | None:
    """Return a message unless the last `records` records that can have a metric have it; else None.

    The message gives the reason and the field to set. It is shown when a claim or a headline of a
    study file needs the metric. Objectives, losses and probes are asked what they record, by the
    same functions that training asks.
    """
    is_predicted = metric.removesuffix(AVERAGED) in PREDICTED
    if metric not in METRICS and not is_predicted:
        return "no run records this metric"
    if metric.endswith(AVERAGED) and config.averaging is None:
        return "the run averages no weights; set averaging"
    if is_predicted:
        is_fitted = "scaled_" in metric or "/temperature" in metric
        if not config.data.test:
            return _NO_TEST
        if is_fitted and not config.data.holds_out:
            return "the run has no validation images to fit a temperature on; set data.val_size"
        return None
    return _lacks_images(config.data, metric) or _lacks_part(config, metric, records)


def lacks_at(config: TrainConfig, metric: str, seeds: Sequence[int]) -> str | None:
    """Return a message if the images that a seed holds out keep a probe from recording a metric."""
    probes = [probe for probe in config.probes if metric in type(probe).metrics]
    if metric.removesuffix(AVERAGED) in PREDICTED:
        probes, metric = [Scores()], metric.replace("predicted/", "test/")
    folds = config.data.folds or 1  # without folds, every seed holds out the same images
    for seed in {seed % folds: seed for seed in seeds}.values() if probes else ():
        own = at_seed(config, seed)
        labels = partial(held_out_labels, own)
        info, last = described(config.data), config.epochs - 1
        planned = Planned(config=own, epoch=last, info=info, labels=labels)
        reasons = [probe.lacks(planned, metric) for probe in probes]
        if None not in reasons:
            return reasons[0] if folds == 1 else f"at seed {seed}, {reasons[0]}"
    return None


def observed(config: TrainConfig, metric: str) -> TrainConfig:
    """Return a configuration without the settings that do not change the last value of a metric.

    These settings are probes, the average of the weights, evaluations before the last epoch, those
    of other held-out images, kinds of label noise if there is none, those of mixing and of the rate
    that change no step, and None for the usual sizes of a network. Two runs with equal results of
    this function end with the same value of the metric. For a metric of averaged weights, probes,
    the average and evaluations stay; for one of a probe, all settings.
    """
    if any(metric in kind.metrics for kind in members(Probe)):
        return config
    mix, rate = config.mix, config.lr_schedule
    if mix.probability == 0 and config.objective == Plain():
        mix = MixConfig()
    if mix.second is None or mix.second_probability == 0:
        mix = replace(mix, second=None, second_law=None, second_probability=0.0)
    if (mix.lam_scope, mix.second, mix.label_law) == ("sample", None, None):
        epochs = map(config.in_epoch, range(config.epochs))
        if all(e.law.constant is not None and e.operation.is_linear for e in epochs):
            mix = replace(mix, lam_scope="batch")
    if isinstance(rate, Cosine) and rate.end == 1:
        rate = WarmUp(warm_up=rate.warm_up)
    data, model = _seen_by(config.data, metric), in_full(config.model)
    config = replace(config, data=data, model=model, mix=mix, lr_schedule=rate)
    if metric.endswith(AVERAGED):
        return config
    return replace(config, probes=(), averaging=None, eval_every=config.epochs)


def _seen_by(data: DataConfig, metric: str) -> DataConfig:
    """Return settings of data without those of held-out images and labels that a metric ignores."""
    split, unused = metric.partition("/")[0], dict[str, Any]()
    if split != "test_corrupted":
        unused["corruptions"] = ()
    if split not in CORRUPTED_SPLITS:
        unused["severity"] = None
    if data.label_noise == 0:
        unused |= {"noise_to": "any", "noise_in_val": False, "noise_in_test": False}
    if split not in {"val", "predicted"}:
        unused["noise_in_val"] = False
    if split in {"val", "train"} and not data.oracle:
        unused |= {"noise_in_test": False, "test": True}
    return replace(data, **unused)


def _lacks_images(data: DataConfig, metric: str) -> str | None:
    split = metric.partition("/")[0]
    if split not in {"val", "test", *CORRUPTED_SPLITS} or split in data.splits:
        return None
    if split == "val":
        return "the run has no validation images; set data.val_size"
    if not data.test:
        return _NO_TEST
    if (corruption := split.removeprefix("test_")) == "corrupted":
        return "the run has no corrupted test images; set data.corruptions"
    return f"the run has no {corruption} images; add {corruption} to data.corruptions"


def _lacks_part(config: TrainConfig, metric: str, records: int) -> str | None:
    """Return a message if training or a probe does not record a metric, or too rarely."""
    kinds = [kind for kind in members(Probe) if metric in kind.metrics]
    probes = [probe for probe in config.probes if metric in type(probe).metrics]
    if kinds and not probes:
        return f"add the probe {' or '.join(kind.tag for kind in kinds)} to probes"
    every = 1 if metric.startswith("train/") else config.eval_every
    if probes:
        every = min(probe.every or config.eval_every for probe in probes)
    number = config.epochs // every
    if number < records:
        return f"{records} records of the metric are needed, but the run makes {number}"
    info = described(config.data)
    for epoch in range(config.epochs - 1, config.epochs - 1 - every * records, -every):
        planned = Planned(config=config, epoch=epoch, info=info)
        reasons = [probe.lacks(planned, metric) for probe in probes]
        reasons = reasons or [_lacks_in_training(planned, metric)]
        if None not in reasons:
            return reasons[0]
    return None


def _lacks_in_training(planned: Planned, metric: str) -> str | None:
    """Return a message if training does not record a metric in an epoch, without probes."""
    if metric == EXCESS:
        return planned.how.lacks_excess(planned.config.loss)
    kinds = [kind for kind in members(Objective) if metric in kind.metrics]
    if not kinds or metric in planned.how.objective.metrics:
        return None
    tags = " or ".join(kind.tag for kind in kinds)
    if isinstance(planned.config.objective, tuple(kinds)):
        return f"the objective {tags} is not used in epoch {planned.epoch}"
    return f"set objective to {tags}"
