"""Comparing: rules that say which runs may be compared, by data and settings."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparing:
    """Functions that say which runs may be compared: those with equal data and settings."""

    population: Callable[[Any], Hashable] = lambda config: None
    """Returns a value that is equal for runs whose results may be compared: same test images, same
    setting.
    """
    data_paths: frozenset[str] = frozenset()
    """Paths that select the dataset. Studies with the same protocol may differ in these only."""
    dataset: Callable[[Any], str] = lambda config: ""
    """Returns the name of the dataset, by which MLflow's tables can be grouped."""
