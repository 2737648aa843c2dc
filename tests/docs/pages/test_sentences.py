"""Sentences of claims: the arms, numbers and times that they name are those that are tested."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from mixup_core.config.written_forms import flatten
from sweeps.reading.study_file import bundled_names
from sweeps.study.claims import Claim
from sweeps.study.study import Study
from tests.bundled import bundled

OPERATIONS = "RegMixup", "MixupE", "CutMix", "ResizeMix", "FMix", "SaliencyMix", "PuzzleMix"
METHODS = {
    r"\bERM\b|[Pp]lain training|no mixup|without mixing": {"erm", "none", "one-feature"},
    r"(?<!all but )[Mm]idpoint": {"midpoint"},
    r"[Uu]niform mixup": {"uniform", "first", "last", "always", "never", "nodes"},
    **{rf"\b{name}\b": {name.lower()} for name in OPERATIONS},
    r"Manifold mixup": {"manifold"},
    r"[Mm]asking": {"mask"},
    r"low filter|[Gg]uidance|filter of the oracle": {"low"},
    r"high (?:filter|one\b)": {"high"},
    r"[Ll]abel smoothing": {"smoothing", "smoothed"},
    r"[Ww]ider": {"wide"},
    r"\bbfloat16\b": {"bfloat16"},
}
"""Words for a method, and the parts of names of arms that stand for it."""

QUALIFIED = {
    "small": r"[Ss]mall", "strong": r"hundred times", "stopped": r"[Ss]top|goes on",
    "wide": r"[Ww]ider", "apart": r"[Ww]ithout label", "cosine": r"cosine|^(?!.*constant rate)",
    "sum": r"\bsum\b", "early": r"epochs of (?:ERM|mixup)", "noise": r"nois|wrong",
    "all": r"[Aa]ll|[Bb]eside|teacher", "smoothed": r"smoothing",
    "furthest": r"further|furthest|separab", "near": r"further|near|separab",
    "mild": r"alpha 0\.2", "added": r"added", "orthogonal": r"orthogonal",
    "squared": r"squared", "augmented": r"crops", "deep": r"deep",
    "convolutional": r"convolutional",
    "descent": r"[Dd]escent", "flow": r"flow",
}  # fmt: skip
"""Parts of names of arms that set them apart from the plain arm, and words that say so."""

IN_WORDS = {
    r"\bhalf\b|\b[Mm]ost\b": 0.5, r"\ba third\b": 1 / 3, r"\bone of three\b": 1 / 3,
    r"\ba tenth\b(?! of)": 0.1, r"\bnine in ten\b": 0.9,
    r"\bin a hundred\b": 0.01,
    r"\bin a thousand\b": 0.001, r"\bone of 4\b": 0.25, r"\bhalf a point\b": 0.005,
    r"\bto within a point\b": 0.01, r"\bone class in six\b": 1 / 6,
}  # fmt: skip

CLAIMS = [
    pytest.param(name, number, id=f"{name}-{number}")
    for name in bundled_names()
    for number in range(len(bundled(name).claims))
]


MIXES = {
    "uniform", "mixup", "linear", "first", "last", "always", "never", "middle", "switch", "paused",
    "stop", "alpha", "beta", "resnet", "mlp",
}  # fmt: skip
"""Parts of names of arms that train with plain mixup."""

POINTER = (
    r"^(?:It|So|That|They|There|None|Stopped)\b|\bleaves them\b|\b[Ww]here they\b|"
    r"\bthat teacher\b|\bas well$|\bsuch\b"
)
"""Words by which a sentence points to the one before it."""

FORMULA = r"\w / \d+|\w\^\S+|\d/\S+|\^\(.*?\)|\(C.*?\)|\(\d C\)|[\d.]+ ln \d|theorem \d+|1 - c"


def problems(study: Study, claim: Claim) -> Iterator[str]:
    """Yield the parts of a sentence that its test does not test."""
    yield from unnamed_arms(study, claim)
    yield from unnamed_numbers(study, claim)
    yield from unread_times(study, claim)
    if re.search(r"\blearns\b", claim.says) and not isinstance(claim.that.right, float):
        both = {"features/one", "features/both"}  # their definition says what is learned
        if claim.that.metric not in both:
            yield "the sentence says learns, the test compares amounts"
    if re.search(POINTER, claim.says):
        yield "the sentence points to another one, which a reader of one row does not know"


def parts(arm: str) -> set[str]:
    name = re.split(r"[ =]", arm)[0].replace("mixup-e", "mixupe")
    return {name, *name.split("-"), re.sub(r"-[\d.e]+$", "", name)}


def unnamed_arms(study: Study, claim: Claim) -> Iterator[str]:
    """Yield methods that a sentence names but its arms lack, and traits of arms it leaves out."""
    arms = claim.that.arms
    named = set().union(*map(parts, arms))
    known = named | {str(v) for arm in arms for v in flatten(study.arms[arm]).values()}
    is_about_metric = claim.that.metric.startswith("direction/")  # it is relative to ERM
    for words, names in METHODS.items():
        if re.search(words, claim.says) and not names & known and not is_about_metric:
            yield f"the sentence names {words!r}, the arms are {arms}"
    others = r"\b(?![Uu]nder )\w+ mixup|RegMixup|MixupE"
    plain = re.search(r"\b[Mm]ixup\b", re.sub(others, "", claim.says))
    if plain and not MIXES & named:
        yield f"the sentence names mixup, the arms are {arms}"
    for arm in arms:
        for trait in parts(arm) & QUALIFIED.keys():
            if arm != trait and not re.search(QUALIFIED[trait], claim.says):
                yield f"the sentence does not say that {arm} is {trait!r}"


def unnamed_numbers(study: Study, claim: Claim) -> Iterator[str]:
    """Yield the numbers of a sentence that neither its test nor the names and settings have."""
    that, says = claim.that, re.sub(FORMULA, "", claim.says)
    limits = [n for n in (that.number, that.margin, that.factor) if n is not None]
    said = [value for words, value in IN_WORDS.items() if re.search(words, says)]
    for number, percent in re.findall(r"(?<![\w^.])(\d[\d,]*(?:\.\d+)?(?:e-?\d+)?)( %)?", says):
        said.append(float(number.replace(",", "")) / (100 if percent else 1))
    settings = [
        number
        for arm in that.arms
        for value in flatten(study.arms[arm]).values()
        for number in numbers_in(value, study.arms[arm].epochs)
    ]
    for config in map(study.arms.__getitem__, that.arms):
        doubled = {"first_points", "first_scale"} & flatten(config).keys()
        settings += [flatten(config)[name] * 2 ** (config.epochs - 1) for name in doubled]
    for value in said:
        known = [*settings, *(limit * factor for limit in limits for factor in (1, 100))]
        known += [1 - limit for limit in limits]
        is_named = re.search(rf"(?<![\d.]){value:g}(?!\d)", " ".join(that.arms))
        if not is_named and not any(math.isclose(value, n, rel_tol=1e-3) for n in known):
            yield f"the sentence says {value:g}, the test has {limits}, {that.arms}"


def numbers_in(value: Any, epochs: int) -> Iterator[float]:
    """Yield the numbers of a setting, and each as a share of the epochs."""
    if isinstance(value, int | float):
        yield from (value, value / epochs)
    elif isinstance(value, Mapping):
        for part in value.values():
            yield from numbers_in(part, epochs)
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for part in value:
            yield from numbers_in(part, epochs)


def unread_times(study: Study, claim: Claim) -> Iterator[str]:
    """Yield a message if a sentence is about a time and its test reads only the last epoch."""
    if re.search(r"before the end|at once|\bsoon|\blater\b|first reaches", claim.says):
        whole = {config.epochs for config in study.arms.values()}
        if claim.that.readout is None and {study.arms[a].epochs for a in claim.that.arms} == whole:
            yield "the sentence is about a time, the test reads the last epoch"


@pytest.mark.parametrize(("name", "number"), CLAIMS)
def test_a_sentence_is_tested_as_a_whole(name: str, number: int) -> None:
    study = bundled(name)
    claim = study.claims[number]
    assert list(problems(study, claim)) == [], f"{claim.says} {claim.that}"


@pytest.mark.parametrize(
    ("name", "says", "wrong"),
    [
        ("mixup-e", "Under mixup more than one training image in a hundred", "names mixup"),
        ("two-layer-classes", "Plain training learns exactly one feature of most classes", "small"),
        ("over-training", "The original images are learned long before the end", "a time"),
        ("rare-features", "Mixup that stops early is as good, to within 3 points", "says 3"),
        ("teacher-filter", "The low filter has lower test error than CutMix", "CutMix"),
        ("teacher-filter", "With that teacher the low filter has lower test error", "points to"),
        ("two-layer-later", "Plain training keeps the share of such classes", "points to"),
        ("rare-features", "Mixup learns rare features that plain training does not", "learns"),
    ],
)
def test_a_sentence_with_another_meaning_is_found(name: str, says: str, wrong: str) -> None:
    study = bundled(name)
    late = {"over-training", "mixup-e"} | ({"rare-features"} if "early" in says else set())
    claim = replace(study.claims[-1 if name in late else 0], says=says)
    found = " ".join(problems(study, claim))
    assert wrong in found


@pytest.mark.parametrize("name", bundled_names())
def test_a_claim_agrees_with_its_source(name: str) -> None:
    study = bundled(name)
    for claim in study.claims:
        that, values = claim.that, []
        for side in (that.left, that.right):
            arms = side if isinstance(side, tuple) else (side,)
            printed = [
                arm if isinstance(arm, float) else study.references.get(arm, {}).get(that.metric)
                for arm in arms
            ]
            if None not in printed:
                values.append(printed[0] - sum(printed[1:]))
        if len(values) == 2 and that.readout is None:
            left, right = values[0], values[1] * that.times
            near = math.isclose(left, right, rel_tol=1e-9, abs_tol=that.margin or 0)
            allowed = {
                "less": left < right,
                "greater": left > right,
                "at_least": left > right or near,
                "at_most": left < right or near,
                "within": near,
            }
            assert allowed[that.relation], (claim.says, values)
