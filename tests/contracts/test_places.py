"""A new law, operation or network needs one file and its registration: no other code names it."""

import ast
import dataclasses
import inspect
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

from mixsweep import plugins
from mixup_core.config.catalogue import Catalogue, kind_name
from mixup_core.images.data.catalog import PUBLISHED
from mixup_core.plugins.registers import REGISTERS
from mixup_core.problem import PROBLEMS, Problem

ROOT = Path(__file__).parents[2]
CODE = [
    file
    for folder in ("mixup_core", "sweeps", "reports", "mixsweep")
    for file in sorted((ROOT / folder).rglob("*.py"))
]
DEFAULTS = {
    "law": {"Beta", "Erm"},
    "operation": {"Linear"},
    "objective": {"Plain"},
    "augmentation": {"Unchanged"},
    "model": {"ResNet18"},
    "optimizer": {"Adam"},
}
"""Entries that other code may name: defaults, and the law of a ramp."""
MEASURED = {"mixup_core.images.metrics": {"Scores"}}
"""Modules that may name a probe, because they measure the same from predictions."""


FIGURES = {("reports.figures.decisions", "mixup_core.theory.moons")}
"""Figures that belong to a single problem."""
CHOICES = [noun for noun, each in REGISTERS.items() if isinstance(each, Catalogue)]


@cache
def _nodes(file: Path) -> tuple[ast.AST, ...]:
    """Return the imports, calls and class patterns of a file; each test asks for all files."""
    wanted = (ast.ImportFrom, ast.MatchClass, ast.Call)
    return tuple(each for each in ast.walk(ast.parse(file.read_text())) if isinstance(each, wanted))


@cache
def _named(file: Path) -> tuple[tuple[str, str], ...]:
    """Return module and name of each import in a file."""
    return tuple(
        (node.module, alias.name)
        for node in _nodes(file)
        if isinstance(node, ast.ImportFrom) and node.module is not None
        for alias in node.names
    )


def _module(file: Path) -> str:
    return ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


@pytest.mark.parametrize("noun", CHOICES)
def test_registry_entries_are_imported_only_within_their_own_folder(noun: str) -> None:
    kinds = {kind.__name__: kind.__module__ for kind in REGISTERS[noun].values()}
    kinds = {name: module for name, module in kinds.items() if module.startswith("mixup_core")}
    found = {
        (_module(file), name)
        for file in CODE
        if not file.is_relative_to(ROOT / "mixup_core" / "bench")
        for module, name in _named(file)
        if name in kinds and kinds[name].startswith(module)
        and not _module(file).startswith(kinds[name].rpartition(".")[0])
    }  # fmt: skip
    allowed = DEFAULTS.get(noun, set())
    assert {
        (place, name) for place, name in found if name not in allowed | MEASURED.get(place, set())
    } == set()


def _written(noun: str) -> Iterator[type]:
    """Yield the classes of a kind from all files of its folder, except abstract ones."""
    kinds = list(REGISTERS[noun].values())
    (base,) = {b for kind in kinds for b in kind.__mro__ if "catalogue" in vars(b)}
    folders = {kind.__module__.rpartition(".")[0] for kind in kinds}
    for module in sorted(map(_module, CODE)):
        if module.rpartition(".")[0] in folders:
            for each in vars(import_module(module)).values():
                if not inspect.isclass(each) or each.__module__ != module:
                    continue
                is_abstract = inspect.isabstract(each) or not kind_name(each)
                if issubclass(each, base) and not is_abstract:
                    yield each


@pytest.mark.parametrize("noun", CHOICES)
def test_every_class_of_a_choice_is_registered(noun: str) -> None:
    found = set(_written(noun))
    assert found
    assert found - set(REGISTERS[noun].values()) == set()


def test_dataset_modules_are_imported_only_by_the_catalogue() -> None:
    sets = {path.stem for path in (ROOT / "mixup_core/images/data/sets").glob("*.py")}
    readers = {"__init__", "idx", "corrupted"}
    found = {
        (_module(file), name)
        for file in CODE
        for module, name in _named(file)
        if module == "mixup_core.images.data.sets" and name in sets - readers
    }
    assert {place for place, _ in found} == {"mixup_core.images.data.catalog"}
    assert {name for _, name in found} == sets - readers
    assert len(PUBLISHED) >= len(sets - readers)


def test_theory_modules_are_imported_outside_theory_only_by_known_figures() -> None:
    places = {str(place).partition(":")[0] for place in PROBLEMS.values()}
    theory = {place for place in places if place.startswith("mixup_core.theory")}
    outside = [file for file in CODE if not _module(file).startswith("mixup_core.theory")]
    found = {(_module(file), module) for file in outside for module, _ in _named(file)}
    assert {pair for pair in found if pair[1] in theory} == FIGURES


@cache
def _told_apart(file: Path) -> frozenset[str]:
    """Return the names of the classes in each `isinstance` or `match` of a file."""
    asked: list[ast.AST] = []
    for node in _nodes(file):
        if isinstance(node, ast.MatchClass):
            asked.append(node.cls)
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") == "isinstance":
            asked.append(node.args[1])
    return frozenset(
        part.id for each in asked for part in ast.walk(each) if isinstance(part, ast.Name)
    )


@pytest.mark.parametrize("noun", CHOICES)
def test_type_checks_on_registry_entries_occur_only_within_their_own_folder(noun: str) -> None:
    kinds = {kind.__name__: kind.__module__ for kind in REGISTERS[noun].values()}
    found = {
        (_module(file), name)
        for file in CODE
        for name in _told_apart(file)
        if name in kinds and not _module(file).startswith(kinds[name].rpartition(".")[0])
    }
    assert found == set()


def test_every_part_of_a_problem_is_exported_to_plugins() -> None:
    parts = {
        type(part.default_factory())
        for part in dataclasses.fields(Problem)
        if part.default_factory is not dataclasses.MISSING
    }
    assert len(parts) > 1
    assert {part.__name__ for part in parts} <= set(plugins.__all__)
