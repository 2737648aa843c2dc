"""Checking: tests that the models, laws, ... of a plugin behave like the built-in ones.

`mixsweep check` calls `check_plugin`. It trains runs of a few epochs on tiny made-up images.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from types import MappingProxyType
from typing import Any, get_args, get_origin

import torch

from mixup_core.config.building import built, parsed, with_values
from mixup_core.config.catalogue import catalogue_of, kind_name
from mixup_core.config.parts import leaves, members, unmarked
from mixup_core.config.possible_values import spellings, values
from mixup_core.config.spelling_errors import SpellingError
from mixup_core.config.written_forms import flatten
from mixup_core.contracts import ContractError
from mixup_core.images.config import TrainConfig
from mixup_core.images.data.facts import Dataset
from mixup_core.images.objectives.guided import Guided
from mixup_core.images.probes.probe import Probe
from mixup_core.images.problem import IMAGES
from mixup_core.images.run_settings import Planned
from mixup_core.images.training import TrainingState
from mixup_core.keys import run_key, stage_keys
from mixup_core.plugins.dataset_checks import checks_of_dataset, pixels_of
from mixup_core.plugins.extremes import extremes, require_ranges
from mixup_core.plugins.findings import BaselessError, BrokenError, Checks, Finding, findings
from mixup_core.plugins.loading import Plugin, loaded_again
from mixup_core.plugins.member_contracts import AT_ENDS, MEMBER_CONTRACTS
from mixup_core.plugins.own_draws import require_own_draws
from mixup_core.plugins.problem_checks import checks_of_problem
from mixup_core.plugins.trial_runs import (
    BASE,
    INFO,
    followed,
    made_up_images,
    made_up_teacher,
    seconds_per_epoch,
    trained,
)
from mixup_core.plugins.value_checks import require_no_effect, require_possible
from mixup_core.problem import DivergedError, Problem
from mixup_core.rules import RuleError

_MOST_TRAINED = 3
"""Maximum number of values per field that are trained to compare results under equal stage keys."""


def check_plugin(plugin: Plugin) -> Iterator[Finding]:
    """Run all checks of the entries (models, laws, ...) that a plugin adds; yield each result."""
    is_whole = True
    for register, entry in plugin.entries:
        name = f"{register.noun} {kind_name(entry)}"
        try:
            checks: Checks = list(_checks_of(register.noun, entry))
        except (BrokenError, RuleError) as error:
            yield Finding(entry=name, contract="it can be checked", broken=str(error))
            is_whole = False
            continue
        for finding in findings(name, checks):
            yield finding
            is_whole &= not finding.broken
    if is_whole and plugin.source.content is not None:
        contract = "loading the plugin again gives the same results"
        yield from findings(plugin.source.name, [(contract, lambda: _loaded_again(plugin))])


def _loaded_again(plugin: Plugin) -> None:
    first = [_result(entry) for _, entry in plugin.entries]
    if [_result(entry) for _, entry in loaded_again(plugin).entries] != first:
        raise BrokenError(
            "a second load gives other results: the file reads something when it is "
            "imported, such as the time or a random number"
        )


def _result(entry: Any) -> object:
    """Return an entry's results, to compare two loads of it: pixels, or the final state of a run.

    The result is None for problems, and for datasets that are not on this machine.
    """
    if isinstance(entry, Dataset):
        return pixels_of(entry)
    return None if isinstance(entry, Problem) else trained(_usual(entry)[0])[-1]


def _checks_of(noun: str, entry: Any) -> Checks:
    if isinstance(entry, Problem):
        return checks_of_problem(entry)
    if isinstance(entry, Dataset):
        return checks_of_dataset(built(TrainConfig, {**BASE, "data.name": entry.name, "epochs": 1}))
    return checks_of_member(noun, entry)


def checks_of_member(
    noun: str, kind: Any, *, spelling: Any = None, values: Mapping[str, Any] = MappingProxyType({})
) -> Checks:
    """Yield the checks of a registered class, such as a probe, that image runs can use.

    A check is a pair: a statement, such as `it trains`, and a function that checks the statement.

    Args:
        noun: Noun of the registry of the class, for example `probe`.
        kind: The class, built in or of a plugin.
        spelling: An instance of the class as written in a study file; None for the shortest one.
        values: Values to set in the checked configuration because the class needs them, by dotted
            path: `{"data.label_noise": 0.5}` for a probe of wrong labels.
    """
    yield "every field of numbers has a range", lambda: require_ranges(kind)
    config, path, member = _usual(kind, spelling)
    config = with_values(config, values)
    yield "it is unchanged after it is written and read back", lambda: _written(config)
    yield (
        "changing a field changes the keys of the results it affects",
        lambda: _keyed(config, path, member),
    )
    if noun in MEMBER_CONTRACTS:
        contract, check = MEMBER_CONTRACTS[noun]
        yield contract, lambda: check(member)
    if isinstance(member, Probe):
        yield "its values are finite numbers", lambda: _finite(config)
    yield "it trains", lambda: _batches(config, 16)
    yield "it works at the ends of the ranges of its fields", lambda: _at_ends(config, path, member)
    yield "numbers do not depend on global random generators", lambda: _seeded(config)
    yield "a run resumed after any epoch ends with equal bits", lambda: _resumed(config)
    yield "it trains with other batch sizes", lambda: _batches(config, 7, INFO.num_train)
    yield "no test image is seen in training", lambda: _blind(config)
    if isinstance(member, Probe):
        yield "measuring does not change the run", lambda: _harmless(config)
    yield "it records the metrics that it declares", lambda: _declared(config, member)
    yield "recorded values are within their bounds", lambda: _possible(config, member)
    yield "it trains without test images", lambda: _without_test(config)
    yield "time per epoch", lambda: _timed(config)


def _usual(kind: Any, spelling: Any = None) -> tuple[TrainConfig, str, Any]:
    """Return a configuration that uses a plugin's class, the path of its field, and its value."""
    path, member = _place(kind), _first_valid(kind, [spelling] if spelling else spellings(kind))
    if isinstance(member, Guided):
        member = replace(member, teacher_key=stage_keys(made_up_teacher().config)[-1])
    return _with(built(TrainConfig, BASE), path, member), path, member


