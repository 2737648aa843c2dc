"""A plugin run that fails, or draws from a global generator, fails with one message."""

import logging
from pathlib import Path
from typing import Any

import pytest

from mixup_core.config.building import built
from mixup_core.images.config import TrainConfig
from mixup_core.plugins.loading import use
from sweeps.running.assignment import Assignment
from sweeps.running.attempt import Driver, attempt
from tests.plugin_files import DOTS, TINY, Write

DRAW = TINY.replace("nn.GELU(),", "nn.GELU(), {},")
RAISES = TINY.replace("from torch import nn", "from torch import nn; raise ValueError('boom')")
DREW = "a run that uses this plugin drew from the global random generator of"


def _failure(plugin: Path, store: Path, **given: Any) -> dict[str, Any]:
    use(plugin)
    values = {"data.name": "dots", "model.name": "tiny", "epochs": 2, "batch_size": 50, **given}
    assignment = Assignment(
        config=built(TrainConfig, values), store=str(store), data_root=str(store)
    )
    last = attempt(assignment, Driver(lambda report: None), {"node": "", "gpus": ""})
    assert last["epochs"] == 0, "an epoch was reported"
    failure: dict[str, Any] = last["failure"]
    return failure


SCALED = """
@value
class Scaled(Operation):
    tag = "scaled"
    scale: float = 1.0
    def mix(self, own, beside, lam, drawn):
        import torch
        weight = lam * self.scale
        return own + beside, weight
"""
WIDE = """
@value
class Wide(Law):
    tag = "wide"
    def quantiles(self, levels):
        return levels
    def draw(self, shape, rng):
        return {}
"""
SHIFT = """
from mixsweep.plugins import Augmentation
@value
class Shift(Augmentation):
    tag = "shift"
    def on_images(self, images, drawn):
        return {}
"""
EVALUATED = TINY.replace(
    "return nn.Sequential(",
    """class Cut(nn.Module):
            def forward(self, logits):
                return logits if self.training else logits[:, :3]
        return nn.Sequential(""",
).replace("(self.width, num_classes),", "(self.width, num_classes), Cut(),")
STEEP = """
@value
class Steep(Objective):
    tag = "steep"
    def on(self, batch, student, loss, teacher):
        return Minimised(loss=batch.losses(student(batch.mixed), loss).mean() / 0)
"""
UNMIXED = STEEP.replace("batch.losses(student(batch.mixed), loss)", "student(batch.mixed)")
WRITING = """
@value
class Writing(Probe):
    tag = "writing"
    metrics = {{"train/writing": Metric(label="writing")}}
    def measure(self, subject):
        {}
        return {{"train/writing": 1.0}}
"""
LABELS = DOTS.replace(
    "return Images.of_arrays(pixels, labels)", "return Images.of_arrays(pixels, labels + 1)"
)
MIXED = {"mix.law": {"beta": 1.0}, "mix.operation": "scaled"}


# Name of the case: code of the plugin, settings of the run, and the beginning of the message.
BROKEN: dict[str, tuple[str, dict[str, Any], str]] = {
    "error": (RAISES, {}, "fails in line 18 (network): ValueError: boom; correct"),
    "draws from numpy": (
        TINY.replace("size =", "np.random.rand(); size ="), {},
        f"{DREW} numpy.random",
    ),
    "draws from torch": (DRAW.format("nn.Dropout(0.5)"), {}, f"{DREW} torch, so that"),
    "draws to read": (
        DOTS.replace("default_rng(0 if", "default_rng(np.random.randint(99) if"), {},
        "reading the dataset dots draws from the global generator",
    ),
    "weight": (
        SCALED, MIXED | {"mix.operation": {"scaled": 3.0}},
        "the operation scaled (scale=3.0) returned the label weight ",
    ),
    "weight of the second operation": (
        SCALED, {"mix.law": {"beta": 1.0}, "mix.second": {"scaled": 3.0}},
        "the operation scaled (scale=3.0) returned the label weight ",
    ),
    "weight that is not a number": (
        SCALED.replace("lam * self.scale", "lam * float('nan')"), MIXED,
        "the operation scaled (scale=1.0) returned the label weight nan",
    ),
    "not finite": (
        SCALED.replace("own + beside", "(own / (lam[0] * 0))"), MIXED,
        "the operation scaled (scale=1.0) returned images that are not finite,",
    ),
    "not finite, with a finite loss": (
        TINY.replace("nn.Flatten(),", "nn.Flatten(), nn.Hardtanh(),")
        + SCALED.replace("own + beside", "own + float('inf')"), MIXED,
        "the operation scaled (scale=1.0) returned images that are not finite,",
    ),
    "shape of images": (
        SCALED.replace("own + beside", "own[:, :, :4]"), MIXED,
        "the operation scaled (scale=1.0) returned images of shape (50, 1, 4, ",
    ),
    "number of weights": (
        SCALED.replace("weight = lam", "weight = lam[:7]"), MIXED,
        "the operation scaled (scale=1.0) returned label weights of shape (7,)",
    ),
    "hidden layer": (
        UNMIXED, {
            "model.name": "mlp", "mix.law": "midpoint",
            "mix.operation": {"manifold": {"layers": [1]}}, "objective": "steep",
        },
        "the objective steep mixes no hidden layer; call",
    ),
    "law": (
        WIDE.format("rng.random(shape) * 3 - 1"), {"mix.law": "wide"},
        "the law wide returned weights outside [0, 1] from `draw`, such as ",
    ),
    "augmentation": (
        SHIFT.format("images[:, :, :1]"), {"data.augment": "shift"},
        "the augmentation shift returned images of shape (50, 1, 1, 8), expect",
    ),
    "logits": (
        EVALUATED, {},
        "the model tiny (width=8) returned logits of shape (100, 3) in evaluat",
    ),
    "probe of weights": (
        WRITING.format("next(subject.network.parameters()).data.mul_(0.5)"),
        {"probes": ["writing"]}, "the probe writing (every=None) changed the network (1.weight)",
    ),
    "probe of labels": (
        WRITING.format("subject.images.labels.zero_()"),
        {"probes": ["writing"]}, "the probe writing (every=None) changed the training labels",
    ),
    "labels": (LABELS, {}, "DataError: dots train: labels must be in 0..3, got 4 at index 3"),
}  # fmt: skip


@pytest.mark.parametrize("case", BROKEN)
def test_a_plugin_that_fails_or_breaks_its_contract_ends_the_run_with_one_message(
    plugin: Write, tmp_path: Path, caplog: pytest.LogCaptureFixture, case: str
) -> None:
    code, given, message = BROKEN[case]
    parts = [code if name in code else usual for name, usual in (("Tiny(", TINY), ("DOTS =", DOTS))]
    parts += [] if code in parts else [code]
    with caplog.at_level(logging.WARNING):
        failure = _failure(plugin(*parts), tmp_path / "store", **given)
    said = failure["message"].removeprefix("DataError: plugin tiny.py: ")
    assert said.removeprefix("plugin tiny.py: ").startswith(message)
    assert failure["kind"] == "failed", "a run that diverged is not tried again"
    assert not caplog.records, "no traceback"
    assert not list((tmp_path / "store").rglob("*.json"))


def test_a_run_that_diverges_under_an_operation_of_a_plugin_has_diverged(
    plugin: Write, tmp_path: Path
) -> None:
    file = plugin(TINY, DOTS, SCALED, STEEP)
    failure = _failure(file, tmp_path / "store", **MIXED, objective="steep")
    assert failure["kind"] == "diverged"
    assert failure["message"].startswith("training loss must be finite")
