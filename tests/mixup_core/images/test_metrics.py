"""Metrics of image training: declarations, headings, and completeness."""

from mixup_core.config.parts import members
from mixup_core.images.metrics import METRICS
from mixup_core.images.objectives.objective import Objective
from mixup_core.images.probes.probe import Probe

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
