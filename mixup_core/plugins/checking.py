"""Checking: tests that the models, laws, ... of a plugin behave like the built-in ones.

`mixsweep check` calls `check_plugin`. It trains runs of a few epochs on tiny made-up images.
"""

from collections.abc import Iterator
from typing import Any

import torch

from mixup_core.config.building import built
from mixup_core.config.catalogue import kind_name
from mixup_core.global_generators import seeded_globally
from mixup_core.images.config import TrainConfig
from mixup_core.images.data.data_config import DataConfig
from mixup_core.images.data.datasets import load
from mixup_core.images.data.facts import Dataset
<<<<<<< HEAD
from mixup_core.images.objectives.guided import Guided
from mixup_core.images.probes.probe import Probe
from mixup_core.images.problem import IMAGES
from mixup_core.images.run_settings import Planned
from mixup_core.images.training import TrainingState
from mixup_core.keys import run_key, stage_keys
from mixup_core.plugins.dataset_checks import checks_of_dataset, pixels_of
from mixup_core.plugins.extremes import extremes, require_ranges
from mixup_core.plugins.findings import BaselessError, BrokenError, Checks, Finding, findings
=======
from mixup_core.images.data.fetching import data_root, is_present
from mixup_core.images.training import fit
>>>>>>> 543037b9 ([plugins] Key what the code of a plugin file means; one suite of contracts for plugins and built-in entries)
from mixup_core.plugins.loading import Plugin, loaded_again
from mixup_core.plugins.member_checks import checks_of_member, trial_of
from mixup_core.plugins.problem_checks import checks_of_problem
from mixup_core.plugins.suite import BrokenError, Checks, Finding, findings
from mixup_core.plugins.trial_runs import BASE
from mixup_core.problem import Problem
from mixup_core.rules import RuleError


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
    """Return an entry's results, to compare two loads of it: pixels, or the end of a run.

    The result is None for problems, and for datasets that are not on this machine.
    """
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


<<<<<<< HEAD
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
=======
def _trains(config: TrainConfig) -> None:
    next(iter(fit(config, load(config.data))))
>>>>>>> 543037b9 ([plugins] Key what the code of a plugin file means; one suite of contracts for plugins and built-in entries)
