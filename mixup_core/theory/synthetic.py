"""Synthetic problems: computations on data that are drawn or derived, described in one call."""

from collections.abc import Mapping
from dataclasses import fields
from importlib import import_module
from pathlib import Path
from typing import Any

from mixup_core.problem import (
    Comparing,
    Cost,
    Keying,
    Measuring,
    Presentation,
    Problem,
    Reading,
    Searching,
)
from mixup_core.theory.array_process import ArrayProcess

_FACETS: Mapping[str, Any] = {
    "measuring": Measuring, "searching": Searching, "reading": Reading, "keying": Keying,
    "comparing": Comparing, "presentation": Presentation, "cost": Cost,
}  # fmt: skip


def synthetic_problem(config: Any, *, trained_in: str = "", **described: Any) -> Problem:
    """Return the problem of a configuration class whose runs need no dataset and no device.

    Args:
        config: Class of the configurations; its class variable `problem` is the problem's name.
        trained_in: Module with the function `start`, which takes a configuration and returns its
            `ArrayProcess`; empty for the module of `config`.
        described: Fields of `Problem`, or of one of its facets, such as `objectives` of
            `Searching`.
    """
    for name, facet in _FACETS.items():
        own = {field.name for field in fields(facet)} & described.keys()
        described[name] = facet(**{field: described.pop(field) for field in own})
    _MODULES[config.problem] = trained_in or config.__module__
    process = f"{__name__}:{start.__name__}"
    return Problem(name=config.problem, config=config, process=process, **described)


_MODULES: dict[str, str] = {}
"""Modules that compute the runs of the problems, by name of the problem."""


def start(config: Any, data_root: Path | None, device: str) -> ArrayProcess:
    del data_root, device  # the data are drawn, and NumPy computes on the CPU
    process: ArrayProcess = import_module(_MODULES[config.problem]).start(config)
    return process
