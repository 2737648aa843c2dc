"""Hardware: the slots in which a plan trains runs, and what their hours cost."""

from dataclasses import dataclass

from sweeps.study.budget import SECONDS_PER_HOUR


@dataclass(frozen=True, kw_only=True, slots=True)
class Hardware:
    """Slots in which runs are trained, with their GPUs and their price."""

    slots: int
    """Number of runs trained in parallel."""
    gpus_per_run: float | None = None
    """GPUs of each run; None if it is not known whether runs use any."""
    price: float | None = None
    """Price of a GPU-hour; if runs use no GPU, of one hour of one slot."""

    def gpu_hours(self, seconds: float | None) -> float | None:
        """Return the GPU-hours of seconds of training, added over runs; None without GPUs."""
        if seconds is None or not self.gpus_per_run:
            return None
        return seconds / SECONDS_PER_HOUR * self.gpus_per_run

    def cost(self, seconds: float | None) -> float | None:
        """Return the cost of seconds of training, added over runs; None without a price."""
        if seconds is None or self.price is None:
            return None
        return seconds / SECONDS_PER_HOUR * (self.gpus_per_run or 1.0) * self.price
