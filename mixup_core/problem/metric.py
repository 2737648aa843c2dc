"""Metric: a measured value, how it is called and shown, and which way is better."""

import math
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Metric:
    """A measured value: how it is called and shown, and which way is better."""

    label: str
    unit: str = ""
    """`%` where the stored value is a fraction, else for example `nats`; empty for a number."""
    is_lower_better: bool = True
    note: str = ""
    """Explanation of the metric in captions of figures, as a sentence."""
    least: float | None = None
    """Lower bound of every value, whatever a run does; None: 0 for a percentage, else there is no
    such bound. A claim that a bound decides is refused."""
    most: float | None = None
    """Upper bound of every value; None: 1 for a percentage, else there is no such bound."""

    @property
    def bounds(self) -> tuple[float, float]:
        """The least and the largest possible value, infinite where there is none."""
        is_share = self.unit == "%"
        least = (0.0 if is_share else -math.inf) if self.least is None else self.least
        most = (1.0 if is_share else math.inf) if self.most is None else self.most
        return least, most

    @property
    def scale(self) -> float:
        """Factor from the stored value to the shown one; files keep fractions."""
        return 100.0 if self.unit == "%" else 1.0

    @property
    def heading(self) -> str:
        """Label and unit."""
        return f"{self.label}, {self.unit}" if self.unit else self.label

    @property
    def difference_unit(self) -> str:
        """Unit of a difference: percentage points are called `points`."""
        return "points" if self.unit == "%" else self.unit

    @property
    def digits(self) -> int:
        """Digits after the point in tables."""
        return 2 if self.unit == "%" else 3
