"""Checking: `mixsweep check` accepts correct plugins and names each contract that one breaks."""

import pytest

from mixup_core.plugins.checking import check_plugin
from mixup_core.plugins.loading import use
from tests.plugin_files import DOTS, HALVING, LATE, MARGIN, TINY, Write

FORGETFUL = """
@value
class Doubled(Objective):
    tag = "doubled"
    times: Count = 2
    def in_epoch(self, law, epoch, epochs):
        return law, Doubled()
    def on(self, batch, student, loss, teacher):
        return Minimised(loss=self.times * batch.losses(student(batch.mixed), loss).mean())
"""
HALF = """
@value
class Half(Operation):
    tag = "half"
    def mix(self, own, beside, lam, drawn):
        return {images}, lam * 0 + {weight}
"""
TRIANGULAR = """
@value
class Triangular(Law):
    tag = "triangular"
    peak: Count = 1
    def quantiles(self, levels):
        low, high = np.sqrt(levels / 2), 1 - np.sqrt((1 - levels) / 2)
        return np.where(levels < 0.5, low, high) ** self.peak
"""
DRAWN = """
    def draw(self, shape, rng):
        return {drawn}
"""
DECLARED = """
    {name} = property(lambda self: {value})
"""
ENTROPY = """
    def label_entropy(self, digamma=None):
        return 1.0
"""
LAYERED = """
@value
class Layered(Operation):
    tag = "layered"
    deepest_layer = 1
    def layer(self, drawn):
        return 2
    def mix(self, own, beside, lam, drawn):
        return own, lam
"""
NOISY = """
from mixsweep.plugins import Augmentation
@value
class Noisy(Augmentation):
    tag = "noisy"
    def draw(self, shape, size, rng):
        return rng.random((*shape, *size)).astype("float32")
    def on_images(self, images, drawn):
        return images + drawn.view({shape})
"""
OF_EVALUATION = """
@value
class Largest(Probe):
    tag = "largest"
    is_of_evaluation = True
    metrics = {"test/largest": Metric(label="largest logit", is_lower_better=False)}
    def measure(self, subject):
        logits = {split: found for (split, _), found in subject.evaluated.items()}
        if "test" not in logits:
            return {}
        return {"test/largest": float(logits["test"].amax(1).mean())}
"""
FAULTY = """
@value
class Sharp(Probe):
    tag = "sharp"
    metrics = {"train/sharp": Metric(label="sharpness", unit="%")}
    def measure(self, subject):
        import random, torch
        logits, labels = subject.outputs()
        value = 0.5
        FAULT
        return {"train/sharp": value}
"""


NEVER_LEGAL = """
    seed: Seed = 0
    def __post_init__(self):
        from mixup_core.rules import RuleError
        raise RuleError("never", {})
"""


def _broken(file: object) -> dict[str, str]:
    return {found.contract: found.broken for found in check_plugin(use(str(file))) if found.broken}


def test_a_plugin_that_meets_all_contracts_passes(plugin: Write) -> None:
    half = HALF.format(images="(own + beside) / 2", weight="0.5")
    file = plugin(TINY, MARGIN, DOTS, half, LATE, TRIANGULAR, HALVING)
    found = list(check_plugin(use(file)))
    assert not [each for each in found if each.broken]
    assert {each.entry for each in found} == {
        "model tiny", "probe margin", "dataset dots", "operation half", "objective late",
        "law triangular", "problem halving", "tiny.py",
    }  # fmt: skip


HEAD_OF_LIMITS = """
from typing import Annotated
from mixsweep.plugins import NonNegative, Range, Share
"""
SCALED = f"""
{HEAD_OF_LIMITS}
@value
class Scaled(Operation):
    tag = "scaled"
    scale: {{}}
    def mix(self, own, beside, lam, drawn):
        return own, {{}}
"""
ENDS = "it works at the ends of the ranges"
AT_LAW = SCALED.replace("Operation", "Law").replace(
    "mix(self, own, beside, lam, drawn)", "quantiles(self, levels)"
).replace("own, {}", "0.5 + {} * (levels - 0.5)")  # fmt: skip


