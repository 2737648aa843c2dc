"""EpochRecord: what one finished epoch of a run measured."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True, slots=True)
class EpochRecord:
    """The metrics of one epoch. Depends on the configuration alone: no clock, no host."""

    epoch: int
    """0-based."""
    metrics: Mapping[str, float]
    """Slashed name to value, for example `train/loss` (nats), `test/error` (fraction in [0, 1]).

    Which are there depends on the problem (`Problem.metrics`), and may differ from epoch to epoch:
    images record `train/*` in each, `val/*` and `test/*` where the configuration evaluates.
    """

    def to_plain(self) -> dict[str, Any]:
        """Return a JSON-ready mapping; floats survive the round trip exactly."""
        return {"epoch": self.epoch, "metrics": dict(self.metrics)}

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> "EpochRecord":
        """Return the record `to_plain` wrote."""
        return cls(epoch=plain["epoch"], metrics=dict(plain["metrics"]))
