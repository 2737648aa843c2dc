import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from mixup_core.config.building import with_values
from mixup_core.images.choices.models import Mlp
from mixup_core.images.choices.optimizers import Sgd
from mixup_core.images.config import MixConfig, TrainConfig
from mixup_core.images.data.data_config import DataConfig
from mixup_core.laws import Beta
from sweeps.reading.strict_yaml import Document, Place, read_yaml
from sweeps.reading.study_file import StudyError, load_study, override, study_of
from tests.mixup_core.small_files import fill
from tests.sweeps.reading.study_files import (
    ONE_FILE,
    SMALL,
    faults_of,
    parts,
    read,
    refusals,
    values,
)


def base(inside: str) -> str:
    return (
        f"study: x\nbase: {{model: {{name: mlp}}, epochs: 4, batch_size: 8, {inside}}}\nseeds: 2\n"
    )


# Name of the case: the file, and the one line it must give ("*" for any text).
BAD: dict[str, tuple[str | bytes, str]] = {
    "empty file": ("", "1: file is empty"),
    "unknown section": (SMALL + "sedes: 3\n",
                        "4: sedes: unknown key 'sedes' (did you mean seeds?)"),
    "no base": ("study: x\nseeds: 1\n", "1: missing key 'base'"),
    "name is a number": (SMALL.replace("study: x", "study: 12"),
                         "1: study: expected text, got 12; quote it"),
    "name is a path": (SMALL.replace("study: x", "study: ../x"), "1: study: study must match *"),
    "description turns the text": (SMALL + 'description: "\\u202e"\n',
                                   "4: description: description must not contain control or "
                                   "text-direction characters, *"),
    "description decomposed": (SMALL + 'description: "e\\u0301"\n',
                               "4: description: description must be in Unicode normal form C, *"),
    "seeds 0": (SMALL.replace("seeds: 2", "seeds: 0"),
                "3: seeds: `seeds >= 1` must hold, got (seeds=0)."),
    "seed in base": (base("seed: 1"),
                     "2: base.seed: 'seed' cannot be set in a study file; give `seeds`"),
    "unknown data set": (base("data: {name: mnits}"),
                         "2: base.data.name: got text 'mnits' (did you mean mnist?); expected *"),
    "range in a list": (SMALL.replace("seeds: 2", "seeds: [1, 3..5]"),
                        "3: seeds[1]: expected an integer, got text '3..5'; "
                        "write a range without brackets, seeds: 3..5"),
    "seeds by the billion": (SMALL.replace("seeds: 2", f"seeds: {2**64}"),
                             "3: seeds: the study has 18,446,744,073,709,551,616 runs in all; *"),
    "arms empty": (SMALL + "arms: {}\n", "4: arms: needs at least one arm"),
    "arm name with a slash": (SMALL + "arms: {../a: {}}\n", "4: arms.../a: must have only *"),
    "arm with a group": (SMALL + "arms: {a: {mix: 3}}\n",
                         "4: arms.a.mix: mix is a group of values; write one of mix.law, *"),
    "alpha of no Beta": (SMALL + "arms: {a: {mix.law.alpha: 2}}\n",
                         "4: arms.a.mix.law.alpha: alpha needs mix.law to be beta or truncated"
                         ", got (mix.law='erm', mix.law.alpha=2.0); write mix.law: "
                         "{beta: ALPHA} or {truncated: {alpha: ALPHA, low: LOW, high: HIGH}}."),
    "the same arm twice": (SMALL + "arms: {a: {mix.law: {beta: 1}}, b: {mix.law: {beta: 1.0}}}\n",
                           "4: arms.b.mix.law: arms 'a' and 'b' are the same run"),
    "grid of a scalar": (SMALL + "grid: {epochs: 3}\n", "4: grid.epochs: expected a list of *"),
    "grid value of a wrong type": (SMALL + "grid:\n  epochs:\n  - 2\n  - x\n",
                                   "7: grid.epochs[1]: expected an integer, got text 'x'"),
    "grid value out of range": (SMALL + "grid: {mix.switch_epoch: [1, 9]}\n",
                                "4: grid.mix.switch_epoch[1]: `mix.switch_epoch <= epochs` *"),
    "grid value twice": (SMALL + "grid: {optimizer.lr: [1, 1.0]}\n",
                         "4: grid.optimizer.lr[1]: arms 'lr=1.0' and 'lr=1.0' are the same run"),
    "grid over an arm's path": (SMALL + "arms: {a: {epochs: 2}}\ngrid: {epochs: [1, 3]}\n",
                                "5: grid.epochs: arm 'a' sets this path too"),
    "missing image folder": (base("data: {name: image-folder, folder: none, image_size: 8}"),
                             "2: base.data.folder: *none/train: not found; *"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_invalid_files_are_refused_with_line_path_rule_and_value(tmp_path: Path, case: str) -> None:
    text, expected = BAD[case]
    line = "|".join(refusals(tmp_path, text))
    assert line.isprintable()
    start, *parts = expected.split("*")
    assert line.startswith(start)
    if parts:
        assert all(part in line for part in parts)
    else:
        assert line == expected


def test_all_problems_of_a_file_are_listed_in_the_order_of_its_lines(tmp_path: Path) -> None:
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
    places = [line.split(": ")[:2] for line in refusals(tmp_path, text, "base.data.pool=0")]
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


def test_an_image_folder_is_found_next_to_the_study_file_and_hashed(tmp_path: Path) -> None:
    data = "data: {name: image-folder, folder: images, image_size: 8, test: false}"
    text, digests = base(data).replace("batch_size: 8", "batch_size: 1"), set()
    text += "headline: train/loss\n"
    for red in (0, 9):
        fill(tmp_path / "images" / "train", red, a=1, b=1)
        found = read(tmp_path, text).arms["base"].data
        assert found.folder == str(tmp_path / "images")
        assert found.digest is not None
        digests.add(found.digest)
    assert len(digests) == 2


def test_the_format_is_read_as_documented(tmp_path: Path) -> None:
    study = read(
        tmp_path,
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
        "seeds: [7, 3]\n",
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


def test_the_source_reads_back_as_the_same_study(tmp_path: Path) -> None:
    text = SMALL + "# a comment\ndescription: '1e-3'\narms: {a: {mix.law: {beta: 1e-3}}}\n"
    study = read(tmp_path, text, "seeds=3")
    assert "seeds: 3" in study.source
    assert "comment" not in study.source
    assert read(tmp_path, study.source) == study


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


DOTTED = SMALL + "arms: {a: {}, a.b: {mix.law: midpoint}}\n"


def document_of(text: str) -> Document:
    return read_yaml(text.encode(), lambda line: Place(source="s.yaml", line=line))


def overridden(text: str, *overrides: str) -> Any:
    """Return the content of a file after valid overrides."""
    document = document_of(text)
    for spelled in overrides:
        override(document, spelled)
    assert document.faults == []
    return document.value


BAD_OVERRIDES = {
    "seeds": "seeds: --set needs PATH=VALUE, for example seeds=6",
    "=6": "=6: --set needs PATH=VALUE, for example seeds=6",
    "seeds=": "seeds=: seeds: expected an integer, a list of integers, *, got null",
    "epochs=6": "epochs=6: epochs: unknown key 'epochs' (did you mean base.epochs?)",
    "base.epoch=6": "base.epoch=6: base.epoch: unknown key 'epoch' (did you mean epochs?)",
    "base.epochs=six": "base.epochs=six: base.epochs: expected an integer, got text 'six'",
    "base.epochs=\udcff": "base.epochs=\\udcff: base.epochs: not UTF-8 text",
    "study.x=1": "study.x=1: study.x: unknown key 'study.x' (did you mean study?)",
    "arms.b.epochs=1": "arms.b.epochs=1: arms.b.epochs: names no arm of the study file; its arms "
    "are: a, a.b",
    "arms.a.epoch=1": "arms.a.epoch=1: arms.a.epoch: unknown path (did you mean epochs?)",
    "seeds=[1": "seeds=[1: seeds: not valid YAML: while parsing a flow sequence, "
    "did not find expected ',' or ']' (column 1)",
    "seeds=\n3\n---\n4": "seeds=\\n3\\n---\\n4: seeds: expected one document, got a second",
}


@pytest.mark.parametrize("text", BAD_OVERRIDES)
def test_invalid_overrides_are_refused_with_set_as_their_location(
    tmp_path: Path, text: str
) -> None:
    (line,) = refusals(tmp_path, DOTTED, text)
    start, _, end = f"--set {BAD_OVERRIDES[text]}".partition("*")
    assert line.startswith(start)
    assert line == start or (end and line.endswith(end))


@given(text=st.text(st.characters(codec="utf-8"), max_size=20) | st.text("a #\n\t-:'", max_size=9))
@example("photos #2")
@example("#5")
@example("--- issue")
@example("a\n b")
@example(">")
@example("|")
def test_a_text_is_taken_whole_or_reported(text: str) -> None:
    document = document_of(SMALL)
    override(document, f"description={text}")
    value = document.value["description"]
    is_text = isinstance(value, str) and not text.strip().startswith(("'", '"'))
    assert not is_text or document.faults or value == text.removeprefix("\ufeff").strip()
    assert value is not None or text.strip() in {"", "null", "~", "\ufeff"}


@pytest.mark.parametrize(
    ("spelled", "where", "value"),
    [
        ("seeds=6", ("seeds",), 6),
        ("description=a = b", ("description",), "a = b"),
        ("description='6'", ("description",), "6"),
        ("base.epochs=2", ("base", "epochs"), 2),
        ("base.optimizer.lr=1e-2", ("base", "optimizer", "lr"), 0.01),
        ("base.mix.law.alpha=2", ("base", "mix", "law.alpha"), 2),
        ("base.mix={law: erm}", ("base", "mix"), {"law": "erm"}),
        ("arms.a.mix.law.alpha=2", ("arms", "a", "mix.law.alpha"), 2),
        ("arms.a.b.epochs=2", ("arms", "a.b", "epochs"), 2),
        ("arms.a.b={}", ("arms", "a.b"), {}),
        ("grid.optimizer.lr=[1]", ("grid", "optimizer.lr"), [1]),
        ("grid=[{epochs: [1]}]", ("grid",), [{"epochs": [1]}]),
        ("zip.optimizer.lr=[1]", ("zip", "optimizer.lr"), [1]),
        ("search.budget.hours=6", ("search", "budget", "hours"), 6),
        ("search.space.mix.law.alpha={}", ("search", "space", "mix.law.alpha"), {}),
        ("readout.mean_of_last=2", ("readout", "mean_of_last"), 2),
        ("references.a.test/error=1", ("references", "a", "test/error"), 1),
    ],
)
def test_an_override_by_path_changes_the_same_place_as_the_file(
    spelled: str, where: tuple[str, ...], value: Any
) -> None:
    study = overridden(DOTTED, spelled)
    expected = document_of(DOTTED).value
    inside = expected
    for key in where[:-1]:
        inside = inside.setdefault(key, {})
    inside[where[-1]] = value
    assert study == expected


@ONE_FILE
@given(
    path=st.lists(parts | st.sampled_from(["base", "arms", "grid", "seeds", ""])).map(".".join),
    value=st.text(max_size=10) | values.map(json.dumps),
)
def test_any_override_raises_only_study_errors(tmp_path: Path, path: str, value: str) -> None:
    text = SMALL + "arms: {a: {mix.law: {beta: 1}}}\n"
    for line in faults_of(tmp_path, text, f"{path}={value}"):
        assert line.startswith("--set ")
        assert line.isprintable()


@pytest.mark.parametrize(
    "base", ["mix.law: {beta: 1}", "mix: {law: {beta: 1}}", "mix.law: beta, mix.law.beta.alpha: 1"]
)
@pytest.mark.parametrize("path", ["mix.law", "mix.law.alpha", "mix.law.beta.alpha"])
def test_an_override_replaces_every_spelling_of_its_path_in_base(
    tmp_path: Path, base: str, path: str
) -> None:
    text = SMALL.replace("model:", f"{base}, model:") + "arms: {a: {}}\n"
    value = "0.25" if path.endswith("alpha") else "{beta: 0.25}"
    study = read(tmp_path, text, f"base.{path}={value}", f"base.{path}={value}")
    assert study.arms["a"].mix.law == Beta(alpha=0.25)


def test_a_message_lists_thirty_faults_and_counts_the_others() -> None:
    with pytest.raises(StudyError) as caught:
        study_of({"study": "s", "base": {}, **{f"nonesuch{n}": 1 for n in range(5000)}})
    *_, last = lines = str(caught.value).splitlines()
    assert len(lines) == 31
    assert lines[0].startswith("study: ")
    assert last == f"... {len(caught.value.faults) - 30:,} more faults"
    assert len(caught.value.faults) > 5000


@pytest.mark.parametrize("value", [Path("photos"), range(3), object()])
def test_a_mapping_with_values_that_no_file_can_have_is_refused_by_value(value: object) -> None:
    with pytest.raises(StudyError, match=r"got .* of type ") as caught:
        study_of({"study": "s", "base": {}, "seeds": value})
    assert repr(value) in str(caught.value)
