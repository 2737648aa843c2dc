"""Examples in docstrings: every public name has one in the form of doctest, and all of them work.

Public names are those of `mixsweep`, of `mixsweep.plugins` and of the page `python-api.md`, with
the methods and properties of their classes, and the classes that study files name.
"""

import ast
import doctest
import inspect
import io
import re
import sys
from collections.abc import Iterator
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import pytest
import yaml

import mixsweep
from mixsweep import plugins
from mixsweep.cli.report import dataclasses_in
from mixup_core.config.catalogue import Catalogue
from mixup_core.config.parts import members
from mixup_core.images.choices.optimizers import Averaging, LrSchedule
from mixup_core.images.config import TrainConfig
from mixup_core.images.losses import Loss
from mixup_core.images.training import fit
from mixup_core.laws.schedules import Schedule
from mixup_core.mixing.partners import Partner
from mixup_core.plugins.stand_ins import REGISTERS

PACKAGES = ("mixsweep", "mixup_core")
METHODS = (FunctionType, classmethod, staticmethod, property, cached_property)
UNIONS = (Schedule, LrSchedule, Averaging, Partner, Loss)
CHOICES = {
    f"{kind.__module__}.{kind.__qualname__}": kind
    for kinds in (
        *(kinds.values() for kinds in REGISTERS.values() if isinstance(kinds, Catalogue)),
        *map(members, UNIONS),
    )
    for kind in kinds
    if kind.__module__.startswith("mixup_core")
}
"""Classes that study files name, such as laws, by full name."""


def _docstrings() -> Iterator[tuple[str, str]]:
    """Yield the full name and the docstring of every public name."""
    for module in (mixsweep, plugins):
        yield module.__name__, inspect.cleandoc(module.__doc__ or "")
        for name in module.__all__:
            value = getattr(module, name)
            if isinstance(value, type | FunctionType):
                yield from _of_object(value)
            else:
                yield _of_assignment(module, name)
    for value in (TrainConfig, fit):
        yield from _of_object(value)
    for name, kind in CHOICES.items():
        yield name, inspect.cleandoc(kind.__doc__ or "")


def _of_object(value: type | FunctionType) -> Iterator[tuple[str, str]]:
    """Yield the docstring of a function, or those of a class and its methods and properties."""
    yield f"{value.__module__}.{value.__qualname__}", inspect.cleandoc(value.__doc__ or "")
    for kind in value.__mro__ if isinstance(value, type) else ():
        if kind.__module__.startswith(PACKAGES):
            for name, member in vars(kind).items():
                is_newest = member is inspect.getattr_static(value, name)
                if is_newest and isinstance(member, METHODS) and not name.startswith("_"):
                    text = inspect.cleandoc(member.__doc__ or "")
                    if not text and any(name in vars(base) for base in kind.__mro__[1:]):
                        continue  # the base documents it
                    yield f"{kind.__module__}.{kind.__qualname__}.{name}", text


def _of_assignment(module: ModuleType, name: str) -> tuple[str, str]:
    """Return the text below the assignment of a type alias, in the module that contains it."""
    body = ast.parse(inspect.getsource(module)).body
    for node, after in pairwise(body):
        match node, after:
            case ast.Assign(targets=[ast.Name(id=found)]), ast.Expr(ast.Constant(str(text))):
                if found == name:
                    return f"{module.__name__}.{name}", inspect.cleandoc(text)
    for node in body:
        if isinstance(node, ast.ImportFrom) and name in {alias.name for alias in node.names}:
            return _of_assignment(sys.modules[str(node.module)], name)
    return f"{module.__name__}.{name}", ""


DOCSTRINGS = dict(_docstrings())
TRAINS = "mixsweep.api.run"
"""Function whose example trains a study; other examples load its results."""
LOADS = [name for name, text in DOCSTRINGS.items() if 'home="runs"' in text]


def _run(name: str) -> None:
    variables: dict[str, Any] = {"__name__": "__main__"}
    example = doctest.DocTestParser().get_doctest(DOCSTRINGS[name], variables, name, None, 0)
    report = io.StringIO()
    doctest.DocTestRunner(verbose=False).run(example, out=report.write)
    assert not report.getvalue(), report.getvalue()


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder in which the example of `mixsweep.run` was run."""
    folder = tmp_path_factory.mktemp("examples")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        _run(TRAINS)
    return folder


def test_every_public_name_has_an_example() -> None:
    for name in DOCSTRINGS:
        section = re.search(r"^Example:\n((?:    .*\n?|\n)+)", DOCSTRINGS[name], re.MULTILINE)
        assert section is not None, name
        assert doctest.DocTestParser().get_examples(section[1]), name


@pytest.mark.parametrize("name", LOADS)
def test_an_example_of_stored_results_works(
    name: str, trained: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(trained)
    _run(name)
    assert [path.name for path in trained.iterdir()] == ["runs"]


@pytest.mark.usefixtures("plugin")
@pytest.mark.parametrize("name", [name for name in DOCSTRINGS if name not in LOADS])
def test_an_example_works_and_leaves_no_file(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    _run(name)
    assert not list(tmp_path.iterdir())


def test_an_example_in_the_form_of_a_study_file_selects_its_class() -> None:
    for name in CHOICES:
        text = " ".join(DOCSTRINGS[name].split())
        (settings,) = re.findall(r"Example: In a study file: ((?:`[^`]+`(?:, )?)+)\. >>>", text)
        pairs = [setting.partition(": ") for setting in re.findall("`([^`]+)`", settings)]
        base = {"data": {"name": "digits"}, "model": {"name": "mlp"}, "epochs": 10, "batch_size": 8}
        arm = {path: yaml.safe_load(value) for path, _, value in pairs}
        arms = {"erm": {"batch_size": 4}, "example": arm}
        study = mixsweep.read_study({"study": "one", "base": base, "arms": arms, "seeds": 1})
        assert CHOICES[name] in set(map(type, dataclasses_in(study.arms["example"]))), name
