"""Randomness: what differs between seeds, such as initial weights, data order or mixing."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True, kw_only=True, slots=True)
class Randomness:
    """Functions that set the seed of a run, and say which random draws differ between seeds.

    Example:
        >>> from mixup_core.images.config import TrainConfig
        >>> from mixsweep.plugins import Randomness
        >>> Randomness().at_seed(TrainConfig(epochs=1, batch_size=8), 3).seed
        3
    """

    at_seed: Callable[[Any, int], Any] = lambda config, seed: replace(config, seed=seed)
    """Takes the configuration of an arm and a seed; returns the configuration of the run."""
    source: Callable[[Any], tuple[str, Any]] = lambda config: ("all", config)
    """Takes a configuration; returns two values. The first is the name of the only source of
    randomness that differs between its seeds, or `all`. The second is a copy of the configuration
    in which all sources differ between seeds. Reports compare configurations with equal copies, to
    show the spread of results that each source causes.
    """
    redrawn: Callable[[Any], tuple[str, Any]] = lambda config: ("nothing", config)
    """Takes a configuration; returns two values. The first is the name of the source of randomness
    that a run draws with a second seed instead of its own seed, or `nothing`, or `all`. The second
    is a copy of the configuration without a second seed. Reports compare configurations with equal
    copies: they form a crossed design.
    """