def faulty(fault: str) -> str:
    return FAULTY.replace("FAULT", fault)


@pytest.mark.parametrize(
    ("code", "contract", "message"),
    [
        (
            HALF.format(images="own", weight="np.random.rand()"),
            "numbers do not depend", "of numpy.random: draw",
        ),
        (
            HALF.format(images="own", weight="np.random.default_rng().random()"),
            "numbers do not depend", "two runs with the same seed give different results",
        ),
        (
            HALF.format(images="own", weight="exit(3)"),
            "label weights", "plugin tiny.py: fails in line 14 (mix): SystemExit: 3",
        ),
        (
            "import time\nAT = time.perf_counter()\n" + HALF.format(images="own", weight="AT % 1"),
            "loading the plugin again", "the file reads something when it is imported",
        ),
        (FORGETFUL, "changing a field", "the same last stage key"),
        (HALF.format(images="own.mul_(0.5)", weight="0.5"), "label weights", "`mix` modifies"),
        (HALF.format(images="own", weight="1.5"), "label weights", "1.5"),
        (
            HALF.format(images="own", weight="0.5") + "    is_linear = True\n",
            "label weights", "`is_linear` is True, so training mixes linearly",
        ),
        (TRIANGULAR.replace("** self.peak", "+ self.peak"), "it can be", "it is 1.08839 at"),
        (TRIANGULAR.replace("return np", "return 1 - np"), "it can be", "at level 0 and 0.91"),
        (TRIANGULAR + DRAWN.replace("draw(", "drew("), "its methods", "`draw`"),
        (TRIANGULAR.replace("return np", "return 2; np"), "it can be", "one value per level"),
        (TRIANGULAR + DECLARED.format(name="mean", value=0.6), "quantiles", "`mean` is 0.6, but"),
        (TRIANGULAR + DECLARED.format(name="variance", value=1), "quantiles", "but 0.04"),
        (TRIANGULAR + ENTROPY, "quantiles", "`label_entropy` is 1.0, but 0.6"),
        (TRIANGULAR + DECLARED.format(name="constant", value=0.5), "quantiles", "`constant` is"),
        (
            TRIANGULAR + DECLARED.format(name="is_symmetric", value=True),
            ENDS, "with peak=64: `is_symmetric` is True",
        ),
        (NOISY.format(shape="images.shape"), "three channels", "(on_images): RuntimeError"),
        (NOISY.format(shape="1, *images.shape"), "three channels", "became (1, 1, 1, 16, 16)"),
        (LAYERED, "label weights", "`layer` is 2, `deepest_layer` only 1"),
        (
            TRIANGULAR + DRAWN.format(drawn="rng.random(shape)"),
            "quantiles increase", "different distributions",
        ),
        *(
            (TRIANGULAR + DRAWN.format(drawn=f"np.resize({drawn}, shape)"), "", f"such as {worst};")
            for drawn, worst in (("[-5e-6, 2]", 2), ("[-3, 1.5]", -3), ("[0.5, np.nan]", "nan"))
        ),
        (
            HALVING.replace('Metric(label="value")', 'Metric(label="value", most=-1.0)'),
            "within their bounds", "value must be in [-inf, -1], got ",
        ),
        (
            HALVING.replace("list(records)", "list(records); self.config = HalvingConfig(start=9)"),
            "a run resumed", "a run resumed after epoch 1 gives other results",
        ),
        (
            HALVING.replace('{"value": value}', '{"value": value, "other": 1.0}'),
            "it records the metrics", "records metrics that its `metrics` does not declare: o",
        ),
        (
            HALVING.replace('headline=("value",)', 'headline=("error",)'),
            "it records the metrics", "none of the headline metrics error is recorded",
        ),
        (
            HALVING.replace(
                'headline=("value",)',
                'headline=("value",), keying=Keying(by_epoch={"start": "It is not seen."})',
            ).replace("import EpochRecord", "import EpochRecord, Keying"),
            "changing a field", "changing `start` changes the results of epoch 3",
        ),
        (
            HALVING.replace("    seed: Seed = 0\n", NEVER_LEGAL),
            "it can be checked", "no configuration of HalvingConfig is valid",
        ),
        (TINY.replace("False", "True"), "the network returns logits", "has_batch_norm is True"),
        (TINY.replace("False", "False\n    depth = 1"), "the network returns", "`depth` is 1, but"),
        (
            HALVING.replace('"value": M', '"other": Metric(label="other"), "value": M'),
            "it records the metrics", "declared in `metrics`, but never recorded: other",
        ),
        (
            HALVING.replace(
                'headline=("value",)',
                'headline=("value",), keying=Keying(never={"start": "It is not seen."})',
            ).replace("import EpochRecord", "import EpochRecord, Keying"),
            "changing a field", "`Keying.never` must not list it",
        ),
        (TINY.replace("self.width, num_classes", "self.width, 3"), "the network returns", "(3, 3)"),
        (DOTS.replace("smallest_class=50", "smallest_class=9"), "its images agree", "has 50"),
        (
            DOTS.replace("read=read", "read=read, labels=lambda _, split: np.arange(len(split))"),
            "its images agree", "`labels` returns other train labels than `read`",
        ),
        (DOTS.replace("num_train=200", "num_train=100"), "its images agree", "must be uint8"),
        (
            DOTS.replace('default_rng(0 if split == "train" else 1)', "default_rng()"),
            "reading it again", "different train images",
        ),
        (SCALED.format("float = 1.0", "lam * self.scale"), "every field", "scale of Scaled"),
        (SCALED.format("tuple[float, ...] = ()", "lam"), "every field", "scale of Scaled"),
        (
            SCALED.format("Annotated[float, Range(-1, 1, '()')] = 0.5", "lam * self.scale"),
            ENDS, "with scale=-0.99: `mix` returned the label weight -",
        ),
        (
            SCALED.format("tuple[Annotated[float, Range(0, 2)], ...] = ()", "lam+sum(self.scale)"),
            ENDS, "with scale=[2.0]: `mix` returned the label weight",
        ),
        (
            SCALED.format("Count = 1", "lam / (64 - self.scale)"),
            ENDS, "with scale=64: `mix` returned the label weight inf",
        ),
        (
            SCALED.format("Share = 1.0", "lam + 0.5 * (len(own) > 40)"),
            "label weights", "label weight 1.",
        ),
        (
            AT_LAW.format("Annotated[float, Range(0, 1.4)] = 1.0", "self.scale"),
            ENDS, "must be in [0, 1], got (scale=1.4); it is -0.2 at level 0",
        ),
        (
            TINY.replace("return nn.Seq", """class Cut(nn.Module):
            def forward(self, logits):
                return logits if self.training else logits[:, :3]
        return nn.Seq""").replace("self.width, num_classes),", "self.width, num_classes), Cut(),"),
            "the network returns", "of shape (3, 3) in evaluation mode",
        ),
        (
            TINY.replace("width: Count = 8", "width: Annotated[int, Range(0, 9)] = 8").replace(
                "self.width", "8 if self.width else None"
            ).replace("@value", f"{HEAD_OF_LIMITS}@value"),
            ENDS, "fails in line",
        ),
        (faulty("value = logits[:, 0]"), "its values are finite", "as Tensor of shape (64"),
        (faulty("value = True"), "its values are finite", "got train/sharp as bool"),
        (faulty("return [0.5]"), "its values are finite", "must return a dict of numbers, got"),
        (
            faulty("return {'train/other': 2.0}"),
            "its values are finite", "returns train/other, which its `metrics` do not declare",
        ),
        (
            faulty("return {}"),
            "it records the metrics", "declared in `metrics`, but never recorded: train/sharp",
        ),
        (
            OF_EVALUATION.replace('if "test" not in logits', "if False"),
            "it trains without test images", "KeyError: 'test'",
        ),
        (
            OF_EVALUATION.replace("    is_of_evaluation = True\n", ""),
            "it records the metrics", "only in epochs in which held-out images are evaluated",
        ),
        (faulty("value = float('nan')"), "its values are finite", "'train/sharp': nan"),
        (faulty("value = 1.01"), "within their bounds", "must be in [0, 1], got 1.01 after"),
        (faulty("torch.manual_seed(0)"), "numbers do not depend", "generator of torch: draw"),
        (
            faulty("subject.images.pixels.values[-1:].zero_()"),
            "does not change the run", "other weights or another optimizer state after epoch 1",
        ),
        (
            faulty("'test' in subject.held_out and subject.held_out['test'].labels.zero_()"),
            "its values are finite", "changed the test labels",
        ),
        (
            faulty("subject.evaluated.clear()"),
            "its values are finite", "changed the test logits",
        ),
    ],
)  # fmt: skip
def test_a_broken_contract_is_reported(
    plugin: Write, code: str, contract: str, message: str
) -> None:
    found = _broken(plugin(code))
    assert any(message in broken for name, broken in found.items() if contract in name), found


