"""Randomness: functions that say which sources of randomness differ between seeds."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True, kw_only=True, slots=True)
class Randomness:
    """Functions that say which sources of randomness differ between the seeds of an arm."""

    at_seed: Callable[[Any, int], Any] = lambda config, seed: replace(config, seed=seed)
    """Takes the configuration of an arm and a seed; returns the configuration of the run."""
    source: Callable[[Any], tuple[str, Any]] = lambda config: ("all", config)
    """Returns the only source of randomness that differs between seeds, or `all`, with the
    configuration in which all sources differ. It serves studies of one source of variance.
    """
    redrawn: Callable[[Any], tuple[str, Any]] = lambda config: ("nothing", config)
    """Returns the source of randomness that the configuration's second seed controls (or `nothing`,
    or `all`), with the configuration without the second seed. The source is the row of a crossed
    design.
    """
