"""Metrics of image training: declarations, headings, and completeness."""

from dataclasses import dataclass
from typing import Any, ClassVar

import pytest

from mixup_core.config.parts import members
from mixup_core.images.metrics import METRICS
from mixup_core.images.objectives.objective import Objective
from mixup_core.images.probes.probe import Probe
from mixup_core.images.problem import IMAGES
from mixup_core.problem import Metric

DECLARING = [*members(Objective), *members(Probe)]


@pytest.mark.parametrize("kind", DECLARING)
def test_metrics_declared_by_objectives_and_probes_are_registered(kind: Any) -> None:
    assert METRICS.items() >= kind.metrics.items()


def test_declared_metrics_are_distinct_and_leave_the_training_loss_unchanged() -> None:
    declared = [name for kind in DECLARING for name in kind.metrics]
    assert len(set(declared)) == len(declared)
    assert list(METRICS)[-len(declared) :] == declared, "the order of columns"
    assert "train/loss" not in declared


@pytest.mark.parametrize(
    ("name", "heading"),
    [
        ("test/error", "test error, %"),
        ("val/nll_averaged", "validation NLL, averaged weights, nats"),
        ("test_corrupted/calibration_error", "corrupted test calibration error, %"),
        ("test_gaussian_noise/error", "test under gaussian noise error, %"),
        ("train/excess_loss", "excess training loss, nats"),
    ],
)
def test_the_heading_of_a_metric_has_its_split_and_unit(name: str, heading: str) -> None:
    assert METRICS[name].heading == heading


def test_metric_headings_are_distinct() -> None:
    headings = [metric.heading for metric in METRICS.values()]
    assert len(set(headings)) == len(headings)


@dataclass(frozen=True, kw_only=True, slots=True)
class Brightness(Probe):
    tag: ClassVar = "brightness"
    metrics: ClassVar = {"train/brightness": Metric(label="mean pixel")}

    def measure(self, subject: Any) -> dict[str, float]:
        return {"train/brightness": float(subject.images.pixels.mean())}


def test_adding_a_probe_adds_its_metrics() -> None:
    before = list(METRICS)
    Probe.catalogue.add(Brightness)
    try:
        assert list(METRICS) == [*before, "train/brightness"]
        assert IMAGES.metric("train/brightness").label == "mean pixel"
    finally:
        Probe.catalogue.remove("brightness")
    assert list(METRICS) == before
