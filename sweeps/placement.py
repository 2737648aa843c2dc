"""Placement: where the runs of a launch go. No Ray."""

from dataclasses import dataclass


class PlacementError(Exception):
    """Runs that cannot be placed as asked for."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Placement:
    """Where runs go: on the cluster that RAY_ADDRESS names, else on one started here."""

    slots: int | None = None
    """Runs trained side by side; None: one per CPU, or per `gpus_per_run` of the GPUs at hand."""
    gpus_per_run: float | None = None
    """GPUs of one run, 0, 1 or 1/k; None: 1 where there are GPUs, else 0."""

    def __post_init__(self) -> None:
        """Check the share of a GPU.

        Raises:
            PlacementError: If it is none that fills GPUs evenly.
        """
        share = self.gpus_per_run
        if share and (share > 1 or abs(round(1 / share) * share - 1) > _ROUNDING):
            raise PlacementError(f"`gpus_per_run is 0, 1 or 1/k` must hold, got ({share}).")

    def share_of(self, gpus: float) -> float:
        """Return the GPUs of one run where so many are at hand.

        Raises:
            PlacementError: If there are fewer than one run needs: Ray would wait for ever.
        """
        share = self.gpus_per_run
        if share is None:
            return 1.0 if gpus else 0.0
        if share > gpus:
            raise PlacementError(
                f"`gpus_per_run <= GPUs at hand` must hold, got (gpus_per_run={share}, {gpus=})."
            )
        return share


_ROUNDING = 2e-2
"""Shares are typed: 0.33 means a third."""
