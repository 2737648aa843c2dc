"""Plugin files for tests, which are unregistered after each test."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

import pytest

from mixup_core.plugins import loading, stand_ins

HEAD = """
from dataclasses import dataclass
import numpy as np
from mixsweep.plugins import (
    Count, Dataset, DatasetInfo, Images, Law, Metric, Minimised, Model, Objective, Optimizer,
    Operation, Probe,
)
value = dataclass(frozen=True, kw_only=True, slots=True)
"""

TINY = """
@value
class Tiny(Model):
    \"\"\"One hidden layer behind a LayerNorm.\"\"\"
    name = "tiny"
    has_batch_norm = False
    width: Count = 8
    \"\"\"Hidden units.\"\"\"
    def network(self, in_channels, num_classes, image_size):
        from torch import nn
        size = in_channels * image_size**2
        return nn.Sequential(
            nn.Flatten(), nn.LayerNorm(size), nn.Linear(size, self.width), nn.GELU(),
            nn.Linear(self.width, num_classes),
        )
"""

MARGIN = """
@value
class Margin(Probe):
    tag = "margin"
    metrics = {"train/margin": Metric(label="mean margin", is_lower_better=False)}
    def measure(self, subject):
        top = subject.outputs()[0].topk(2).values
        return {"train/margin": float((top[:, 0] - top[:, 1]).mean())}
"""

LATE = """
@value
class Late(Objective):
    tag = "late"
    start: Count = 1
    def in_epoch(self, law, epoch, epochs):
        from mixup_core.images.objectives.objective import Plain
        return law, self if epoch >= self.start else Plain()
    def on(self, batch, student, loss, teacher):
        return Minimised(loss=2 * batch.losses(student(batch.mixed), loss).mean())
"""

DOTS = """
def read(root, split, size):
    rng = np.random.default_rng(0 if split == "train" else 1)
    labels = np.arange(200 if split == "train" else 100) % 4
    pixels = rng.integers(0, 128, (len(labels), 1, 8, 8), dtype=np.uint8)
    pixels[np.arange(len(labels)), 0, labels, labels] = 255
    return Images.of_arrays(pixels, labels)

DOTS = Dataset(name="dots", info=DatasetInfo(
    title="dots", num_train=200, num_test=100, num_classes=4, channels=1, image_size=8,
    mean=(.25,), std=(.2,), smallest_class=50,
), read=read)
"""

HALVING = """
from typing import ClassVar
from mixsweep.plugins import EpochRecord, Positive, Problem, Seed

@value
class HalvingConfig:
    problem: ClassVar = "halving"
    start: Positive = 1.0
    epochs: Count = 3
    seed: Seed = 0

class Halving:
    def __init__(self, config):
        self.config, self.records = config, []
    def __iter__(self):
        while len(self.records) < self.config.epochs:
            epoch = len(self.records)
            value = self.config.start / 2 ** (epoch + 1)
            self.records.append(EpochRecord(epoch=epoch, metrics={"value": value}))
            yield self.records[-1]
    def to_bytes(self):
        return b""
    def load_bytes(self, content, records):
        self.records = list(records)

def start(config, data_root, device):
    return Halving(config)

HALVING = Problem(
    name="halving", title="a number that is halved", config=HalvingConfig,
    process=f"{__name__}:start", metrics={"value": Metric(label="value")}, headline=("value",),
)
"""
STUDY = """
study: dots
base:
  data: {name: dots}
  model: {name: tiny, width: 4}
  probes: [margin]
  epochs: 2
  batch_size: 50
arms:
  erm: {mix.law: erm}
  uniform: {mix.law: {beta: 1.0}}
seeds: 2
"""

Write = Callable[..., Path]


@pytest.fixture
def plugin(tmp_path: Path) -> Write:
    """Write a plugin file from some parts."""

    def write(*parts: str, name: str = "tiny.py") -> Path:
        file = tmp_path / name
        file.write_text("".join((HEAD, *parts)))
        return file

    return write


def unload_plugins(kept: Mapping[str, loading.Plugin] = MappingProxyType({})) -> None:
    for place, plugin in list(loading._loaded.items()):
        if plugin is not kept.get(place):
            loading._take_out(plugin)
            del loading._loaded[place]


@pytest.fixture(autouse=True)
def unregistered() -> Iterator[None]:
    """Unregister after each test the plugins that it loaded."""
    before = dict(loading._loaded)
    yield
    unload_plugins(before)
    for noun, name in list(stand_ins._present):
        stand_ins.take_out(noun, name)
