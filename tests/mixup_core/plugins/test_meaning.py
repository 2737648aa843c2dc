"""Meaning: an edit that can change a number changes a key; other edits of a plugin file do not."""

import ast
import copy
import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from mixup_core.images.data.facts import Dataset
from mixup_core.plugins.checking import trial_of
from mixup_core.plugins.loading import use
from mixup_core.plugins.meaning import Meaning
from mixup_core.seeding import seeded_globally
from tests.plugin_files import DOTS, HEAD, Write

FILE = (
    HEAD
    + '''
import math
from dataclasses import field
from functools import partial

from mixsweep.plugins import Share

SLOPE = 0.75  # a constant
TABLE = {"low": 0.25, "high": [0.5, 0.75]}
TABLE["low"] += 0.125
WORDS = ("plain", "other")


def scaled(number, by=SLOPE, *, shift=0.0):
    """Return a number in another place."""
    return number * by + shift


def doubled(function):
    def both(*arguments):
        return function(*arguments) / 2 + 0.25
    return both


class Named:
    def half(self):
        return TABLE["high"][0]


class Base:
    floor = 0.125

    @doubled
    def least(self):
        return self.floor


@value
class Narrow(Law, Named, Base):
    """A law."""

    tag = "narrow"
    width: Share = 0.5
    """Width."""

    def quantiles(self, levels):
        return self.half() + scaled(levels - 0.5, shift=self.least() / 100) * self.width * 0.5


@value
class Tiny(Model):
    name = "tiny"
    has_batch_norm = False
    hidden: Count = field(default=6)

    def network(self, in_channels, num_classes, image_size):
        from torch import nn

        size = in_channels * image_size**2
        kind = nn.ReLU if WORDS[0] == "plain" else nn.Tanh
        last = partial(nn.Linear, self.hidden)
        return nn.Sequential(nn.Flatten(), nn.Linear(size, self.hidden), kind(), last(num_classes))


@value
class Weighted(Objective):
    tag = "weighted"
    power: Share = 0.5

    def on(self, batch, student, loss, teacher):
        losses = batch.losses(batch.logits(student), loss)
        return Minimised(loss=(losses * math.exp(-self.power)).mean() + 0 * TABLE["low"])


@value
class Peak(Probe):
    tag = "peak"
    metrics = {"train/peak": Metric(label="peak")}

    def measure(self, subject):
        return {"train/peak": float(subject.outputs()[0].amax()) * scaled(2.0)}
'''
    + DOTS
)
EVERY_ENTRY = {
    "law narrow", "model tiny", "objective weighted", "probe peak", "dataset dots",
}  # fmt: skip


def _digests(plugin: Any) -> dict[str, str]:
    return {name: origin.digest for name, origin in zip(plugin.names, plugin.origins, strict=True)}


def _numbers(plugin: Any) -> dict[str, Any]:
    """Return what each entry computes: pixels, or records and weights of a run."""
    found = {}
    for name, (_, entry) in zip(plugin.names, plugin.entries, strict=True):
        if isinstance(entry, Dataset):
            images = entry.read(None, "train", 8)
            found[name] = images.pixels.tolist(), images.labels.tolist(), repr(entry.info)
        else:
            found[name] = trial_of(entry).trained()
    return found


HARMLESS: dict[str, Callable[[str], str]] = {
    "line ends of another computer": lambda text: text.replace("\n", "\r\n"),
    "another layout": lambda text: ast.unparse(ast.parse(text)),
    "docstrings": lambda text: text.replace("A law.", "The law.").replace("Return a", "Give a"),
    "a docstring of a field": lambda text: text.replace("Width.", "Width of the law, read once."),
    "an import that nothing uses": lambda text: f"import itertools\n{text}",
    "a new probe": lambda text: text + '''

def top(logits, count=3):
    return logits.topk(count).values


@value
class Other(Probe):
    tag = "top"
    metrics = {"train/top": Metric(label="mean of the top")}

    def measure(self, subject):
        return {"train/top": float(top(subject.outputs()[0]).mean())}
''',
    "a new set": lambda text: f"{text}\nSPOTS = Dataset(name='spots', info=DOTS.info, read=read)\n",
}  # fmt: skip


@pytest.mark.parametrize("edit", HARMLESS.values(), ids=HARMLESS)
def test_an_edit_that_changes_no_number_keeps_every_key(
    plugin: Write, edit: Callable[[str], str]
) -> None:
    file = plugin()
    file.write_text(FILE)
    before = _digests(use(file))
    edited = edit(FILE)
    assert edited != FILE
    file.write_bytes(edited.encode())
    assert before.items() <= _digests(use(file)).items()


