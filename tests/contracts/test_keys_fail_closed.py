"""Keys: every field of a configuration changes its keys, unless it is listed as an exception.

Tests are generated from the types of configurations. A field that no single valid change reaches
fails too; add a configuration that reaches it to `WITNESSES` in `tests/single_changes.py`.
"""

import dataclasses
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from itertools import islice
from typing import Any, get_args

import pytest
import torch

from mixup_core.config.building import built
from mixup_core.config.catalogue import catalogue_of
from mixup_core.config.parts import leaves, members, parts
from mixup_core.config.written_forms import flatten
from mixup_core.images.config import TrainConfig
from mixup_core.images.data.datasets import Splits
from mixup_core.images.objectives.objective import Guided
from mixup_core.images.training import TrainingState, fit
from mixup_core.keys import run_key, stage_keys
from mixup_core.plugins.suite import smallest
from mixup_core.problem import PROBLEMS, Teacher, problem_named, problem_of
from mixup_core.records import EpochRecord
from mixup_core.rules import RuleError
from tests.single_changes import FIXED, NEVER_MET, changed, configurations


@cache
def _keys(config: Any) -> tuple[str, str]:
    """Return the key of a run and of its last stage; each configuration is compared many times."""
    return run_key(config), stage_keys(config)[-1]


@pytest.mark.parametrize("name", PROBLEMS)
def test_every_path_not_left_out_of_keys_changes_the_run_key_and_last_stage_key(name: str) -> None:
    problem = problem_named(name)
    named = {*problem.keying.never, *problem.keying.stands_for}
    reached, moving = set(), set()
    for path in leaves(problem.config).keys() - named:
        # The last ones have each member of each choice, so that most paths move a key at once.
        for config in reversed(configurations()[name]):
            for _, other in changed(config, path):
                run, stage = _keys(config)
                assert run_key(other) != run
                reached.add(path)
                if stage_keys(other)[-1] != stage:
                    moving.add(path)
                    break
            if path in moving:
                break
    expected = leaves(problem.config).keys() - named - FIXED.get(name, set())
    assert reached == expected
    assert moving == expected


@cache
def _grown(kind: Any) -> Any:
    """Return a dataclass with one more field, as a later version might have."""
    added = [("added", int, dataclasses.field(default=0))]
    return dataclasses.make_dataclass(
        kind.__name__, added, bases=(kind,), frozen=True, kw_only=True, slots=True,
        namespace={"__module__": __name__},
    )  # fmt: skip


def _grown_at_each_node(
    node: Any, done: set[tuple[str, type]], path: str = ""
) -> Iterator[tuple[tuple[str, type], Any]]:
    """Yield each dataclass of a configuration by path and type, with a copy whose new field is set.

    Types that were already tested at the same path are left out.
    """
    if isinstance(node, tuple):
        for index, item in enumerate(node):
            for place, grown in _grown_at_each_node(item, done, path):
                yield place, (*node[:index], grown, *node[index + 1 :])
    if not dataclasses.is_dataclass(node) or isinstance(node, type):
        return
    values = {part.name: getattr(node, part.name) for part in dataclasses.fields(node)}
    if (path, type(node)) not in done:
        yield (path, type(node)), _grown(type(node))(**values, added=1)
    for name, value in values.items():
        for place, grown in _grown_at_each_node(value, done, f"{path}.{name}"):
            with suppress(RuleError):
                yield place, dataclasses.replace(node, **{name: grown})


def _kinds_below(kind: Any) -> set[Any]:
    """Return every dataclass that a value of a type may contain, including choices and lists."""
    found, left = set(), [kind]
    while left:
        hint = left.pop()
        is_node = isinstance(hint, type) and catalogue_of(hint) is None
        if is_node and dataclasses.is_dataclass(hint) and hint not in found:
            found.add(hint)
            left += [part.hint for part in parts(hint)]
        left += [each for each in (*members(hint), *get_args(hint)) if each is not hint]
    return found


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_field_added_to_any_node_of_a_configuration_changes_the_stage_keys(name: str) -> None:
    """Regression test: a new field below `mix` once changed only the run key.

    A part that has no effect, such as a law after a switch that never happens, need not change a
    key, because another configuration uses it. A field that a rule forbids in keys is accepted as
    well.
    """
    met, moving = set(), set()
    for config in configurations()[name]:
        for place, grown in _grown_at_each_node(config, moving):
            met.add(place)
            run, stage = _keys(config)
            assert run_key(grown) != run
            if stage_keys(grown)[-1] != stage:
                moving.add(place)
    assert met - moving == set()
    kinds = _kinds_below(problem_named(name).config) - {kind for _, kind in met}
    assert kinds == NEVER_MET.get(name, set())


