"""Metric: label, unit, direction and bounds of a measured value."""

import math
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Metric:
    """A measured value: its label and unit, which direction is better, and its bounds."""

    label: str
    unit: str = ""
    """`%` if the stored value is a fraction, another unit such as `nats`, or empty."""
    is_lower_better: bool = True
    note: str = ""
    """One sentence that explains the metric in captions of figures."""
    least: float | None = None
    """Lower bound of all possible values. None: 0 if the unit is `%`, else no bound. A claim is
    refused if the bounds alone make it true or false.
    """
    most: float | None = None
    """Upper bound of all possible values. None: 1 if the unit is `%`, else no bound."""

    @property
    def bounds(self) -> tuple[float, float]:
        """Lower and upper bound of all possible values; infinite if there is no bound."""
        is_share = self.unit == "%"
        least = (0.0 if is_share else -math.inf) if self.least is None else self.least
        most = (1.0 if is_share else math.inf) if self.most is None else self.most
        return least, most

    @property
    def scale(self) -> float:
        """Factor by which the stored value is multiplied for printing: 100 for `%`, else 1."""
        return 100.0 if self.unit == "%" else 1.0

    @property
    def heading(self) -> str:
        """Label and unit, for column headings, such as `test error, %`."""
        return f"{self.label}, {self.unit}" if self.unit else self.label

    @property
    def difference_unit(self) -> str:
        """Unit of a difference of two values: `points` for percentages, else `unit`."""
        return "points" if self.unit == "%" else self.unit

    @property
    def digits(self) -> int:
        """Number of digits after the decimal point in tables."""
        return 2 if self.unit == "%" else 3