def _first_valid(kind: Any, written: list[Any]) -> Any:
    """Return an instance of a class from the first of some notations that breaks no rule.

    Raises:
        RuleError: If all break one.
    """
    for spelling in written[:-1]:
        with suppress(RuleError, SpellingError):
            return parsed(kind, spelling)
    return parsed(kind, written[-1])


def _place(kind: Any) -> str:
    """Return the path of the first configuration field that can hold an instance of a class.

    Raises:
        BrokenError: If no field can.
    """
    for path, leaf in leaves(TrainConfig).items():
        if kind in leaf.part.options.values():
            return path.removesuffix(".name") if leaf.part.is_named else path
        hint = unmarked(leaf.part.hint)
        if get_origin(hint) is tuple and kind in members(get_args(hint)[0]):
            return path
    raise BrokenError(
        f"no field of a training configuration accepts a plugin of type {kind.__name__}"
    )


def _with(config: TrainConfig, path: str, member: Any) -> TrainConfig:
    """Return a configuration with `member` at `path`, and the data views that `member` needs."""
    is_list = path not in leaves(TrainConfig) or not leaves(TrainConfig)[path].part.options
    is_list = is_list and f"{path}.name" not in leaves(TrainConfig)
    views = getattr(member, "views", None)
    return with_values(
        config,
        {path: (member,) if is_list else member} | ({"data.views": views} if views else {}),
    )


