"""A new law, operation or network needs one file and its registration: no other code names it."""

import ast
import dataclasses
import inspect
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path

from mixsweep import plugins
from mixup_core.config.catalogue import Catalogue, kind_name
from mixup_core.images.data.sets import DATASETS
from mixup_core.plugins.stand_ins import REGISTERS
from mixup_core.problem import PROBLEMS, Problem
from tests.style.sources import CODE, ROOT, nodes_of

ALLOWED = {
    "law": {"Beta", "Erm"},
    "operation": {"Linear"},
    "objective": {"Plain"},
    "augmentation": {"Unchanged"},
    "model": {"ResNet18"},
    "optimizer": {"Adam"},
}
"""Entries that other code may name: defaults, and the law of a ramp."""
MEASURED = {("mixup_core.images.metrics", "Scores")}
"""Modules that may name a probe, because they measure the same from predictions."""
FIGURES = {("reports.figures.predictions", "mixup_core.theory.moons")}
"""Figures that belong to a single problem."""
CHOICES = {noun: tuple(r.values()) for noun, r in REGISTERS.items() if isinstance(r, Catalogue)}


@cache
def _named(file: Path) -> frozenset[tuple[str, str]]:
    """Return module and name of each import in a file."""
    imports = (node for node in nodes_of(file) if isinstance(node, ast.ImportFrom) and node.module)
    return frozenset((str(node.module), alias.name) for node in imports for alias in node.names)


@cache
def _told_apart(file: Path) -> frozenset[str]:
    """Return the names of the classes in each `isinstance` or `match` of a file."""
    asked: list[ast.AST] = []
    for node in nodes_of(file):
        if isinstance(node, ast.MatchClass):
            asked.append(node.cls)
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") == "isinstance":
            asked.append(node.args[1])
    return frozenset(
        part.id for each in asked for part in ast.walk(each) if isinstance(part, ast.Name)
    )


def _module(file: Path) -> str:
    return ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def test_registry_entries_are_named_only_within_their_own_folder() -> None:
    imported, told_apart = set(), set()
    for noun, kinds in CHOICES.items():
        modules = {k.__name__: k.__module__ for k in kinds if k.__module__.startswith("mixup_core")}
        for file in CODE:
            place = _module(file)
            outside = {
                name: module
                for name, module in modules.items()
                if not place.startswith(module.rpartition(".")[0])
            }
            told_apart |= {(place, name) for name in _told_apart(file) & outside.keys()}
            imported |= {
                (place, name)
                for module, name in _named(file)
                if name not in ALLOWED.get(noun, ()) and outside.get(name, "").startswith(module)
            }
    assert imported - MEASURED == set()
    assert told_apart == set()


def _written(kinds: tuple[type, ...]) -> Iterator[type]:
    """Yield the classes of a kind from all files of its folder, except abstract ones."""
    (base,) = {b for kind in kinds for b in kind.__mro__ if "catalogue" in vars(b)}
    folders = {kind.__module__.rpartition(".")[0] for kind in kinds}
    for module in sorted(map(_module, CODE)):
        if module.rpartition(".")[0] in folders:
            for each in vars(import_module(module)).values():
                if not inspect.isclass(each) or each.__module__ != module:
                    continue
                if issubclass(each, base) and not inspect.isabstract(each) and kind_name(each):
                    yield each


def test_every_class_of_a_choice_is_registered() -> None:
    for noun, kinds in CHOICES.items():
        found = set(_written(kinds))
        assert found, noun
        assert found <= set(kinds), noun


def test_dataset_modules_are_imported_only_by_the_catalogue() -> None:
    sets = {path.stem for path in (ROOT / "mixup_core/images/data/sets").glob("*.py")}
    sets -= {"__init__", "corrupted"}
    found = {
        (_module(file), name)
        for file in CODE
        for module, name in _named(file)
        if module == "mixup_core.images.data.sets" and name in sets
    }
    assert {place for place, _ in found} == {"mixup_core.images.data.sets"}
    assert {name for _, name in found} == sets
    assert len(DATASETS) >= len(sets)


def test_theory_modules_are_imported_outside_theory_only_by_known_figures() -> None:
    places = {str(place).partition(":")[0] for place in PROBLEMS.values()}
    theory = {place for place in places if place.startswith("mixup_core.theory")}
    outside = [file for file in CODE if not _module(file).startswith("mixup_core.theory")]
    found = {(_module(file), module) for file in outside for module, _ in _named(file)}
    assert {pair for pair in found if pair[1] in theory} == FIGURES


def test_every_part_of_a_problem_is_exported_to_plugins() -> None:
    parts = {
        type(part.default_factory())
        for part in dataclasses.fields(Problem)
        if part.default_factory is not dataclasses.MISSING
    }
    assert len(parts) > 1
    assert {part.__name__ for part in parts} <= set(plugins.__all__)
