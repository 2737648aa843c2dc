"""Comparing: rules that say which runs may be compared, such as those with equal test images."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparing:
    """Functions that say which runs may be compared: those for which `population` is equal.

    The population is what the results are measured on, such as the test images; other settings may
    differ. In a table of several studies, arms of one name may differ only in the fields that
    `data_paths` names.

    Example:
        >>> from types import SimpleNamespace
        >>> from mixsweep.plugins import Comparing
        >>> comparing = Comparing(
        ...     population=lambda config: config.dimension, data_paths=frozenset({"dimension"})
        ... )
        >>> comparing.population(SimpleNamespace(dimension=10))
        10
    """

    population: Callable[[Any], Hashable] = lambda config: None
    """Takes a configuration. The results of two runs may be compared only if this function returns
    equal values for both, such as the names of their test images.
    """
    data_paths: frozenset[str] = frozenset()
    """Dotted names of the fields that select the dataset. A table that shows several studies side
    by side allows different values of these fields.
    """
    dataset: Callable[[Any], str] = lambda config: ""
    """Takes a configuration; returns the name of its dataset, by which MLflow can group runs."""