def _written(config: TrainConfig) -> None:
    if built(TrainConfig, flatten(config)) != config:
        raise BrokenError(
            f"the configuration {flatten(config)} changes when it is written and read back"
        )


def _keyed(config: TrainConfig, path: str, member: Any) -> str:
    """Check that each field of a member changes the keys of the results that it changes.

    Another value of a field must change the run key. If it does not change a stage key, the trained
    weights must be equal, bit for bit.

    Raises:
        BrokenError: If a field breaks a rule, or has only one valid value.
    """
    fields = leaves(type(member))
    for field, leaf in fields.items():
        has_one_value = len(leaf.part.options) == 1 and not leaf.part.is_optional
        has_one_value |= field == "every" and getattr(member, "is_of_evaluation", False)
        if has_one_value or f"{path}.{field}" in IMAGES.keying.stands_for:
            continue
        pairs = list(_pairs(config, path, member, field))
        if not pairs:
            raise BrokenError(
                f"found only one valid value of `{field}`, but the check must change it; "
                "widen the limits in its type"
            )
        same = [pair for pair in pairs if len({stage_keys(each)[-1] for each in pair}) == 1]
        if len(same) == len(pairs) or any(run_key(one) == run_key(other) for one, other in pairs):
            raise BrokenError(f"changing `{field}` does not change the last stage key")
        for one, other in same[:_MOST_TRAINED]:
            if trained(other)[-1] != trained(one)[-1]:
                raise BrokenError(
                    f"changing `{field}` changes the weights but no stage key: `in_epoch` must "
                    "return every field on which an epoch depends"
                )
    return f" ({len(fields)} {'field' if len(fields) == 1 else 'fields'})"


def _pairs(
    config: TrainConfig, path: str, member: Any, field: str
) -> Iterator[tuple[TrainConfig, TrainConfig]]:
    """Yield pairs of configurations that differ only in one field of a member."""
    part = leaves(type(member))[field].part
    whole = field.removesuffix(".name") if part.is_named else field
    of_choice = [value for kind in part.options.values() for value in spellings(kind)]
    for base in _with_each_choice(member, field):
        for value in of_choice or values(part.hint):
            try:
                one, other = (
                    _with(config, path, base),
                    _with(config, path, with_values(base, {whole: value})),
                )
                run_key(other)
            except (RuleError, SpellingError, KeyError):
                continue
            if other != one:
                yield one, other


def _with_each_choice(member: Any, field: str) -> Iterator[Any]:
    """Yield a member, then its variants with other options of the fields that contain `field`."""
    yield member
    for path, leaf in leaves(type(member)).items():
        whole = path.removesuffix(".name") if leaf.part.is_named else path
        for kind in leaf.part.options.values() if field.startswith(f"{whole}.") else ():
            for spelling in spellings(kind):
                with suppress(RuleError, SpellingError):
                    yield with_values(member, {whole: spelling})


def _seeded(config: TrainConfig) -> None:
    require_own_draws(lambda: trained(config)[-1])


def _resumed(config: TrainConfig) -> None:
    whole = trained(config)
    for epoch in range(1, config.epochs):
        content, records = whole[epoch - 1]
        state = TrainingState.initial(config, INFO, torch.device("cpu"))
        state.load_bytes(content, records)
        if state.to_bytes() != content:
            raise BrokenError(
                f"the state after epoch {epoch} changes when it is written and read back"
            )
        if trained(config, resume=state)[-1] != whole[-1]:
            raise BrokenError(
                f"a run resumed after epoch {epoch} ends with other weights than an uninterrupted "
                "run: some state is kept outside of the network and the optimizer"
            )


def _batches(config: TrainConfig, *sizes: int) -> None:
    for size in sizes:
        trained(replace(config, epochs=1, batch_size=size))


