"""Stand-ins: a study is read without its plugins, from facts that its launch has stored."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from mixup_core.keys import stage_keys
from mixup_core.plugins import loading
from mixup_core.plugins.source import PluginError
from mixup_core.plugins.stand_ins import REGISTERS, stand_ins_of
from mixup_core.problem import KnownData
from mixup_core.store.json_records import record_of
from sweeps.reading.study_file import StudyError, load_study, study_of_launch
from sweeps.state.ledger import Launch
from tests.plugin_files import DOTS, HALVING, LATE, MARGIN, TINY, Write, unload_plugins

MIXING = """
from mixsweep.plugins import Augmentation, Guided, Positive, Range, Share
from typing import Annotated, Literal
@value
class Wide(Law):
    tag = "wide"
    width: Share = 0.2
    @property
    def caption(self):
        return f"U(width {self.width})"
    def quantiles(self, levels):
        return 0.5 + self.width * (levels - 0.5)
@value
class Rows(Operation):
    tag = "rows"
    least: Count = 1
    sides: tuple[Annotated[int, Range(1, 9)], ...] = (1, 2)
    kind: Literal["low", "high"] = "low"
    most: Annotated[int, Range(1, 99)] | None = None
    def mix(self, own, beside, lam, drawn):
        return own, lam
@value
class Slow(Optimizer):
    name = "slow"
    decay: Positive = 0.5
    def over(self, parameters):
        raise NotImplementedError
@value
class Dim(Augmentation):
    tag = "dim"
    by: Share = 0.5
    def on_images(self, images, drawn):
        return images
@value
class Deep(Model):
    name = "deep"
    has_batch_norm = False
    packages = ("numpy",)
    depth = 2
    def network(self, in_channels, num_classes, image_size):
        raise NotImplementedError
@value
class Copied(Guided):
    tag = "copied"
    metrics = {"train/gap": Metric(label="gap to the teacher", least=0.0)}
    must_not_mix = True
    def on(self, batch, student, loss, teacher):
        raise NotImplementedError
