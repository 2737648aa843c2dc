"""Keys: names of runs and stages, which are hashes of everything that changes their numbers."""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, is_dataclass
from dataclasses import fields as dataclass_fields
from functools import lru_cache
from itertools import groupby
from operator import attrgetter
from typing import Any

from mixup_core.config.catalogue import cached_until_growth, kind_name, origin_of
from mixup_core.config.parts import REQUIRED, parts
from mixup_core.config.written_forms import defaults, flatten, spelled
from mixup_core.problem import PROBLEMS, Config, Keying, problem_named, problem_of
from mixup_core.rules import RuleError

NUMERICS_VERSION = 1
"""Version of the computations of all problems. It is part of every key: raise it when results
change, so that old results are not reused.
"""


def run_key(config: Config) -> str:
    """Return the name of a run: a hash of all settings that change its numbers."""
    return _hashed(config, _content_of(config).of_run)


def stage_key(config: Config, epoch: int) -> str:
    """Return the stage key of a run's first `epoch` epochs; equal keys mean equal results of them.

    Every field of the configuration enters each stage key, unless the problem's rules for keys
    (`Keying`) list the path of the field. Settings that change from epoch to epoch, such as the
    law, enter epoch by epoch: a run that mixes for 10 epochs and one that mixes for 20 have equal
    keys up to epoch 10. The total number of epochs enters only if the settings of an epoch depend
    on it.
    """
    if not 1 <= epoch <= config.epochs:
        raise RuleError("1 <= epoch <= epochs", {"epoch": epoch, "epochs": config.epochs})
    return stage_keys(config)[epoch - 1]


def stage_keys(config: Config) -> tuple[str, ...]:
    """Return the stage keys of a run after 1, 2, ... epochs; the last one is for the whole run."""
    content = _content_of(config)
    key = _hashed(config, content.of_stages)
    keys = []
    for decided in _spelled_epochs(content.at_any_seed):
        key = hashlib.sha256(f"{key} {decided}".encode()).hexdigest()[:32]
        keys.append(key)
    return tuple(keys)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Content:
    """The values of a configuration that are hashed into its keys, all but the seed."""

    of_run: Mapping[str, Any]
    of_stages: Mapping[str, Any]
    has_seed: Callable[[int], bool]
    """Returns True if a seed enters the keys: it is not excluded, and differs from the default."""
    at_any_seed: Any


def _content_of(config: Config) -> _Content:
    """Return the values that are hashed into the keys of a configuration, cached for all seeds."""
    kind: Any = type(config)
    fields = tuple(field.name for field in dataclass_fields(kind) if field.init)
    return _content(kind, fields, tuple(getattr(config, n) for n in fields if n != "seed"))


@cached_until_growth
def _content(kind: Any, fields: tuple[str, ...], values: tuple[Any, ...]) -> _Content:
    given = zip((name for name in fields if name != "seed"), values, strict=True)
    config = kind(**dict(given), seed=0)
    keying = problem_of(config).keying
    whole = _keyed(config)
    stages = {}
    for path, value in whole.items():
        if path == "epochs":
            continue
        if not keying.covers(path):
            stages[path] = value
        elif rest := _beyond(config, path, keying):
            stages[path] = rest
    usual = REQUIRED if "seed" in keying.first else defaults(config)["seed"]
    enters = "seed" not in keying.never and "seed" not in keying.stands_for
    return _Content(
        of_run=_with_one_spelling({p: v for p, v in whole.items() if p != "seed"}),
        of_stages=_with_one_spelling({p: v for p, v in stages.items() if p != "seed"}),
        has_seed=lambda seed: enters and seed != usual,
        at_any_seed=config,
    )


@lru_cache(maxsize=128)
def _spelled_epochs(config: Config) -> tuple[str, ...]:
    """Return the per-epoch settings of each epoch as JSON, for stage keys; equal for every seed."""
    keying = problem_of(config).keying
    decided = (keying.of_epoch(config, epoch) for epoch in range(config.epochs))
    found = list[str]()
    for now, epochs in groupby(decided):
        text = json.dumps(_with_one_spelling(now), sort_keys=True, allow_nan=False)
        found += [text for _ in epochs]
    return tuple(found)


def changes(config: Config) -> tuple[int, ...]:
    """Return the epochs (0-based) from which on a run has other settings, such as another law."""
    of_epoch = problem_of(config).keying.of_epoch
    decided = [of_epoch(config, epoch) for epoch in range(config.epochs)]
    return tuple(e for e in range(1, len(decided)) if decided[e] != decided[e - 1])


def paths_left_out() -> Iterator[tuple[str, str, str, str]]:
    """Yield (problem, path, keys, reason) for each configuration field that some keys leave out.

    `path` is the dotted path of the field, `keys` names the keys that lack it. Every other field
    enters the run key and all stage keys.
    """
    for name in PROBLEMS:
        for path, left, reason in problem_named(name).keying.left_out():
            yield name, path, left, reason


def _beyond(config: Config, path: str, keying: Keying) -> tuple[Any, ...]:
    """Return the fields of list items that enter stage keys as a whole, and not epoch by epoch."""
    items = attrgetter(path)(config) if keying.names_below(path) else ()
    if not isinstance(items, tuple):
        return ()
    rest = tuple(dict(_fields_beyond(item, path, keying)) for item in items)
    return rest if any(rest) else ()


def _fields_beyond(item: Any, path: str, keying: Keying) -> Iterator[tuple[str, Any]]:
    if not is_dataclass(item) or kind_name(type(item)):
        return
    for part in parts(item.__class__):
        value = getattr(item, part.name)
        if value != part.default and not keying.covers(f"{path}.{part.name}"):
            yield part.name, spelled(value, brief=True)


def _keyed(config: Config) -> dict[str, Any]:
    """Return the values in a run key, by path: required ones, and those not at a default."""
    keying = problem_of(config).keying
    flat, usual = flatten(config, brief=True), defaults(config)
    for path, stand_in in keying.stands_for.items():
        if flat.get(path) is not None and flat.get(stand_in) is None:
            rule = f"{path} needs {stand_in}, which replaces {path} in keys"
            raise RuleError(rule, {path: flat[path], stand_in: None})
    keyed = dict(keying.first)
    for path, value in flat.items():
        if path in keying.never or path in keying.stands_for:
            continue
        if path in keyed or value != usual[path]:
            keyed[path] = value
    return keyed


def _hashed(config: Config, content: Mapping[str, Any]) -> str:
    """Return a key: the hash of the given values, the versions, and the seed if it enters."""
    keying = problem_of(config).keying
    own = dict(content)
    if _content_of(config).has_seed(config.seed):
        own["seed"] = config.seed
    hashed: dict[str, Any] = {"numerics": NUMERICS_VERSION, "config": own}
    if (origin := origin_of(type(config))) is not None:
        hashed["problem"] = origin.keyed(config.problem)
    elif keying.is_named:
        hashed["problem"] = config.problem
    if corrections := keying.corrected(config):
        hashed["corrections"] = corrections
    # Frozen: what this returns for old configurations, because keys depend on it. After a change,
    # stored results are not found; tests/golden/test_keys.py fails.
    text = json.dumps(hashed, sort_keys=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _with_one_spelling(value: Any) -> Any:
    """Return the value with whole floats as ints (1.0 as 1), so that equal numbers hash equally."""
    match value:
        case float() if value.is_integer():
            return int(value)
        case dict():
            return {key: _with_one_spelling(part) for key, part in value.items()}
        case list() | tuple():
            return [_with_one_spelling(part) for part in value]
        case _:
            return value
