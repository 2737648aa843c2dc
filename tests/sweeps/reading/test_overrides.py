"""Overrides: the field that `--set PATH=VALUE` changes, and messages for wrong ones."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mixup_core.laws import Beta
from sweeps.reading.overrides import override
from sweeps.reading.strict_yaml import Document, Place, read_yaml
from tests.sweeps.reading.study_files import (
    ONE_FILE,
    SMALL,
    faults_of,
    parts,
    read,
    refusals,
    values,
)

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


BAD = {
    "seeds": "seeds: --set needs PATH=VALUE, for example seeds=6",
    "=6": "=6: --set needs PATH=VALUE, for example seeds=6",
    "seeds=": "seeds=: seeds: expected an integer, a list of integers, *, got null",
    "epochs=6": "epochs=6: epochs: unknown key 'epochs' (did you mean base.epochs?)",
    "base.epoch=6": "base.epoch=6: base.epoch: unknown key 'epoch' (did you mean epochs?)",
    "base.epochs=six": "base.epochs=six: base.epochs: expected an integer, got text 'six'",
    "base.epochs=no": "base.epochs=no: base.epochs: YAML reads no as the boolean false; quote a "
    "name as 'no', or write a boolean as false",
    "base.mix.lav=erm": "base.mix.lav=erm: base.mix.lav: unknown key 'lav' (did you mean law?)",
    "base.epochs=\udcff": "base.epochs=\\udcff: base.epochs: not UTF-8 text",
    "study.x=1": "study.x=1: study.x: unknown key 'study.x' (did you mean study?)",
    "arms.b.epochs=1": "arms.b.epochs=1: arms.b.epochs: names no arm of the study file; its arms "
    "are: a, a.b",
    "arms.a.epoch=1": "arms.a.epoch=1: arms.a.epoch: unknown path (did you mean epochs?)",
    "arms.a.epochs=0": "arms.a.epochs=0: arms.a.epochs: `epochs >= 1` must hold, got (epochs=0).",
    "grid.lr=[1]": "grid.lr=[1]: grid.lr: unknown path (did you mean optimizer.lr?)",
    "seeds=[1": "seeds=[1: seeds: not valid YAML: while parsing a flow sequence, "
    "did not find expected ',' or ']' (column 1)",
    "seeds=\n3\n---\n4": "seeds=\\n3\\n---\\n4: seeds: expected one document, got a second",
}


@pytest.mark.parametrize("text", BAD)
def test_invalid_overrides_are_refused_with_set_as_their_location(
    tmp_path: Path, text: str
) -> None:
    (line,) = refusals(tmp_path, DOTTED, text)
    start, _, end = f"--set {BAD[text]}".partition("*")
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
