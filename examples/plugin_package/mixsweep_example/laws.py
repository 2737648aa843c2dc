"""A triangular law of the weight."""

from dataclasses import dataclass

from mixsweep.plugins import Law, Share


@dataclass(frozen=True, kw_only=True, slots=True)
class Triangular(Law):
    """The density rises in a line from 0 to the mode and falls in a line from there to 1."""

    tag = "triangular"

    mode: Share = 0.5
    """The value of lam at which the density is largest."""

    def quantiles(self, levels):
        """Return the quantiles of the weight; draws and moments follow from them."""
        import numpy as np

        levels, mode = np.asarray(levels), self.mode
        rising, falling = np.sqrt(levels * mode), 1 - np.sqrt((1 - levels) * (1 - mode))
        return np.where(levels < mode, rising, falling)
