"""Metric: label, unit and possible range of a measured value, and which direction is better."""

import math
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Metric:
    """A kind of measured value: label, unit, which direction is better, and the possible range.

    Example:
        >>> from mixsweep.plugins import Metric
        >>> Metric(label="test accuracy", unit="%", is_lower_better=False).heading
        'test accuracy, %'
    """

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
        """Smallest and largest possible value of this metric; infinite where there is no limit.

        If the unit is `%`, the value is a fraction: 1 means 100 %.

        Example:
            >>> from mixsweep.plugins import Metric
            >>> Metric(label="error", unit="%").bounds, Metric(label="loss", least=0.0).bounds
            ((0.0, 1.0), (0.0, inf))
        """
        is_share = self.unit == "%"
        least = (0.0 if is_share else -math.inf) if self.least is None else self.least
        most = (1.0 if is_share else math.inf) if self.most is None else self.most
        return least, most

    @property
    def scale(self) -> float:
        """Factor from stored to printed values of this metric: 100 if the unit is `%`, else 1.

        Example:
            >>> from mixsweep.plugins import Metric
            >>> 0.25 * Metric(label="error", unit="%").scale
            25.0
        """
        return 100.0 if self.unit == "%" else 1.0

    @property
    def heading(self) -> str:
        """Label and unit of this metric for column headings, such as `test error, %`.

        Example:
            >>> from mixsweep.plugins import Metric
            >>> Metric(label="loss", unit="nats").heading, Metric(label="rank").heading
            ('loss, nats', 'rank')
        """
        return f"{self.label}, {self.unit}" if self.unit else self.label

    @property
    def difference_unit(self) -> str:
        """Unit of differences of this metric: `points` if its unit is `%`, else its unit.

        Example:
            >>> from mixsweep.plugins import Metric
            >>> Metric(label="error", unit="%").difference_unit
            'points'
        """
        return "points" if self.unit == "%" else self.unit

    @property
    def digits(self) -> int:
        """Number of digits after the decimal point in tables: 2 if the unit is `%`, else 3.

        Example:
            >>> from mixsweep.plugins import Metric
            >>> Metric(label="error", unit="%").digits, Metric(label="loss", unit="nats").digits
            (2, 3)
        """
        return 2 if self.unit == "%" else 3