def _at_ends(config: TrainConfig, path: str, member: Any) -> None:
    """Check a law, operation, ... with each of its fields at the ends of its range.

    Raises:
        BrokenError: If a contract is broken there.
    """
    noun = _noun(member)
    for field, value, is_bound in extremes(type(member)):
        if noun == "model" and isinstance(value, int | float) and value > _LARGEST:
            continue
        try:
            at_end = with_values(member, {field: value})
            if noun in AT_ENDS:
                AT_ENDS[noun](at_end)
            trained(with_values(_with(config, path, at_end), {"epochs": 1, "eval_every": 1}))
        except DivergedError:
            pass
        except (BrokenError, ContractError) as error:
            raise BrokenError(f"with {field}={value!r}: {error}") from error
        except RuleError as error:  # a rule between several fields, or a law's quantiles
            if "`quantiles`" in error.rule:
                raise BrokenError(str(error)) from error
        except Exception:
            if is_bound:
                raise


_LARGEST = 256
"""Largest value of a field of a model that is tried: more could need much memory."""


def _noun(member: Any) -> str:
    return next(
        owner.noun for owner in map(catalogue_of, type(member).__mro__) if owner is not None
    )


def _blind(config: TrainConfig) -> None:
    own, noise = trained(config)[-1][0], trained(config, splits=made_up_images(noise=True))[-1][0]
    if own != noise:
        raise BrokenError("other test images give other weights: training must not use test images")


def _without_test(config: TrainConfig) -> None:
    hidden = with_values(config, {"data.test": False})
    if (
        trained(hidden, splits=replace(made_up_images(), test=None))[-1][0]
        != trained(config)[-1][0]
    ):
        raise BrokenError("training uses the test images: without them it gives other weights")


def _declared(config: TrainConfig, member: Any) -> str:
    names = {name for _, records in trained(config)[-1:] for r in records for name in r.metrics}
    absent = sorted(set(getattr(member, "metrics", ())) - names)
    if isinstance(member, Probe):
        last = Planned(config=config, epoch=config.epochs - 1, info=INFO)
        absent = [name for name in absent if not member.lacks(last, name)]
    # The run of these checks has neither validation images nor averaged weights.
    if lost := [name for name in absent if not _is_of_more(name)]:
        raise BrokenError(f"declared in `metrics`, but never recorded: {', '.join(lost)}")
    if isinstance(member, Probe) and not member.is_of_evaluation:
        _require_every_epoch(config, member)
    return f" ({', '.join(getattr(member, 'metrics', ())) or 'nothing of its own'})"


def _require_every_epoch(config: TrainConfig, probe: Probe) -> None:
    """Check that a probe records its metrics also in epochs without evaluation of held-out images.

    Raises:
        BrokenError: If the probe records fewer metrics in such an epoch.
    """
    often = replace(config, probes=(replace(probe, every=1),), eval_every=config.epochs)
    first, *_, last = trained(often)[-1][1]
    if lost := sorted((last.metrics.keys() - first.metrics.keys()) & probe.metrics.keys()):
        raise BrokenError(
            f"{', '.join(lost)} is recorded only in epochs in which held-out images are "
            "evaluated; if `measure` uses `subject.evaluated`, set `is_of_evaluation = True`"
        )


def _is_of_more(metric: str) -> bool:
    return metric.startswith("val/") or metric.endswith("_averaged")


def _possible(config: TrainConfig, member: Any) -> None:
    require_possible(trained(config)[-1][1], getattr(member, "metrics", {}))


def _finite(config: TrainConfig) -> None:
    try:
        trained(config)
    except DivergedError as error:
        trained(replace(config, probes=()))
        raise BaselessError(str(error)) from error


def _harmless(config: TrainConfig) -> None:
    require_no_effect(followed(config), followed(replace(config, probes=())))


def _timed(config: TrainConfig) -> str:
    own, ours = (seconds_per_epoch(c) for c in (config, built(TrainConfig, BASE)))
    return f": {own * 1e3:.1f} ms; a run of built-in parts needs {ours * 1e3:.1f} ms"