_ARRAYS: dict[str, Any] = {"epochs": 3}
_IMAGES = {
    "data": {"name": "digits"}, "model": {"name": "mlp", "hidden": [8]}, "optimizer.lr": 0.01,
    "epochs": 3, "batch_size": 10,
}  # fmt: skip
_TEACHER = {"teacher": "erm", "teacher_key": "0" * 32}
_GUIDE = {**_TEACHER, "warm_up": 0.4, "stop": 0.7}
SMALL: dict[str, list[dict[str, Any]]] = {
    "images": [
        _IMAGES,
        _IMAGES | {"mix.law": {"beta": 0.5}},
        _IMAGES | {"mix.law": {"beta": 0.5}, "mix.switch_epoch": 1},
        _IMAGES | {"mix.switch_epoch": 1, "mix.law_after": "midpoint"},
        _IMAGES | {"mix.schedule": {"phases": [{"law": "midpoint", "until": 1}, {"beta": 0.5}]}},
        _IMAGES | {"mix.law": "midpoint", "mix.switch_fraction": 0.4, "objective": "regmixup"},
        _IMAGES | {"mix.law": "midpoint", "objective": {"filter": _GUIDE}},
        _IMAGES | {"data.oracle": True, "objective": {"failure-set": _TEACHER}},
        _IMAGES | {"lr_schedule": {"step": {"at": [1, 2]}}},
        _IMAGES | {"lr_schedule": {"warm-up": 1}},
    ],
    "support-vectors": [_ARRAYS | {"steps_per_epoch": 5}],
    "moons": [_ARRAYS | {"steps_per_epoch": 5, "resolution": 10}],
    "label-noise-bound": [_ARRAYS | {"draws": 1000}],
    "random-features": [_ARRAYS | {"points": 20, "test_points": 10}],
    "rare-features": [
        _ARRAYS | {"steps_per_epoch": 2, "dimension": 20, "points": 10} | values
        for values in (
            {},
            {"law": {"beta": 0.5}, "switch_epoch": 1},
            {"switch_epoch": 1, "law_after": "midpoint", "operation": "cutmix"},
            {"schedule": "easy", "keep": "low", "warm_up": 0.4},
        )
    ],
    "gaussian-features": [_ARRAYS | {"samples": 20}],
    "mixup-expansion": [_ARRAYS | {"first_points": 8, "rank": 2, "test_points": 20}],
}
"""Configurations of three epochs that train quickly, by problem; other problems use their smallest
configuration (`mixup_core.plugins.suite.smallest`).
"""


SELECTED = {"images-2", "linear-views-0", "rare-features-1", "two-layer-0"}
"""Configurations that `make test` trains; `make long` trains the others."""


def _small() -> dict[str, list[dict[str, Any]]]:
    closed = {name for name, fixed in FIXED.items() if "epochs" in fixed}
    others = [name for name in PROBLEMS if name not in {*SMALL, *closed}]
    return SMALL | {name: [flatten(smallest(problem_named(name)))] for name in others}


def _stages(
    config: Any, images: Splits, teacher: Teacher, epochs: int = 3
) -> list[tuple[EpochRecord, bytes]]:
    """Return record and state of each of the first epochs of a run."""
    if not isinstance(config, TrainConfig):
        process = problem_of(config).start(config, None, "cpu")
        return [(record, process.to_bytes()) for record in islice(process, epochs)]
    state = TrainingState.initial(config, images.info, torch.device("cpu"))
    guide = teacher if isinstance(config.objective, Guided) else None
    records = fit(config, images, state, teacher=guide)
    return [(record, state.to_bytes()) for record in islice(records, epochs)]


@pytest.mark.parametrize(
    ("name", "values"),
    [
        pytest.param(
            name,
            values,
            id=f"{name}-{number}",
            marks=[] if f"{name}-{number}" in SELECTED else [pytest.mark.long],
        )
        for name, bases in _small().items()
        for number, values in enumerate(bases)
    ],
)
def test_equal_stage_keys_imply_equal_records_and_state_bytes(
    name: str, values: dict[str, Any], digits: Splits, teacher: Teacher
) -> None:
    compared = 0
    config = built(problem_named(name).config, values)
    own, records = stage_keys(config), _stages(config, digits, teacher)
    for path in leaves(type(config)):
        for value, other in changed(config, path):
            shared = sum(a == b for a, b in zip(own, stage_keys(other), strict=False))
            if not shared:
                continue
            try:
                theirs = _stages(other, digits, teacher, shared)[-1]
            except RuleError:  # it does not fit the data or the teacher
                continue
            assert records[shared - 1] == theirs, (path, value)
            compared += 1
    assert compared
