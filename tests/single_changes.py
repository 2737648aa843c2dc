"""Single changes: every configuration that differs from another one in the value of one path."""

from collections.abc import Iterator
from functools import cache
from typing import Any

from mixup_core.keys import run_key
from mixup_core.problem import PROBLEMS, with_named_teacher
from mixup_core.rules import RuleError
from mixup_core.tree.building import with_values
from mixup_core.tree.parts import leaves
from mixup_core.tree.possible_values import values
from mixup_core.tree.spelling_errors import SpellingError
from tests.golden.freeze_keys import keyed_study
from tests.golden.project import bundled_studies, load_study

WITNESSES: dict[str, list[dict[str, Any]]] = {
    "images": [
        {"data.pool": 1, "data.augment": "randaugment"},
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
"""Problem to values of further configurations, for paths whose single change breaks a rule of the
others."""
FIXED = {
    "entropy-floor": {"epochs"},
    "sufficiency": {"epochs", "data.views", "data.val_size", "data.oracle"},
}
"""Problem to the paths that take one value alone."""


@cache
def configurations() -> dict[str, list[Any]]:
    """Return problem to the configurations that single changes start from.

    They are those of the bundled studies and of `keyed.yaml`, the witnesses, and for each of the
    first configurations every member of every choice.
    """
    found: dict[str, list[Any]] = {name: [] for name in PROBLEMS}
    for study in [*map(load_study, bundled_studies()), keyed_study()]:
        for config in study.arms.values():
            found[config.problem].append(with_named_teacher(config))
    for name, bases in found.items():
        bases[:] = list(dict.fromkeys(bases))
        first = bases[0]
        witnesses = [with_values(first, witness) for witness in WITNESSES.get(name, [])]
        bases += witnesses
        bases += [other for base in (first, *witnesses) for other in _with_each_member(base)]
    return found


def _with_each_member(config: Any) -> Iterator[Any]:
    """Yield the configuration with each choice replaced by each of its members that is legal."""
    for path, leaf in leaves(type(config)).items():
        met = set()
        for value, other in changed(config, path) if leaf.part.options else ():
            kind = str(value.get("name", next(iter(value)))) if isinstance(value, dict) else value
            if kind not in met:
                met.add(kind)
                yield other


def changed(config: Any, path: str) -> Iterator[tuple[Any, Any]]:
    """Yield each value that a path may be changed to, and the configuration with it."""
    leaf = leaves(type(config))[path]
    whole = path.removesuffix(".name") if leaf.part.is_named else path
    members_of_choice = [v for kind in leaf.part.options.values() for v in values(kind)]
    if members_of_choice and leaf.part.is_optional:
        members_of_choice.append(None)
    for value in members_of_choice or values(leaf.part.hint):
        try:
            other = with_values(config, {whole: value})
            run_key(other)
        except (RuleError, SpellingError, KeyError):
            continue
        if other != config:
            yield value, other
