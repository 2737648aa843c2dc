"""Checking: tests that the models, laws, ... of a plugin behave like the built-in ones.

`mixsweep check` calls `check_plugin`. It trains runs of a few epochs on tiny made-up images.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from difflib import SequenceMatcher
from functools import partial
from types import MappingProxyType
from typing import Any, get_args, get_origin

import torch

from mixup_core.config.building import built, parsed, with_values
from mixup_core.config.catalogue import kind_name
from mixup_core.config.parts import leaves, members, unmarked
from mixup_core.config.written_forms import SpellingError, spellings
from mixup_core.contracts import ContractError, noun_of_class
from mixup_core.images.config import TrainConfig
from mixup_core.images.data.data_config import DataConfig
from mixup_core.images.data.datasets import load
from mixup_core.images.data.facts import Dataset, SplitName
from mixup_core.images.data.fetching import data_root, is_present
from mixup_core.images.data.sets import DATASETS
from mixup_core.images.epoch import Planned
from mixup_core.images.objectives.objective import Guided
from mixup_core.images.probes.probe import Probe
from mixup_core.images.problem import IMAGES
from mixup_core.images.training import fit
from mixup_core.keys import stage_keys
from mixup_core.plugins.fields import extremes
from mixup_core.plugins.loading import Plugin, loaded_again
from mixup_core.plugins.made_up import BASE, INFO, made_up_teacher, start
from mixup_core.plugins.own_contracts import OWN
from mixup_core.plugins.suite import (
    FIRST_CHECKS,
    LATER_CHECKS,
    BaselessError,
    BrokenError,
    Checks,
    Finding,
    Trial,
    checks_of_problem,
    findings,
)
from mixup_core.problem import DivergedError, Problem
from mixup_core.records import AVERAGED
from mixup_core.rules import RuleError
from mixup_core.seeding import seeded_globally


def check_plugin(plugin: Plugin) -> Iterator[Finding]:
    """Run all checks of the entries (models, laws, ...) that a plugin adds; yield each result."""
    is_whole = True
    for register, entry in plugin.entries:
        name = f"{register.noun} {kind_name(entry)}"
        try:
            checks: Checks = list(_checks_of(entry))
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
    """Return what a part of a plugin computes, to compare two imports: pixels, or a last record."""
    if isinstance(entry, Dataset):
        is_here = is_present(entry.name, data_root())
        return load(DataConfig(name=entry.name)).train.pixels.tolist() if is_here else None
    return None if isinstance(entry, Problem) else trial_of(entry).trained()[-1]


def _checks_of(entry: Any) -> Checks:
    if isinstance(entry, Problem):
        return checks_of_problem(entry)
    return checks_of_dataset(entry.name) if isinstance(entry, Dataset) else checks_of_member(entry)


def checks_of_dataset(name: str) -> Checks:
    """Yield the checks of a dataset: pairs of a statement and a function that checks it."""
    if not is_present(name, data_root()):
        yield (
            "not checked, because the dataset is not on this machine; run mixsweep data fetch "
            f"{name} --plugin FILE, then check again",
            (lambda: None),
        )
        return
    config = built(TrainConfig, {**BASE, "data.name": name, "epochs": 1})
    yield "its images agree with `info`", lambda: _images(config)
    yield "reading it again gives the same images", lambda: _read_again(config)
    yield "a network trains on it", lambda: _trains(config)


def _images(config: TrainConfig) -> None:
    splits = load(config.data)
    fewest = int(torch.bincount(splits.train.labels).min())
    if fewest != splits.info.smallest_class:
        raise BrokenError(
            f"info.smallest_class is {splits.info.smallest_class}, but the smallest class has "
            f"{fewest} training images"
        )
    if (labels := DATASETS[config.data.name].labels) is None:
        return
    for split in get_args(SplitName):
        if labels(data_root(), split).tolist() != getattr(splits, split).labels.tolist():
            raise BrokenError(f"`labels` returns other {split} labels than `read`")


def _read_again(config: TrainConfig) -> None:
    first = load(config.data)
    with seeded_globally(5):
        again = load(config.data)
    for split in ("train", "test"):
        one, other = getattr(first, split), getattr(again, split)
        if not (torch.equal(one.pixels, other.pixels) and torch.equal(one.labels, other.labels)):
            raise BrokenError(
                f"reading the dataset twice gives different {split} images or labels; draw random "
                "numbers only from a generator with a fixed seed"
            )


def _trains(config: TrainConfig) -> None:
    next(iter(fit(config, load(config.data))))


_LARGEST = 256
"""Largest value of a field of a model that is tried: more could need much memory."""


def checks_of_member(
    kind: Any, *, spelling: Any = None, values: Mapping[str, Any] = MappingProxyType({})
) -> Checks:
    """Yield the checks of a registered class, such as a probe, that image runs can use."""
    trial = trial_of(kind, spelling, values)
    is_probe, noun = isinstance(trial.of, Probe), noun_of_class(kind)
    checks: Mapping[str, Callable[[Trial], str | None]] = {
        "its methods have the names of the base class": _require_spelled,
        **FIRST_CHECKS,
        **({OWN[noun][0]: lambda trial: OWN[noun][1](trial.of)} if noun in OWN else {}),
        **({"its values are finite numbers": _finite} if is_probe else {}),
        "it trains": partial(_batches, sizes=(16,)),
        "it works at the ends of the ranges of its fields": partial(_at_ends, noun=noun),
        **LATER_CHECKS,
        "it trains with other batch sizes": partial(_batches, sizes=(7, INFO.num_train)),
        **({"measuring does not change the run": _harmless} if is_probe else {}),
        "it records the metrics that it declares": _declared,
        "it trains without test images": _without_test,
    }
    for statement, check in checks.items():
        yield statement, partial(check, trial)


def _require_spelled(trial: Trial) -> None:
    """Check that no method of a class differs by one letter from one that its bases have."""
    kind = type(trial.of)
    known = {name for base in kind.__mro__[1:] for name in vars(base) if name[0] != "_"}
    for name, value in vars(kind).items():
        if name[0] == "_" or name in known or not callable(value):
            continue
        for near in sorted(known):
            blocks = SequenceMatcher(None, name, near).get_matching_blocks()
            if max(len(name), len(near)) - sum(block.size for block in blocks) == 1:
                raise BaselessError(
                    f"`{name}` looks like `{near}` of the base class, but training calls `{near}` "
                    "only; rename it, to this or to another name"
                )


def trial_of(
    kind: Any, spelling: Any = None, values: Mapping[str, Any] = MappingProxyType({})
) -> Trial:
    """Return a configuration that uses a class, with its varied part."""
    path, is_list = _place(kind)
    member = _first_valid(kind, [spelling] if spelling else spellings(kind))
    if isinstance(member, Guided):
        member = replace(member, teacher_key=stage_keys(made_up_teacher().config)[-1])
    of_evaluation = getattr(member, "is_of_evaluation", False)

    def holding(member: Any) -> TrainConfig:
        views = getattr(member, "views", None)
        given = {path: (member,) if is_list else member}
        law = {"mix.law": "erm"} if getattr(member, "must_not_mix", False) else {}
        base = with_values(built(TrainConfig, BASE), {**law, **values})
        return with_values(base, given | ({"data.views": views} if views else {}))

    return Trial(
        config=holding(member),
        start=start,
        of=member,
        holding=holding,
        is_left_out=lambda field: (
            (field == "every" and of_evaluation) or f"{path}.{field}" in IMAGES.keying.stands_for
        ),
        metrics=getattr(member, "metrics", {}),
    )


def _place(kind: Any) -> tuple[str, bool]:
    """Return the path of the first field that can hold an instance of a class or a list of them."""
    for path, leaf in leaves(TrainConfig).items():
        if kind in leaf.part.options.values():
            return path.removesuffix(".name") if leaf.part.is_named else path, False
        hint = unmarked(leaf.part.hint)
        if get_origin(hint) is tuple and kind in members(get_args(hint)[0]):
            return path, True
    raise BrokenError(
        f"no field of a training configuration accepts a plugin of type {kind.__name__}"
    )


def _first_valid(kind: Any, written: list[Any]) -> Any:
    """Return an instance of a class from the first of some notations that breaks no rule."""
    for spelling in written[:-1]:
        with suppress(RuleError, SpellingError):
            return parsed(kind, spelling)
    return parsed(kind, written[-1])


def _at_ends(trial: Trial, noun: str) -> None:
    """Check a law, operation, ... with each of its fields at the ends of its range."""
    for field, value, is_bound in extremes(type(trial.of)):
        if noun == "model" and isinstance(value, int | float) and value > _LARGEST:
            continue
        try:
            at_end = with_values(trial.of, {field: value})
            if noun in OWN:
                OWN[noun][2](at_end)
            one_epoch = {"epochs": 1, "eval_every": 1}
            trial.trained(with_values(trial.holding(at_end), one_epoch))
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


def _batches(trial: Trial, sizes: Sequence[int]) -> None:
    for size in sizes:
        trial.trained(replace(trial.config, epochs=1, batch_size=size))


def _without_test(trial: Trial) -> None:
    hidden = with_values(trial.config, {"data.test": False})
    if trial.trained(hidden)[-1][1] != trial.trained()[-1][1]:
        raise BrokenError("training uses the test images: without them it gives other weights")


def _declared(trial: Trial) -> str:
    member = trial.of
    names = {name for record, _ in trial.trained() for name in record.metrics}
    absent = sorted(set(trial.metrics) - names)
    if isinstance(member, Probe):
        last = Planned(config=trial.config, epoch=trial.config.epochs - 1, info=INFO)
        absent = [name for name in absent if not member.lacks(last, name)]
    # The run of these checks has neither validation images nor averaged weights.
    absent = [n for n in absent if not (n.startswith("val/") or n.endswith(AVERAGED))]
    if absent:
        raise BrokenError(f"declared in `metrics`, but never recorded: {', '.join(absent)}")
    if isinstance(member, Probe) and not member.is_of_evaluation:
        _require_every_epoch(trial)
    return f" ({', '.join(trial.metrics) or 'nothing of its own'})"


def _require_every_epoch(trial: Trial) -> None:
    """Check that a probe records its metrics in epochs without evaluation, too."""
    probe = replace(trial.of, every=1)
    often = replace(trial.config, probes=(probe,), eval_every=trial.config.epochs)
    (first, _), *_, (last, _) = trial.trained(often)
    if lost := sorted((last.metrics.keys() - first.metrics.keys()) & probe.metrics.keys()):
        raise BrokenError(
            f"{', '.join(lost)} is recorded only in epochs in which held-out images are "
            "evaluated; if `measure` uses `subject.evaluated`, set `is_of_evaluation = True`"
        )


def _finite(trial: Trial) -> None:
    try:
        trial.trained()
    except DivergedError as error:
        trial.trained(replace(trial.config, probes=()))
        raise BaselessError(str(error)) from error


def _harmless(trial: Trial) -> None:
    """Check that a run has equal states and metrics with and without its probe."""
    without = trial.trained(replace(trial.config, probes=()))
    for (record, state), (expected, own) in zip(trial.trained(), without, strict=True):
        changed = [name for name, of in expected.metrics.items() if record.metrics.get(name) != of]
        what = f"other values of {', '.join(sorted(changed))}" if changed else ""
        what = "other weights or another optimizer state" if state != own else what
        if what:
            raise BrokenError(
                f"with the probe, a run has {what} after epoch {record.epoch} than without it: "
                "`measure` must not modify the network, the images or the logits, nor return "
                "metrics of training; work on copies"
            )
