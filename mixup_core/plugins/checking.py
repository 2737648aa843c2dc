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
from mixup_core.images.data.fetching import data_root, is_present
from mixup_core.images.training import fit
from mixup_core.plugins.loading import Plugin, loaded_again
from mixup_core.plugins.member_checks import checks_of_member, trial_of
from mixup_core.plugins.suite import BrokenError, Checks, Finding, checks_of_problem, findings
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
