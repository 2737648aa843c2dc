"""lacks, observed: tell if a run records a metric; drop settings that do not change its value."""

from dataclasses import replace

from mixup_core.config.parts import members
from mixup_core.images.config import TrainConfig
from mixup_core.images.metrics import METRICS, PREDICTED
from mixup_core.images.objectives.objective import Objective
from mixup_core.images.probes.probe import Probe

_AVERAGED = "_averaged"


def lacks(config: TrainConfig, metric: str, records: int) -> str | None:
    """Return a message if a run records a metric fewer than `records` times; else None.

    The message gives the reason and the field to set. It is shown when a claim or a headline of a
    study file needs the metric.
    """
    if metric in PREDICTED:
        return _lacks_predictions(config, metric)
    if metric not in METRICS:
        return "no run records this metric"
    name = metric.removesuffix(_AVERAGED)
    if name != metric and config.averaging is None:
        return "the run averages no weights; set averaging"
    return _lacks_images(config, name) or _lacks_part(config, metric, records)


def observed(config: TrainConfig, metric: str) -> TrainConfig:
    """Return a configuration without the settings that do not change the last value of a metric.

    These settings are probes, the average of the weights, and evaluations before the last epoch.
    Two runs with equal results of this function end with the same value of the metric. For a metric
    of averaged weights or of a probe, the configuration is returned unchanged.
    """
    is_of_probe = any(metric in kind.metrics for kind in members(Probe))
    if metric.endswith(_AVERAGED) or is_of_probe:
        return config
    return replace(config, probes=(), averaging=None, eval_every=config.epochs)


def _lacks_predictions(config: TrainConfig, metric: str) -> str | None:
    if not config.data.test:
        return "the run has no test images; set data.test: true"
    is_fitted = "scaled_" in metric or metric.endswith("/temperature")
    if is_fitted and not config.data.holds_out:
        return "the run has no validation images to fit a temperature on; set data.val_size"
    return None


def _lacks_images(config: TrainConfig, name: str) -> str | None:
    split, data = name.partition("/")[0], config.data
    corruption = split.removeprefix("test_")
    if split.startswith("test") and not data.test:
        return "the run has no test images; set data.test: true"
    if split == "val" and not data.holds_out:
        return "the run has no validation images; set data.val_size"
    if corruption not in {split, "corrupted", *data.corruptions}:
        return f"the run has no {corruption} images; add {corruption} to data.corruptions"
    if corruption == "corrupted" and not data.corruptions:
        return "the run has no corrupted test images; set data.corruptions"
    return None


def _lacks_part(config: TrainConfig, metric: str, records: int) -> str | None:
    """Return a message if a probe or objective is missing, or a metric is recorded too rarely."""
    probes = [kind for kind in members(Probe) if metric in kind.metrics]
    objectives = [kind for kind in members(Objective) if metric in kind.metrics]
    every = 1 if metric.startswith("train/") else config.eval_every
    if probes:
        own = [probe for probe in config.probes if type(probe) in probes]
        if not own:
            return f"add the probe {' or '.join(kind.tag for kind in probes)} to probes"
        if all(probe.lacks(config, metric) for probe in own):
            return own[0].lacks(config, metric)
        every = min(probe.every or config.eval_every for probe in own)
    elif objectives and not isinstance(config.objective, tuple(objectives)):
        return f"set objective to {' or '.join(kind.tag for kind in objectives)}"
    number = config.epochs // every
    if number >= records:
        return None
    return f"{records} records of the metric are needed, but the run makes {number}"
