"""Frozen draws of laws, partners, operations, augmentations, networks, probes and batches.

`make golden` adds those of new entries and changes no old ones. The draws of the theory problems
are frozen in `tests/mixup_core/theory`.
"""

import dataclasses
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import torch

from tests.golden import project
from tests.golden.project import members, parsed, spellings, with_values

FILE = Path(__file__).with_name("draws.json")

Prints = dict[str, list[float]]
"""Number of draws, a number that depends on every drawn value, and one for the result, by entry."""

_CHOICES = {
    "law": ("mix.law", project.Law),
    "schedule": ("mix.schedule", project.Schedule),
    "partner": ("mix.partner", project.Partner),
    "operation": ("mix.operation", project.Operation),
    "augmentation": ("data.augment", project.Augmentation),
    "model": ("model", project.Model),
    "probe": ("probes", project.Probe),
}
_MIXED = {"mix.law": {"beta": 0.5}}
_SETTINGS: dict[str, dict[str, Any]] = {
    "two operations": {"mix.second": "cutmix", "mix.probability": 0.5, "mix.second_law": "erm"},
    "weights per image": {"mix.second": "fmix", "mix.lam_scope": "sample"},
    "labels": {"mix.label_law": {"beta": 2.0}, "mix.probability": 0.5, "mix.lam_scope": "sample"},
    "concat": {"data.views": "concat", "data.num_train": 40, "data.balanced": True},
    "orthogonal": {"data.views": "orthogonal"},
    "noise": {"data.label_noise": 0.5},
    "noise to one": {"data.label_noise": 0.5, "data.noise_to": "one"},
    "validation": {"data.val_size": 10},
    "folds": {"data.folds": 3, "data.fold": 1},
    "rounding": {"vary": "rounding", "seed": 5},
    "varied order": {"vary": "order", "seed": 5},
    "second seed": {"redraw": "all", "seed": 5},
    "teacher": {"as_teacher": True, "seed": 5},
}
_DRAWN: list[tuple[str, Any]] = []
"""File of the code that draws, and the drawn values, of each call since it was last cleared."""


def _kept(name: str) -> Callable[..., Any]:
    draw = getattr(np.random.Generator, name)

    def method(self: Any, *given: Any, **named: Any) -> Any:
        drawn = draw(self, *given, **named)
        _DRAWN.append((sys._getframe(1).f_code.co_filename, np.array(drawn)))
        return drawn

    return method


_NAMES = {name for name in vars(np.random.Generator) if name[0] != "_"}
_NAMES -= {"bit_generator", "shuffle", "spawn"}
_Kept: Any = type("Kept", (np.random.Generator,), {name: _kept(name) for name in _NAMES})
"""Generator that adds what it draws to `_DRAWN`."""


def draws_now() -> tuple[Prints, set[str]]:
    """Return the prints of the present code, and the files that have drawn with NumPy."""
    torch.set_num_threads(1)
    found, files = Prints(), set[str]()
    for name, act in _acts():
        _DRAWN.clear()
        with mock.patch("numpy.random.Generator", _Kept):
            result = act()
        found[name] = [len(_DRAWN), _print([drawn for _, drawn in _DRAWN]), _print(result)]
        files |= {file for file, _ in _DRAWN}
    return found, files


def _acts() -> Iterator[tuple[str, Callable[[], Any]]]:
    small = project.TrainConfig(
        data=project.DataConfig(name="digits", num_train=16),
        model=parsed(project.Model, {"name": "mlp", "hidden": [4, 4]}),
        epochs=3,
        batch_size=6,
    )
    for noun, (path, options) in _CHOICES.items():
        for kind in filter(dataclasses.is_dataclass, members(options)):
            found = list(_spelled(small, noun, path, kind))
            found = [found[0], *found[1:][-1:]]
            act = {"model": _weights, "probe": _trained}.get(noun, _batches)
            yield f"{noun} {project.kind_name(kind)}", partial(_each, act, found)
    for name, values in _SETTINGS.items():
        config = with_values(small, _MIXED | values)
        act = _weights if name == "rounding" else _batches
        yield name, partial(act, config)
    read = project.DATASETS["digits"].read
    yield "dataset digits", lambda: read(Path(), "train", 8).labels
    distances = project.problem_named("sufficiency")
    config = distances.config(data=small.data)
    yield "problem sufficiency", lambda: list(distances.start(config, None, "cpu"))[:0]


def _each(act: Callable[[Any], Any], configs: list[Any]) -> list[Any]:
    return [act(config) for config in configs]


def _spelled(small: Any, noun: str, path: str, kind: Any) -> Iterator[Any]:
    """Yield valid configurations with a value of a choice."""
    base: dict[str, Any] = {} if noun in {"law", "schedule"} else _MIXED
    if noun == "probe":
        base = base | {"data.views": kind.views or "single", "data.num_train": 40}
    for given in spellings(kind):
        if noun == "model":
            has_width = "width" in {field.name for field in dataclasses.fields(kind)}
            given |= {"width": 2} if has_width else {}
            given |= {"architecture": "test_resnet"} if kind.name == "timm" else {}
        with suppress(project.RuleError, project.SpellingError, KeyError):
            yield with_values(small, {**base, path: [given] if noun == "probe" else given})


def _batches(config: Any) -> Any:
    """Return the random values of the batches of two epochs, and those of a probe."""
    data = project.load(config.data)
    device = torch.device("cpu")
    images = project.TrainingImages(data.train, data.info, config.data, config.seeds, device)
    trained = [project.Draws.for_training(config, epoch, images) for epoch in range(2)]
    probed = project.Draws.for_probing(config, 1, images, 1)
    return images.labels, images.view_partners, images.pixels.chosen, trained, probed


def _weights(config: Any) -> Any:
    info = project.describe(config.data)
    state = project.TrainingState.initial(config, info, torch.device("cpu"))
    return list(state.network.state_dict().values())


def _trained(config: Any) -> None:
    list(project.fit(config, project.load(config.data)))  # what it measures depends on rounding


def _print(part: Any) -> float:
    values = np.concatenate([[0.0], *_numbers(part)])
    weights = 0.5 + np.modf(np.arange(len(values)) * 0.6180339887)[0]
    return round(float(values @ weights), 6)


def _numbers(part: Any) -> Iterator[Any]:
    if dataclasses.is_dataclass(part):
        part = [getattr(part, field.name) for field in dataclasses.fields(part)]
    if isinstance(part, list | tuple):
        for each in part:
            yield from _numbers(each)
    else:
        yield np.asarray(-1 if part is None else part, np.float64).ravel()


if __name__ == "__main__":
    rows = (draws_now()[0] | json.loads(FILE.read_text())).items()
    FILE.write_text("{\n" + ",\n".join(f'"{name}": {row}' for name, row in rows) + "\n}\n")
