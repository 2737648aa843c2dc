"""Claim: a sentence of a source made checkable; its verdict is computed from runs by `reports`."""

from dataclasses import dataclass
from typing import Literal

from sweeps.readouts import ClaimReadout

Relation = Literal["less", "greater", "at_least", "at_most", "within"]
"""`less`, `greater`: the left side differs from the right at 5 %. `at_least`, `at_most`: it is not
told to be on the other side. `within`: it lies within the margin of the right side."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Claim:
    """What a source says of one metric of an arm, against another arm or a number."""

    says: str
    """The source's sentence in our words."""
    source: str
    """Paper and place, for example `arXiv:2210.13512, table 1`."""
    relation: Relation
    left: str
    """An arm."""
    right: str | float
    """Another arm, paired by seed, or a number in the unit of the metric."""
    metric: str
    """Slashed name."""
    margin: float | None = None
    """Of `within`, in the unit of the metric, positive; None for the others."""
    readout: ClaimReadout | None = None
    """Which number of a run the claim is about; None: that of the study."""
