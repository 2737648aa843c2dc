"""problem_checks: the checks that a problem of a plugin must pass."""

import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from mixup_core.config.building import built, with_values
from mixup_core.config.parts import leaves
from mixup_core.config.possible_values import spellings, values
from mixup_core.config.spelling_errors import SpellingError
from mixup_core.config.written_forms import flatten
from mixup_core.keys import run_key, stage_keys
from mixup_core.plugins.extremes import require_ranges
from mixup_core.plugins.findings import BrokenError, Checks
from mixup_core.plugins.own_draws import require_own_draws
from mixup_core.plugins.value_checks import require_possible
from mixup_core.problem import Problem
from mixup_core.records import EpochRecord
from mixup_core.rules import RuleError

_EPOCHS = 3
_MOST_TRAINED = 3
"""Maximum number of values per path that are trained to compare results under equal stage keys."""

Stages = list[tuple[EpochRecord, bytes]]
"""Record of each epoch, with the state after it."""


def checks_of_problem(problem: Problem) -> Checks:
    """Yield the checks of a plugin's problem: pairs of a statement and a function that tests it."""
    config = smallest(problem)
    if problem.data is not None:
        needs = problem.data()
        config = needs.prepare(config, Path.cwd())
        if missing := needs.missing(config):
            yield f"not checked: {missing}", lambda: None
            return
    yield (
        "every field of numbers has a range",
        lambda: require_ranges(problem.config),
    )
    yield (
        "its configuration is unchanged after it is written and read back",
        lambda: _written(config),
    )
    yield (
        "changing a field changes the keys of the results it affects",
        lambda: _keyed(problem, config),
    )
    yield "numbers do not depend on global random generators", lambda: _seeded(problem, config)
    yield (
        "a run resumed after any epoch ends with equal bits",
        lambda: _resumed(problem, config),
    )
    yield "it records the metrics that it declares", lambda: _declared(problem, config)
    yield "recorded values are within their bounds", lambda: _possible(problem, config)
    yield "time per epoch", lambda: _timed(problem, config)


def smallest(problem: Problem) -> Any:
    """Return a valid configuration of a problem, with few epochs if possible.

    Three epochs are tried first, then two, then the number of epochs that the configuration has by
    default or in its class variable `example`.

    Raises:
        BrokenError: If none of the configurations that are tried is valid.
    """
    for epochs in ({"epochs": _EPOCHS}, {"epochs": 2}, {}):
        for given in spellings(problem.config):
            with suppress(RuleError, SpellingError, KeyError):
                config: Any = built(problem.config, {**given, **epochs})
                if not any(True for _ in problem.reading.feasibility(config)):
                    return config
    raise BrokenError(
        f"no configuration of {problem.config.__name__} is valid; give the class a class variable "
        "`example` with valid values of its required fields"
    )


def _written(config: Any) -> None:
    if built(type(config), flatten(config)) != config:
        raise BrokenError(
            f"the configuration {flatten(config)} changes when it is written and read back"
        )


def _keyed(problem: Problem, config: Any) -> str:
    """Check that each field of a configuration changes the keys of the results that it changes.

    Another value of a field must change the run key. Results under equal stage keys must be equal.

    Raises:
        BrokenError: If a field breaks a rule, or has only one valid value.
    """
    named = {*problem.keying.never, *problem.keying.stands_for}
    known = leaves(problem.config)
    choices = [path for path, leaf in known.items() if leaf.part.options]
    bases = [config, *(other for path in choices for other in _others(config, path))]
    for path in sorted(known.keys() - named):
        tried = ((base, list(_others(base, path))) for base in bases)
        base, others = next((pair for pair in tried if pair[1]), (config, []))
        if not others and len(set(map(repr, values(known[path].part.hint)))) > 1:
            raise BrokenError(
                f"found only one valid value of `{path}`, but the check must change it; "
                "widen the limits in its type"
            )
        if any(run_key(other) == run_key(base) for other in others):
            raise BrokenError(
                f"runs that differ in `{path}` have the same key, so the store would give one run "
                "the results of the other"
            )
        _compare(problem, base, path, others)
    return f" ({len(known.keys() - named)} paths)"


def _compare(problem: Problem, config: Any, path: str, others: list[Any]) -> None:
    own, compared = stage_keys(config), 0
    for other in others:
        theirs = stage_keys(other)
        shared = sum(a == b for a, b in zip(own, theirs, strict=False))
        if not shared or compared == _MOST_TRAINED:
            continue
        compared += 1
        if _trained(problem, other)[shared - 1] != _trained(problem, config)[shared - 1]:
            raise BrokenError(
                f"changing `{path}` changes the results of epoch {shared} but not its stage key: "
                "`Keying.of_epoch` must return every setting that an epoch depends on"
            )


def _others(config: Any, path: str) -> Iterator[Any]:
    """Yield valid configurations that differ from `config` only in the field at `path`."""
    part = leaves(type(config))[path].part
    whole = path.removesuffix(".name") if part.is_named else path
    kinds = [value for kind in part.options.values() for value in spellings(kind)]
    for value in kinds or values(part.hint):
        with suppress(RuleError, SpellingError, KeyError):
            other = with_values(config, {whole: value})
            if other != config:
                yield other


def _trained(problem: Problem, config: Any) -> Stages:
    process = problem.start(config, None, "cpu")
    return [(record, process.to_bytes()) for record in process]


def _seeded(problem: Problem, config: Any) -> None:
    require_own_draws(lambda: _trained(problem, config))


def _resumed(problem: Problem, config: Any) -> None:
    whole = _trained(problem, config)
    for epoch in range(1, len(whole)):
        content = whole[epoch - 1][1]
        process = problem.start(config, None, "cpu")
        process.load_bytes(content, [record for record, _ in whole[:epoch]])
        if process.to_bytes() != content:
            raise BrokenError(
                f"the state after epoch {epoch} changes when it is written and read back"
            )
        if [(record, process.to_bytes()) for record in process] != whole[epoch:]:
            raise BrokenError(
                f"a run resumed after epoch {epoch} gives other results than an uninterrupted run: "
                "`to_bytes` must return all of its state"
            )


def _declared(problem: Problem, config: Any) -> str:
    records = [record for record, _ in _trained(problem, config)]
    if len(records) != config.epochs:
        raise BrokenError(
            f"a run of {config.epochs} epochs yielded {len(records)} records; yield one per epoch"
        )
    names = {name for record in records for name in record.metrics}
    heads = tuple(f"{series.head}/" for series in problem.presentation.series)
    unknown = [n for n in sorted(names - problem.metrics.keys()) if not n.startswith(heads)]
    if unknown:
        raise BrokenError(
            f"records metrics that its `metrics` does not declare: {', '.join(unknown)}"
        )
    if names.isdisjoint(problem.headline):
        raise BrokenError(f"none of the headline metrics {', '.join(problem.headline)} is recorded")
    return f" ({', '.join(sorted(names))})"


def _possible(problem: Problem, config: Any) -> None:
    require_possible((record for record, _ in _trained(problem, config)), problem.metrics)


def _timed(problem: Problem, config: Any) -> str:
    started = time.perf_counter()
    count = len(_trained(problem, config))
    return f": {(time.perf_counter() - started) / count * 1e3:.1f} ms of {flatten(config)}"
