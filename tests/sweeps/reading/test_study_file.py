import dataclasses
import io
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from mixup_core.config.building import with_values
from mixup_core.images.choices.models import Mlp
from mixup_core.images.choices.optimizers import MAX_RATE, Adam, Sgd
from mixup_core.images.config import TrainConfig
from mixup_core.images.data.data_config import DataConfig
from mixup_core.images.mix_config import MixConfig
from mixup_core.keys import run_key
from mixup_core.laws import Beta, Erm, Law, Midpoint
from mixup_core.laws.beta import MAX_ALPHA, MIN_ALPHA
from mixup_core.mixing.partners import FromBatch, FromDataset
from mixup_core.problem import MAX_SEED
from sweeps.reading.study_file import StudyError, load_study
from sweeps.study.study import Study
from tests.sweeps.reading.study_files import ONE_FILE, SMALL, faults_of, parts, read, values

Load = Callable[..., Study]


@pytest.fixture
def load(tmp_path: Path) -> Load:
    return partial(read, tmp_path)


def refusals(load: Load, text: str | bytes, *overrides: str) -> list[str]:
    with pytest.raises(StudyError) as caught:
        load(text, *overrides)
    lines = str(caught.value).splitlines()
    assert lines == list(caught.value.faults)
    return [line.partition("s.yaml:")[2] or line for line in lines]


def base(inside: str) -> str:
    return (
        f"study: x\nbase: {{model: {{name: mlp}}, epochs: 4, batch_size: 8, {inside}}}\nseeds: 2\n"
    )


