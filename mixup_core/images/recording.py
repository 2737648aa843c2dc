"""Recording: the reasons why a run does not record a metric that a claim needs."""

from dataclasses import replace

from mixup_core.images.config import TrainConfig
from mixup_core.images.metrics import METRICS, PREDICTED
from mixup_core.images.objectives.objective import Objective
from mixup_core.images.probes.probe import Probe
from mixup_core.tree.parts import members

_AVERAGED = "_averaged"


def lacks(config: TrainConfig, metric: str, records: int) -> str | None:
    """Return why a run would not end with this many records of a metric; None if it would.

    The text says what to set.
    """
    if metric in PREDICTED:
        return _lacks_predictions(config, metric)
    if metric not in METRICS:
        return "no run records it"
    name = metric.removesuffix(_AVERAGED)
    if name != metric and config.averaging is None:
        return "it averages no weights; set averaging"
    return _lacks_images(config, name) or _lacks_part(config, metric, records)


def observed(config: TrainConfig, metric: str) -> TrainConfig:
    """Return a configuration without probes, averages and early evaluations, if a metric allows it.

    A metric of averaged weights or of a probe needs the configuration as it is.
    """
    is_of_probe = any(metric in kind.metrics for kind in members(Probe))
    if metric.endswith(_AVERAGED) or is_of_probe:
        return config
    return replace(config, probes=(), averaging=None, eval_every=config.epochs)


def _lacks_predictions(config: TrainConfig, metric: str) -> str | None:
    if not config.data.test:
        return "it has no test images; set data.test"
    is_fitted = "scaled_" in metric or metric.endswith("/temperature")
    if is_fitted and not config.data.holds_out:
        return "a temperature is fitted on validation images, and it has none; set data.val_size"
    return None


def _lacks_images(config: TrainConfig, name: str) -> str | None:
    split, data = name.partition("/")[0], config.data
    corruption = split.removeprefix("test_")
    if split.startswith("test") and not data.test:
        return "it has no test images; set data.test"
    if split == "val" and not data.holds_out:
        return "it has no validation images; set data.val_size"
    if corruption not in {split, "corrupted", *data.corruptions}:
        return f"it has no such images; add {corruption} to data.corruptions"
    return "set data.corruptions" if corruption == "corrupted" and not data.corruptions else None


def _lacks_part(config: TrainConfig, metric: str, records: int) -> str | None:
    """Return which probe or objective to set, or that a metric is measured too rarely, or None."""
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
    return None if number >= records else f"{records} records are needed, and it has {number}"