@pytest.mark.parametrize(
    ("old", "new", "entries"),
    [
        ("-self.power", "self.power", {"objective weighted"}),
        ("0, 128", "0, 64", {"dataset dots"}),
        ("SLOPE = 0.75", "SLOPE = 0.5", {"law narrow", "probe peak"}),
        ('"plain", "other"', '"other", "plain"', {"model tiny"}),
        # a statement that is run at import and binds no name
        ('"low"] += 0.125', '"low"] += 0.25', EVERY_ENTRY),
        ("@doubled\n", "@staticmethod\n", {"law narrow"}),
        ("floor = 0.125", "floor = 0.25", {"law narrow"}),
    ],
)
def test_an_edit_changes_only_keys_of_entries_that_reach_it(
    plugin: Write, old: str, new: str, entries: set[str]
) -> None:
    file = plugin()
    file.write_text(FILE)
    before = _digests(use(file))
    assert before.keys() == EVERY_ENTRY
    file.write_text(FILE.replace(old, new))
    found = _digests(use(file))
    assert {name for name in before if found[name] != before[name]} == entries


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("from math import *", "import *"),
        ("NAMES = globals()", "globals"),
        ("exec('SLOPE = 1')", "exec"),
        ("import sys", "sys"),
        ("SEED = __file__", "__file__"),
        ("SEED = len(__name__)", "__name__"),
        ("TEXT = scaled.__doc__", "__doc__"),
        ("PLACE = scaled.__code__", "__code__"),
        ("LAW = Law.catalogue", "catalogue"),
        ("class Root:\n    def __init_subclass__(cls): pass", "__init_subclass__"),
    ],
)
def test_any_edit_changes_all_keys_if_the_reached_code_is_unknown(code: str, reason: str) -> None:
    one, other = (Meaning(f"{FILE}\n{code}\n{end}".encode()) for end in ("", "# a comment\n"))
    assert (
        one.untraceable == f"line {FILE.count(chr(10)) + 2 + code.count(chr(10))} uses `{reason}`"
    )
    assert one.digest(["Tiny"]) != other.digest(["Tiny"])
    plain = Meaning(FILE.encode())
    assert plain.untraceable is None
    assert plain.digest(["Absent"]) != Meaning(f"{FILE}# a comment\n".encode()).digest(["Absent"])


@pytest.mark.parametrize(
    "code",
    [
        "KEPT = []\ndef keep(made):\n    KEPT.append(made)\n    return made\n@keep\n",
        "class Keep:\n    def __init__(self, made):\n        TABLE['made'] = made\n@Keep\n",
        "KEPT = []\n@KEPT.append\n",
        "KEPT = []\n@lambda made: KEPT.append(made)\n",
        "KEPT = []\ndef to(one):\n    return KEPT.append\n@to\ndef keep(made):\n    pass\n@keep\n",
    ],
)
def test_every_key_depends_on_code_that_a_decorator_may_store(code: str) -> None:
    files = (f"{FILE}\n{code}def shift(x):\n    return x - {by}\n" for by in (1, 2))
    one, other = (Meaning(file.encode()).digest(["Tiny"]) for file in files)
    assert one != other


def test_the_digest_of_a_file_is_as_recorded() -> None:
    """Another digest of an unchanged plugin would hide all stored results that used it."""
    source = b'''"""A law."""
import math
from mixsweep.plugins import Law as Base, Share
SIZES: tuple[int, ...] = (1, -2)

@value
class Near(Base):
    """Near a half."""
    tag = "near"
    width: Share = 0.25
    def quantiles(self, levels, *, by=None):
        return [0.5 + self.width * (x - 0.5) for x in levels if not by] or f"{math.pi:.2f}"
    def none(self): pass
'''
    assert Meaning(source).untraceable is None
    assert (
        Meaning(source).digest(["Near"])
        == "4f2431391d9e5a3d495f99905170bb6d502ce1d98d640e683f26fea4629c7202"
    )


LISTS = (
    "args", "keywords", "decorator_list", "bases", "defaults", "kw_defaults", "body", "names",
)  # fmt: skip


def _changed(node: ast.AST, names: list[str]) -> Iterator[Callable[[ast.AST], None]]:
    """Yield functions that change a copy of a node in one way each."""
    if isinstance(node, ast.Constant) and not isinstance(node.value, bool):
        changed = f"{node.value}x" if isinstance(node.value, str) else (node.value or 0) + 1
        yield lambda copied: setattr(copied, "value", changed)
    if isinstance(node, ast.BinOp):
        yield lambda copied: setattr(copied, "op", ast.FloorDiv())
    for field in LISTS:
        for place in range(len(of)) if isinstance(of := getattr(node, field, None), list) else ():
            yield lambda copied, field=field, place=place: getattr(copied, field).pop(place)
    if isinstance(node, ast.Name):
        for other in names:
            if other != node.id:
                yield lambda copied, other=other: setattr(copied, "id", other)


def _mutants(text: str, every: int) -> Iterator[str]:
    """Yield the file with one change each; of `every` such changes, one."""
    tree = ast.parse(text)
    names = ["scaled", "SLOPE", "TABLE", "WORDS"]
    number = 0
    for place, node in enumerate(ast.walk(tree)):
        for change in _changed(node, names):
            number += 1
            if number % every:
                continue
            mutated = copy.deepcopy(tree)
            copied = next(found for at, found in enumerate(ast.walk(mutated)) if at == place)
            change(copied)
            yield ast.unparse(ast.fix_missing_locations(mutated))


@pytest.mark.parametrize("every", [23, pytest.param(1, marks=pytest.mark.long)])
def test_no_mutant_of_a_plugin_keeps_a_key_and_changes_a_number(plugin: Write, every: int) -> None:
    file, num_kept = plugin(), []
    file.write_text(FILE)
    before = use(file)
    with seeded_globally(0):
        digests, numbers = _digests(before), _numbers(before)
        for text in _mutants(FILE, every):
            file.write_text(text)
            try:
                found = use(file)
            except Exception:
                continue
            kept = {name for name, _ in digests.items() & _digests(found).items()}
            num_kept.append(len(kept))
            entries = [
                e for name, e in zip(found.names, found.entries, strict=True) if name in kept
            ]
            same = _numbers(dataclasses.replace(found, entries=tuple(entries)))
            wrong = [name for name in kept if same[name] != numbers[name]]
            assert not wrong, f"{wrong} keep their keys, but not their numbers:\n{text}"
    assert len(num_kept) > 300 / every
    assert 1 < np.mean(num_kept) < len(digests) - 0.5, "most changes leave most entries alone"
