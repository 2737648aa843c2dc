"""Metrics of image training: declarations, headings, and completeness."""

from mixup_core.config.building import with_values
from mixup_core.config.parts import members
from mixup_core.images.config import TrainConfig
from mixup_core.images.metrics import METRICS
from mixup_core.images.objectives.objective import Objective
from mixup_core.images.probes.probe import Probe
from mixup_core.images.problem import IMAGES

DECLARING = [*members(Objective), *members(Probe)]


def test_metrics_declared_by_objectives_and_probes_are_registered() -> None:
    for kind in DECLARING:
        assert METRICS.items() >= kind.metrics.items(), kind


def test_declared_metrics_are_distinct_and_leave_the_training_loss_unchanged() -> None:
    declared = [name for kind in DECLARING for name in kind.metrics]
    assert len(set(declared)) == len(declared)
    assert list(METRICS)[-len(declared) :] == declared, "the order of columns"
    assert "train/loss" not in declared


def test_metric_headings_are_distinct() -> None:
    headings = [metric.heading for metric in METRICS.values()]
    assert len(set(headings)) == len(headings)


def test_a_metric_with_too_few_records_is_reported_as_lacking(config: TrainConfig) -> None:
    own = with_values(config, {"eval_every": 2, "probes": [{"weight-norm": 4}, {"el2n": 1}]})
    assert IMAGES.measuring.lacks(own, "test/error", 2) is None
    seldom = "{} records of the metric are needed, but the run makes {}"
    assert IMAGES.measuring.lacks(own, "test/error", 3) == seldom.format(3, 2)
    assert IMAGES.measuring.lacks(own, "train/weight_norm", 2) == seldom.format(2, 1)
    assert IMAGES.measuring.lacks(own, "train/el2n", 4) is None
    assert IMAGES.measuring.lacks(own, "train/loss", 4) is None