# Name of the case: the file, and the one line it must give ("*" for any text).
BAD: dict[str, tuple[str | bytes, str]] = {
    "empty file": ("", "1: file is empty"),
    "nothing in it": ("{}\n",
                      "1: missing key 'study'|1: missing key 'base'|1: missing key 'seeds'"),
    "top-level list": ("- 1\n", "1: expected a mapping, got [1]"),
    "duplicate inner key": (base("mix: {law: erm,\n law: erm}"),
                            "3: base.mix: key 'law' appears twice (lines 2 and 3)"),
    "surrogate": (SMALL + 'description: "\\ud800"\n', "4: not valid YAML: *invalid Unicode *"),
    "unknown section": (SMALL + "sedes: 3\n",
                        "4: sedes: unknown key 'sedes' (did you mean seeds?)"),
    "no base": ("study: x\nseeds: 1\n", "1: missing key 'base'"),
    "no epochs": ("study: x\nbase: {batch_size: 8}\nseeds: 1\n", "2: base: missing key 'epochs'"),
    "name is a number": (SMALL.replace("study: x", "study: 12"),
                         "1: study: expected text, got 12; quote it"),
    "name with capitals": (SMALL.replace("study: x", "study: Table1"),
                           "1: study: study must match *Table1*"),
    "unknown key": (base("\n  evaluate_every: 1"),
                    "3: base.evaluate_every: unknown key 'evaluate_every' (did you mean "
                    "eval_every?)"),
    "unknown inner key": (base("optimizer: {learning: 1}"),
                          "2: base.optimizer.learning: unknown key *"),
    "twice in base": (base("mix: {law: erm}, mix.law: midpoint"),
                      "2: base.mix.law: mix.law is given twice"),
    "seed in base": (base("seed: 1"),
                     "2: base.seed: 'seed' cannot be set in a study file; give `seeds`"),
    "digest in base": (base("data: {digest: a}"),
                       "2: base.data.digest: 'digest' cannot be set in a study *"),
    "boolean for integer": (base("eval_every: true"),
                            "2: base.eval_every: expected an integer, got the boolean true"),
    "huge integer": (base(f"optimizer: {{lr: {'9' * 5000}}}"),
                     "2: base.optimizer.lr: must be a finite number, got 999*"),
    "number for boolean": (base("data: {test: 1}"),
                           "2: base.data.test: expected true or false, got 1"),
    "unknown choice": (base("data: {views: concta}"),
                       "2: base.data.views: expected one of single, concat, *got text 'concta' "
                       "(did you mean concat?)"),
    "unknown data set": (base("data: {name: mnits}"),
                         "2: base.data.name: got text 'mnits' (did you mean mnist?); expected *"),
    "text for a group": (base("optimizer: adam"),
                         "2: base.optimizer: expected a mapping, got text 'adam'"),
    "boolean in a list": (base("data: {name: digits}, model: {hidden: [10, true]}")
                          .replace("model: {name: mlp}, ", ""),
                          "2: base.model.hidden[1]: expected an integer, got the boolean true"),
    "unknown law": (base("mix: {law: cutmix}"),
                    "2: base.mix.law: got text 'cutmix'; expected erm, midpoint, beta, *"),
    "alpha 0": (base("mix: {law: {beta: 0}}"),
                "2: base.mix.law: `1e-6 <= alpha <= 1e6` must hold, got (alpha=0.0); "
                "for lam = 1/2 write midpoint, for lam = 1 write erm."),
    "epochs 0": (SMALL.replace("epochs: 4", "epochs: 0"),
                 "2: base.epochs: `epochs >= 1` must hold, got (epochs=0)."),
    "switch after the end": (base("mix: {switch_epoch: 5}"),
                             "2: base.mix.switch_epoch: `mix.switch_epoch <= epochs` must hold, "
                             "got (mix.switch_epoch=5, epochs=4)."),
    "momentum of adam": (base("optimizer: {momentum: 0.9}"),
                         "2: base.optimizer.momentum: momentum needs optimizer.name to be sgd, *"),
    "evaluation out of step": (base("eval_every: 3"),
                               "2: base.eval_every: eval_every must divide epochs, *"),
    "seeds empty": (SMALL.replace("seeds: 2", "seeds: []"),
                    "3: seeds: items of seeds must be distinct, and there must be at least one, "
                    "*got (seeds=[])."),
    "seed twice": (SMALL.replace("seeds: 2", "seeds: [1, 1]"),
                   "3: seeds: items of seeds must be distinct, and there must be at least one, got "
                   "(seeds=[1])."),
    "range in a list": (SMALL.replace("seeds: 2", "seeds: [1, 3..5]"),
                        "3: seeds[1]: expected an integer, got text '3..5'; "
                        "write a range without brackets, seeds: 3..5"),
    "range with a hyphen in a list": (SMALL.replace("seeds: 2", "seeds: [3-5]"),
                                      "3: seeds[0]: *, seeds: 3..5"),
    "seeds by the billion": (SMALL.replace("seeds: 2", f"seeds: {2**64}"),
                             "3: seeds: the study has 18,446,744,073,709,551,616 runs in all; *"),
    "arms empty": (SMALL + "arms: {}\n", "4: arms: needs at least one arm"),
    "arms as a list": (SMALL + "arms: [a]\n", "4: arms: expected a mapping, got ['a']"),
    "arm of nothing": (SMALL + "arms:\n  a:\n", "5: arms.a: expected a mapping, got null"),
    "arm name with a slash": (SMALL + "arms: {../a: {}}\n", "4: arms.../a: must have only *"),
    "arm name out of ASCII": (SMALL + 'arms: {"\u00e9": {}}\n',
                              "4: arms.\u00e9: must have only *"),
    "arm with a group": (SMALL + "arms: {a: {mix: 3}}\n",
                         "4: arms.a.mix: mix is a group of values; write one of mix.law, *"),
    "arm with a wrong type": (SMALL + "arms:\n  a: {}\n  b:\n    epochs: 2.5\n",
                              "7: arms.b.epochs: expected an integer, got 2.5"),
    "arm that contradicts base": (SMALL + "arms:\n  a: {}\n  b: {mix.switch_epoch: 9}\n",
                                  "6: arms.b.mix.switch_epoch: `mix.switch_epoch <= epochs` *"),
    "alpha of no Beta": (SMALL + "arms: {a: {mix.law.alpha: 2}}\n",
                         "4: arms.a.mix.law.alpha: alpha needs mix.law to be beta or truncated"
                         ", got (mix.law='erm', mix.law.alpha=2.0); write mix.law: "
                         "{beta: ALPHA} or {truncated: {alpha: ALPHA, low: LOW, high: HIGH}}."),
    "second parameter of a Beta with one": (
        SMALL + "arms: {a: {mix.law: {beta: 1}, mix.law.a: 2}}\n",
        "4: arms.a.mix.law.a: a needs mix.law to be beta-ab, *; write mix.law: "
        "{beta: {a: A, b: B}}."),
    "the same arm twice": (SMALL + "arms: {a: {mix.law: {beta: 1}}, b: {mix.law: {beta: 1.0}}}\n",
                           "4: arms.b.mix.law: arms 'a' and 'b' are the same run"),
    "grid without values": (SMALL + "grid: {epochs: []}\n", "4: grid.epochs: expected a list of *"),
    "grid of a scalar": (SMALL + "grid: {epochs: 3}\n", "4: grid.epochs: expected a list of *"),
    "grid value of a wrong type": (SMALL + "grid:\n  epochs:\n  - 2\n  - x\n",
                                   "7: grid.epochs[1]: expected an integer, got text 'x'"),
    "grid value out of range": (SMALL + "grid: {mix.switch_epoch: [1, 9]}\n",
                                "4: grid.mix.switch_epoch[1]: `mix.switch_epoch <= epochs` *"),
    "grid value twice": (SMALL + "grid: {optimizer.lr: [1, 1.0]}\n",
                         "4: grid.optimizer.lr[1]: arms 'lr=1.0' and 'lr=1.0' are the same run"),
    "grid over an arm's path": (SMALL + "arms: {a: {epochs: 2}}\ngrid: {epochs: [1, 3]}\n",
                                "5: grid.epochs: arm 'a' sets this path too"),
    "validation takes all": (base("data: {name: digits, val_size: 1437}"),
                             "2: base.data.val_size: `val_size < training images` must hold, *"),
    "more images than there are": (base("data: {name: digits, val_size: 1, num_train: 1437}"),
                                   "2: base.data.num_train: num_train must be at most the *"),
    "batch larger than the data": (base("data: {num_train: 7}"),
                                   "2: base.batch_size: `batch_size <= training images` must *"),
    "last batch of 1": (base("data: {num_train: 129}").replace("mlp", "resnet18"),
                        "2: base.batch_size: BatchNorm needs two images or more in every *, "
                        "got (batch_size=8, training images=129)."),
    "batches of 1": (SMALL.replace("mlp", "resnet18").replace("batch_size: 8", "batch_size: 1"),
                     "2: base.batch_size: BatchNorm needs two images *(batch_size=1, *"),
    "pool that does not divide": (base("data: {pool: 3}"),
                                  "2: base.data.pool: pool must divide the image size, "
                                  "got (pool=3, image_size=28)."),
    "missing image folder": (base("data: {name: image-folder, folder: none, image_size: 8}"),
                             "2: base.data.folder: *none/train: not found; *"),
    "image folder with NUL": (base('data: {name: image-folder, folder: "a\\0b", image_size: 8}'),
                              "2: base.data.folder: *"),
    "folder of another data set": (base("data: {folder: a}"),
                                   "2: base.data.folder: folder needs `name: image-folder`, *"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_invalid_files_are_refused_with_line_path_rule_and_value(load: Load, case: str) -> None:
    text, expected = BAD[case]
    line = "|".join(refusals(load, text))
    assert line.isprintable()
    start, *parts = expected.split("*")
    assert line.startswith(start)
    if parts:
        assert all(part in line for part in parts)
    else:
        assert line == expected


def test_all_problems_of_a_file_are_listed_in_the_order_of_its_lines(load: Load) -> None:
    text = (
        "study: Bad Name\n"
        "base:\n"
        "  optimizer: {lr: 0, momentum: 0.9}\n"
        "  epochs: 0\n"
        "  eval_every: 3\n"
        "  batch_size: yes\n"
        "seeds: [1, -1]\n"
        "arms: {a: {mix.switch_epoch: -1}}\n"
        "grid: {}\n"
    )
    places = [line.split(": ")[:2] for line in refusals(load, text, "base.data.pool=0")]
    assert places == [
        ["1", "study"],
        ["3", "base.optimizer.momentum"],
        ["3", "base.optimizer.lr"],
        ["4", "base.epochs"],
        ["6", "base.batch_size"],
        ["7", "seeds"],
        ["8", "arms.a.mix.switch_epoch"],
        ["9", "grid"],
        ["--set base.data.pool=0", "base.data.pool"],
    ]


def test_a_fault_is_reported_at_the_arm_that_causes_the_fault(load: Load) -> None:
    text = base("data: {num_train: 129}") + "arms:\n  a: {}\n  b: {model.name: resnet18}\n"
    (line,) = refusals(load, text)
    assert line.startswith("6: arms.b.model.name: BatchNorm needs two images")


def test_class_pairing_with_an_odd_number_of_classes_is_refused(load: Load, tmp_path: Path) -> None:
    image_folder(tmp_path / "images", ("a", "b", "c"))
    data = "data: {name: image-folder, folder: images, image_size: 8, views: concat, test: false}"
    (line,) = refusals(load, base(data).replace("batch_size: 8", "batch_size: 1"))
    rule = "class pairing needs an even number of classes, got (classes=3)."
    assert line == f"2: base.data.views: {rule}"


def test_an_image_folder_is_found_next_to_the_study_file_and_hashed(
    load: Load, tmp_path: Path
) -> None:
    image_folder(tmp_path / "images", ("a", "b"))
    data = "data: {name: image-folder, folder: images, image_size: 8, test: false}"
    text = base(data).replace("batch_size: 8", "batch_size: 1")
    first = load(text).arms["base"].data
    assert first.folder == str(tmp_path / "images")
    (tmp_path / "images" / "train" / "a" / "0.png").write_bytes(tiny_png(9))
    second = load(text).arms["base"].data
    assert first.digest is not None
    assert second.digest is not None
    assert first.digest != second.digest


def image_folder(folder: Path, classes: tuple[str, ...]) -> None:
    for name in classes:
        (folder / "train" / name).mkdir(parents=True)
        (folder / "train" / name / "0.png").write_bytes(tiny_png(0))


def tiny_png(red: int) -> bytes:
    content = io.BytesIO()
    Image.new("RGB", (2, 2), (red, 0, 0)).save(content, "PNG")
    return content.getvalue()


def test_only_folders_with_transparent_images_need_and_hash_a_background(
    load: Load, tmp_path: Path
) -> None:
    image_folder(tmp_path / "images", ("a", "b"))
    data = "data: {name: image-folder, folder: images, image_size: 8, test: false%s}"
    plain = base(data).replace("batch_size: 8", "batch_size: 1")
    opaque = load(plain % "").arms["base"]
    assert run_key(load(plain % ", background: white").arms["base"]) == run_key(opaque)
    clear = Image.new("LA", (2, 2), (3, 77))
    clear.save(tmp_path / "images" / "train" / "b" / "0.png")
    (line,) = refusals(load, plain % "")
    assert "a folder with transparent images needs a background" in line
    assert "images=1, first='train/b/0.png'" in line
    keys = {
        run_key(load(plain % f", background: {name}").arms["base"]) for name in ("white", "black")
    }
    assert len(keys | {run_key(opaque)}) == 3


def test_the_format_is_read_as_documented(load: Load) -> None:
    study = load(
        "\ufeffstudy: my-study\n"
        "description: What is asked\n"
        "base:\n"
        "  data: {name: cifar10, views: concat, val_size: 5_000}\n".replace("5_000", "5000")
        + "  model: {name: mlp, hidden: [30, 10]}\n"
        "  optimizer: {name: sgd, lr: 1e-3, momentum: .9, weight_decay: 1}\n"
        "  mix: {law: {beta: 2}, switch_epoch: 3, lam_scope: sample}\n"
        "  epochs: 5\n"
        "  batch_size: 100\n"
        "arms:\n"
        "  plain: {mix.law: erm, mix.switch_epoch: null}\n"
        "  half: {mix.law: midpoint, optimizer.lr: 1E-2}\n"
        "  wide: {mix.law.alpha: 0.5}\n"
        "seeds: [7, 3]\n"
    )
    config = TrainConfig(
        data=DataConfig(name="cifar10", views="concat", val_size=5000),
        model=Mlp(hidden=(30, 10)),
        optimizer=Sgd(lr=0.001, momentum=0.9, weight_decay=1.0),
        mix=MixConfig(law=Beta(alpha=2.0), switch_epoch=3, lam_scope="sample"),
        epochs=5,
        batch_size=100,
    )
    assert study.name == "my-study"
    assert study.description == "What is asked"
    assert study.seeds == (7, 3)
    assert list(study.arms) == ["plain", "half", "wide"]
    assert study.arms["plain"] == with_values(config, {"mix.law": "erm", "mix.switch_epoch": None})
    assert study.arms["half"] == with_values(config, {"mix.law": "midpoint", "optimizer.lr": 0.01})
    assert study.arms["wide"] == with_values(config, {"mix.law": {"beta": 0.5}})


def test_arms_can_set_keys_that_are_missing_from_base(load: Load) -> None:
    text = "study: x\nbase: {batch_size: 8}\nseeds: 1\narms: {a: {epochs: 2}, b: {epochs: 3}}\n"
    assert [config.epochs for config in load(text.replace("8", "7")).arms.values()] == [2, 3]


def test_a_grid_is_crossed_with_every_arm_and_named_by_its_last_parts(load: Load) -> None:
    grid = "grid: {mix.switch_epoch: [1, null], optimizer.lr: [1e-3, 0.01]}\n"
    assert list(load(SMALL + grid).arms) == [
        "switch_epoch=1 lr=0.001",
        "switch_epoch=1 lr=0.01",
        "switch_epoch=null lr=0.001",
        "switch_epoch=null lr=0.01",
    ]
    arms = load(SMALL + "arms: {mixup: {}, half: {mix.law: midpoint}}\n" + grid).arms
    assert list(arms)[:2] == ["mixup switch_epoch=1 lr=0.001", "mixup switch_epoch=1 lr=0.01"]
    assert len(arms) == 8
    assert arms["half switch_epoch=1 lr=0.01"].mix == MixConfig(law=Midpoint(), switch_epoch=1)
    assert arms["half switch_epoch=1 lr=0.01"].optimizer.lr == 0.01


def test_the_source_reads_back_as_the_same_study(load: Load) -> None:
    text = SMALL + "# a comment\ndescription: '1e-3'\narms: {a: {mix.law: {beta: 1e-3}}}\n"
    study = load(text, "seeds=3")
    assert "seeds: 3" in study.source
    assert "comment" not in study.source
    assert load(study.source) == study


def test_an_unknown_study_is_refused_with_the_command_that_lists_studies() -> None:
    with pytest.raises(StudyError) as caught:
        load_study("quickstrat")
    assert str(caught.value).startswith(
        "quickstrat: no such file or bundled study (did you mean quickstart?); `mixsweep studies`"
    )


def test_paths_other_than_study_files_are_refused(tmp_path: Path) -> None:
    for reference, text in [
        (str(tmp_path), "is a folder; expected a study file"),
        ("/dev/null", "is no regular file; expected a study file"),
        (str(tmp_path / "x.yaml"), "no such file"),
        (str(tmp_path / ("y" * 300)), "name too long"),
        ("a\0b", "no such file"),
    ]:
        with pytest.raises(StudyError) as caught:
            load_study(reference)
        assert len(caught.value.faults) == 1
        assert text in str(caught.value)


def loaded(code: str) -> set[str]:
    """Return the packages that a piece of code imports in a fresh process."""
    packages = "print(*{name.partition('.')[0] for name in sys.modules})"
    result = subprocess.run(
        [sys.executable, "-c", f"import sys; {code}; {packages}"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return set(result.stdout.split())


def test_reading_a_study_imports_no_heavy_package() -> None:
    reading = "from sweeps.reading.study_file import load_study; load_study('search-alpha-switch')"
    heavy = {"torch", "ray", "mlflow", "optuna", "numpy", "scipy", "pandas", "PIL", "pydantic"}
    assert loaded(reading).isdisjoint(heavy)
    schema = "from sweeps.reading.schema import study_schema; study_schema()"
    assert loaded(schema).isdisjoint({"torch", "ray", "mlflow", "optuna", "pandas", "PIL"})


def test_the_schema_agrees_with_the_reader_on_names_types_and_choices(
    load: Load, schema_of_studies: jsonschema.Draft202012Validator
) -> None:
    validator = schema_of_studies
    good = [
        SMALL,
        SMALL + "arms: {a: {mix.law: midpoint}, b: {mix.law: {beta: 1}}}\ngrid: {epochs: [1, 2]}\n",
        SMALL + "arms: {a: {mix.law: {beta: 2}, mix.law.alpha: 3, model.hidden: [3]}}\n",
        SMALL.replace("seeds: 2", "seeds: [4]"),
    ]
    for text in good:
        load(text)
        validator.validate(yaml.safe_load(text))
    for case in (
        "name with capitals",
        "unknown section",
        "unknown inner key",
        "seed in base",
        "boolean for integer",
        "unknown choice",
        "unknown law",
        "alpha 0",
        "seeds empty",
        "seed twice",
        "arms empty",
        "arm name with a slash",
        "arm with a group",
        "arm with a wrong type",
        "grid of a scalar",
        "no base",
    ):
        assert not validator.is_valid(yaml.safe_load(BAD[case][0])), case


alphas = st.floats(min_value=MIN_ALPHA, max_value=MAX_ALPHA)
laws: st.SearchStrategy[Law] = st.one_of(
    st.just(Erm()), st.just(Midpoint()), st.builds(lambda alpha: Beta(alpha=alpha), alphas)
)


rates = st.floats(0, MAX_RATE, exclude_min=True)
decays = st.floats(0, 1e9)
optimizers = st.builds(Adam, lr=rates, weight_decay=decays) | st.builds(
    Sgd, lr=rates, weight_decay=decays, momentum=st.floats(0, 1, exclude_max=True)
)


@st.composite
def configs(draw: st.DrawFn) -> TrainConfig:
    epochs, switch = draw(st.integers(1, 100)), draw(st.none() | st.integers(0, 100))
    switch = None if switch is None else min(switch, epochs)
    sizes = st.lists(st.integers(1, 500), max_size=3).map(tuple)
    return TrainConfig(
        data=DataConfig(
            name=draw(st.sampled_from(["fashion-mnist", "cifar10", "cifar100"])),
            views=draw(st.sampled_from(["single", "concat"])),
            num_train=draw(st.none() | st.integers(600, 4000)),
            val_size=draw(st.integers(0, 4000)),
            test=draw(st.booleans()),
            pool=draw(st.sampled_from([1, 2, 4])),
        ),
        model=Mlp(hidden=draw(st.none() | sizes)),
        optimizer=draw(optimizers),
        mix=MixConfig(
            law=draw(laws),
            switch_epoch=switch,
            law_after=Erm() if switch is None else draw(laws),
            lam_scope=draw(st.sampled_from(["batch", "sample"])),
            partner=draw(st.sampled_from([FromDataset(), FromBatch()])),
        ),
        epochs=epochs,
        batch_size=draw(st.integers(1, 600)),
        precision=draw(st.sampled_from(["float32", "bfloat16"])),
    )


RESERVED = {"seed", "digest", "fold"}


def written(value: Any) -> Any:
    """Return a configuration as a study file would write it, independent of the reader."""
    if hasattr(value, "tag") and not dataclasses.fields(value):
        return value.tag
    if isinstance(value, Beta):
        return {"beta": value.alpha}
    if isinstance(value, tuple):
        return list(value)
    if not hasattr(value, "__dataclass_fields__"):
        return value
    names = [field.name for field in dataclasses.fields(value)]
    nested = {name: written(getattr(value, name)) for name in names if name not in RESERVED}
    if hasattr(value, "tag"):
        return {value.tag: nested}
    return {"name": value.name, **nested} if isinstance(value, Mlp | Adam | Sgd) else nested


@ONE_FILE
@given(config=configs(), seeds=st.sets(st.integers(0, MAX_SEED), min_size=1, max_size=5))
def test_any_valid_configuration_survives_a_round_trip_through_yaml(
    load: Load, config: TrainConfig, seeds: set[int]
) -> None:
    document = {"study": "x", "base": written(config), "seeds": list(seeds)}
    for flow in (False, True):
        study = load(yaml.safe_dump(document, default_flow_style=flow))
        assert study.arms == {"base": config}
        assert study.seeds == tuple(seeds)
        assert load(study.source) == study


WORDS = """study base arms grid seeds search mix mix.law mix.law.alpha beta erm midpoint data name x
    image-folder folder epochs batch_size optimizer lr 1 -1 0 1e-3 1e400 .nan 0777 no true null ~ <<
    2024-01-01 12:30:45 : : : - - , , { } { } [ ] [ ] & * ! !! ? | > ' \" # % @ ` \\ = --- ..."""
SPACES = (" ", "\n", "\n  ", "\n    ", "\t", "\r", "\0", "\ufeff", "\u2028", "\\ud800")
words = st.sampled_from((*WORDS.split(), *SPACES))
garbage = st.one_of(
    st.binary(max_size=60),
    st.lists(words, max_size=30).map(lambda parts: " ".join(parts).encode("utf-8", "replace")),
    st.lists(words, max_size=15).map(
        lambda parts: SMALL.encode() + " ".join(parts).encode("utf-8", "replace")
    ),
)
documents = st.fixed_dictionaries(
    {"study": st.just("x") | values, "base": st.dictionaries(parts, values), "seeds": values},
    optional={"arms": values, "grid": st.dictionaries(st.just("mix.law"), values)},
)


@ONE_FILE
@given(content=garbage | documents.map(lambda document: yaml.safe_dump(document).encode()))
def test_random_bytes_raise_only_study_errors(tmp_path: Path, content: bytes) -> None:
    for line in faults_of(tmp_path, content):
        assert "s.yaml:" in line
        assert line.isprintable()


def test_arms_with_one_teacher_differ_by_the_settings_of_their_objective(load: Load) -> None:
    pupil = "objective: {filter: {teacher: mixed, keep: %s}}"
    arms = f"arms: {{mixed: {{mix.law: midpoint}}, low: {{mix.law: midpoint, {pupil % 'low'}}}, "
    arms += f"high: {{mix.law: midpoint, {pupil % 'high'}}}}}\n"
    study = load(SMALL + arms)
    assert [run.teacher is None for run in study.runs()][:3] == [True, False, False]
    assert len({run.key for run in study.runs()}) == len(study.runs())
    with pytest.raises(StudyError, match="are the same run"):
        load(SMALL + arms.replace("keep: high", "keep: low"))


def test_exclude_accepts_lists_of_values(load: Load) -> None:
    text = (
        "study: s\nbase: {data: {name: digits}, model: {name: mlp}, epochs: 3, batch_size: 8}\n"
        "arms: {erm: {mix.law: erm}, uni: {mix.law: {beta: 1.0}}}\n"
        "grid: {mix.switch_epoch: [1, 2, 3]}\nseeds: 1\n"
        "exclude:\n  - {mix.law: erm, mix.switch_epoch: [2, 3]}\n"
    )
    assert [*load(text).arms] == [
        "erm", *(f"uni switch_epoch={epoch}" for epoch in (1, 2, 3)),
    ]  # fmt: skip
    listed = text.replace("mix.switch_epoch: [1, 2, 3]", "model.hidden: [[4], [8]]")
    listed = listed.replace("mix.switch_epoch: [2, 3]", "model.hidden: [8]")
    assert [*load(listed).arms] == ["erm", "uni hidden=4", "uni hidden=8"]