"""
PARTS = (TINY, MARGIN, DOTS, LATE, MIXING, HALVING)
LAUNCHED = r"was launched with --plugin tiny\.py; add this option"
IMAGES = {"data": {"name": "digits"}, "model": {"name": "mlp"}, "epochs": 2, "batch_size": 50}
CASES: dict[str, Any] = {
    "law": {"base": IMAGES | {"mix": {"law": {"wide": 0.4}}}, "seeds": 2},
    "operation": {
        "base": IMAGES | {"mix": {"law": {"beta": 1.0}}},
        "grid": {"mix.operation": [{"rows": {"sides": [3]}}, {"rows": {"most": 4}}, "rows"]},
        "seeds": 1,
    },
    "optimizer": {
        "base": IMAGES | {"optimizer": {"name": "slow", "lr": 1, "decay": 2}},
        "seeds": 1,
    },
    "augmentation": {"base": IMAGES | {"data": {"name": "digits", "augment": "dim"}}, "seeds": 1},
    "objective": {
        "base": IMAGES,
        "arms": {"erm": {}, "copied": {"objective": {"copied": {"teacher": "erm"}}}},
        "headline": "test/error",
        "seeds": 1,
    },
    "probe": {"base": IMAGES | {"probes": ["margin"]}, "headline": "train/margin", "seeds": 1},
    "model": {
        "base": IMAGES | {"mix": {"law": {"beta": 1.0}}},
        "arms": {
            "tiny": {"model": {"name": "tiny", "width": 4}},
            "deep": {"model": {"name": "deep"}, "mix": {"operation": "manifold"}},
        },
        "headline": "test/error",
        "seeds": 1,
    },
    "dataset": {"base": IMAGES | {"data": {"name": "dots"}}, "seeds": 1},
    "problem": {"problem": "halving", "base": {"start": 2, "epochs": 4}, "seeds": 2},
}


def _known(study: str) -> KnownData:
    del study
    return KnownData(configs=[], facts={})


def _launched(plugin: Write, folder: Path, document: Any) -> tuple[Any, Launch]:
    """Read a study with its plugin, then unload it; return the study and its record as stored."""
    loading.use(plugin(*PARTS))
    file = folder / "study.yaml"
    file.write_text(yaml.safe_dump({"study": "x", **document}))
    study = load_study(str(file))
    launch = Launch.of(study, "mixsweep run study.yaml --plugin tiny.py")
    unload_plugins()
    stored = json.loads(json.dumps({name: getattr(launch, name) for name in Launch.__slots__}))
    return study, record_of(Launch, stored)


def test_the_cases_cover_every_registry() -> None:
    assert CASES.keys() == REGISTERS.keys()


@pytest.mark.parametrize("noun", CASES)
def test_a_study_is_read_without_its_plugin_and_keeps_keys_and_metrics(
    plugin: Write, tmp_path: Path, noun: str
) -> None:
    study, launch = _launched(plugin, tmp_path, CASES[noun])
    with pytest.raises(StudyError, match=LAUNCHED):
        study_of_launch(launch, "x", _known)
    read = study_of_launch(launch, "x", _known, reads_only=True)
    assert stand_ins_of(read.source) == ("tiny.py",)
    assert [(run.arm, run.key) for run in read.runs()] == [(r.arm, r.key) for r in study.runs()]
    assert [stage_keys(r.config) for r in read.runs()] == [
        stage_keys(r.config) for r in study.runs()
    ]
    assert read.problem.metric(read.headline) == study.problem.metric(study.headline)
    assert Launch.of(read, launch.command).parts == launch.parts, "and can be stored again"
    with pytest.raises(StudyError, match=LAUNCHED):
        study_of_launch(launch, "x", _known)
    loading.use(plugin(*PARTS))
    assert study_of_launch(launch, "x", _known).settings == study.settings


def test_a_law_that_is_not_loaded_has_its_quantiles_and_caption(
    plugin: Write, tmp_path: Path
) -> None:
    def law() -> Any:
        (arm,) = study_of_launch(launch, "x", _known, reads_only=True).arms.values()
        return arm.mix.law  # type: ignore[attr-defined]

    _, launch = _launched(plugin, tmp_path, CASES["law"])
    assert law().caption == "U(width 0.4)"
    quantiles = [float(law().quantiles(level)) for level in (0.05, 0.5, 0.95)]
    assert quantiles == pytest.approx([0.32, 0.5, 0.68])
    with pytest.raises(PluginError, match="the code of the law wide is needed here; add --plugin"):
        type(law())(width=0.9).quantiles(0.5)
    for part in launch.parts:
        for stored in part["laws"]:
            stored["quantiles"] = stored["quantiles"][:2]
    with pytest.raises(PluginError, match="the code of the law wide is needed here"):
        law().quantiles(0.5)


@pytest.mark.parametrize(
    ("document", "edit", "fault"),
    [
        (CASES["model"], {"digest": "0" * 64}, "this study has other settings than its launch"),
        (
            {"base": IMAGES | {"objective": "late"}, "seeds": 1},
            {}, "its plugin decides the settings of single epochs",
        ),
    ],
)  # fmt: skip
def test_a_study_with_other_keys_than_its_launch_names_the_plugin(
    plugin: Write, tmp_path: Path, document: Any, edit: dict[str, str], fault: str
) -> None:
    _, launch = _launched(plugin, tmp_path, document)
    launch.parts[0].update(edit)
    with pytest.raises(StudyError) as caught:
        study_of_launch(launch, "x", _known, reads_only=True)
    first, second = caught.value.faults
    assert "was launched with --plugin tiny.py; add this option" in first
    assert second == f"x: {fault}"


@pytest.mark.parametrize(
    "damage",
    [{"noun": "x"}, {"noun": 3}, {"fields": [{"name": "a b", "kinds": ["int"]}]}, {"name": "mlp"}],
)
def test_damaged_facts_of_a_plugin_are_left_out(
    plugin: Write, tmp_path: Path, damage: dict[str, Any]
) -> None:
    _, launch = _launched(plugin, tmp_path, CASES["model"])
    launch.parts[0].update(damage)
    with pytest.raises(StudyError, match=LAUNCHED):
        study_of_launch(launch, "x", _known, reads_only=True)