INNER = """
from typing import Literal
from mixsweep.plugins import Share, Whole
@value
class First:
    tag = "first"
    x: Share = 1.0
@value
class Second:
    tag = "second"
    x: Share = 0.5
@value
class Deep:
    first: First | None = None
    many: tuple[First, ...] = ()
@value
class Half(Operation):
    tag = "half"
    f: {field}
    def mix(self, own, beside, lam, drawn):
        return own, lam * 0 + ({weight})
"""


@pytest.mark.parametrize(
    ("field", "weight"),
    [
        ("Share | Literal['auto'] = 1.0", "0.1 if self.f == 'auto' else self.f"),
        ("tuple[First | Second, ...] = ()", "min(1, sum(part.x for part in self.f))"),
        ("Deep | None = None", "0.2 if self.f is None or self.f.first is None else self.f.first.x"),
        ("Law | None = None", "0.2 if self.f is None else self.f.quantiles(np.full(1, 0.5))[0]"),
        ("tuple[tuple[Whole, ...], ...] = ()", "1 / (1 + len(self.f))"),
    ],
)
def test_plugins_with_fields_of_every_kind_meet_the_contracts(
    plugin: Write, field: str, weight: str
) -> None:
    assert not _broken(plugin(INNER.format(field=field, weight=weight)))


@pytest.mark.parametrize(
    "code",
    [
        pytest.param(
            SCALED.format("Count = 1", "lam if self.scale < 64 else 1 / 0"),
            id="an error above every bound of a range",
        ),
        pytest.param(
            SCALED.format("Annotated[int, Range(1, 64)] = 1", "lam if self.scale < 9 else lam / 0")
            + "    def unfit(self, size):\n        return 'few' if self.scale > 9 else None\n",
            id="a value that does not fit the made-up images",
        ),
        pytest.param(OF_EVALUATION, id="a probe of evaluations"),
        pytest.param(
            NOISY.format(shape="len(images), 1, 16, 16"), id="one random value for all channels"
        ),
        pytest.param(
            faulty("value = np.float32(1) + np.spacing(1.0)"),
            id="a number of NumPy that exceeds its bound by rounding",
        ),
    ],
)
def test_a_plugin_with_an_unusual_but_correct_entry_is_not_reported(
    plugin: Write, code: str
) -> None:
    assert not _broken(plugin(code))


def test_a_failing_plugin_is_reported_once(plugin: Write) -> None:
    assert len(_broken(plugin(HALF.format(images="own", weight="1 / 0")))) == 1
