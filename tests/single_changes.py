"""Single changes: configurations that differ from a given one in the value of one field."""

from collections.abc import Iterator
from dataclasses import is_dataclass
from functools import cache
from typing import Any, get_args, get_origin

from mixup_core.config.building import with_values
from mixup_core.config.parts import leaves, members, unmarked
from mixup_core.config.written_forms import SpellingError, flatten, possible_values
from mixup_core.keys import run_key
from mixup_core.laws import Erm
from mixup_core.plugins.suite import smallest
from mixup_core.problem import PROBLEMS, problem_named, with_named_teacher
from mixup_core.rules import RuleError
from tests.bundled import bundled
from tests.golden.freeze_keys import keyed_study
from tests.golden.project import bundled_names

WITNESSES: dict[str, list[dict[str, Any]]] = {
    "images": [
        {"data.folds": 3, "data.fold": 1},
        {
            "mix.law": {"beta": 0.5},
            "mix.second": "cutmix",
            "mix.second_law": {"beta": 2.0},
            "mix.label_law": {"beta": 2.0},
        },
        {"mix.schedule": {"phases": [{"law": "midpoint", "until": 1}, {"beta": 0.5}]}},
        {"mix.law": {"beta": 0.5}, "mix.switch_epoch": 1, "mix.law_after": {"beta": 2.0}},
    ],
    "support-vectors": [{"nodes": 8}],
    "rare-features": [{"law": {"beta": 0.5}, "switch_epoch": 1, "law_after": {"beta": 2.0}}],
    "sufficiency": [
        {"data.train_fraction": None, "data.num_train": 100},
        {
            "data": {"name": "image-folder", "folder": "photos", "image_size": 16, "digest": "0"},
        },
    ],
}
"""Additional configurations by problem, for fields that cannot be changed alone in the others."""
NEVER_MET: dict[str, set[Any]] = {"sufficiency": {Erm}}
"""Dataclasses that a rule of the problem always refuses, by problem."""
FIXED = {
    "entropy-floor": {"epochs"},
    "sufficiency": {
        "epochs",
        "data.views",
        "data.val_size",
        "data.folds",
        "data.fold",
        "data.oracle",
    },
}
"""Fields that have only one valid value, by problem."""


@cache
def configurations() -> dict[str, list[Any]]:
    """Return the configurations from which single changes start, by problem.

    These are the configurations of the bundled studies and of `keyed.yaml`, the witnesses, and for
    each of the first configurations every member of every choice.
    """
    found: dict[str, list[Any]] = {name: [] for name in PROBLEMS}
    for study in [*map(bundled, bundled_names()), keyed_study()]:
        for config in study.arms.values():
            found[config.problem].append(with_named_teacher(config))
    for name, bases in found.items():
        bases[:] = list(dict.fromkeys(bases)) or [smallest(problem_named(name))]
        first = bases[0]
        witnesses = [with_values(first, witness) for witness in WITNESSES.get(name, [])]
        bases += witnesses
        bases += [other for base in (first, *witnesses) for other in _with_each_member(base)]
    return found


def _with_each_member(config: Any) -> Iterator[Any]:
    """Yield the configuration with each choice replaced by each valid member.

    A list of choices gets each member alone.
    """
    for path, leaf in leaves(type(config)).items():
        met = set()
        for hint in (unmarked(leaf.part.hint), *get_args(leaf.part.hint)):
            if get_origin(hint) is tuple and is_dataclass(members(get_args(hint)[0])[0]):
                lists = ((value, other) for value, other in changed(config, path) if value)
                yield from (other for value, other in lists if len(value) == 1)
        for value, other in changed(config, path) if leaf.part.options else ():
            kind = str(value.get("name", next(iter(value)))) if isinstance(value, dict) else value
            if kind not in met:
                met.add(kind)
                yield other


@cache
def _paths(config: Any) -> frozenset[str]:
    return frozenset(flatten(config))


def changed(config: Any, path: str) -> Iterator[tuple[Any, Any]]:
    """Yield each possible new value of a field, and the configuration with it."""
    if path not in _paths(config):  # a field of another kind, or of a choice that is not set
        return
    leaf = leaves(type(config))[path]
    whole = path.removesuffix(".name") if leaf.part.is_named else path
    members_of_choice = [v for kind in leaf.part.options.values() for v in possible_values(kind)]
    if members_of_choice and leaf.part.is_optional:
        members_of_choice.append(None)
    for value in members_of_choice or possible_values(leaf.part.hint):
        try:
            other = with_values(config, {whole: value})
            run_key(other)
        except (RuleError, SpellingError, KeyError):
            continue
        if other != config:
            yield value, other
