"""Interrupts: make signals such as Ctrl-C end a launch, whatever Ray is doing at that moment."""

from types import FrameType
from typing import Any, Self

from ray import tune

from sweeps.machine.signals import hear


class Interrupts(tune.Callback):  # type: ignore[misc]
    """Context that records SIGINT, SIGTERM and SIGHUP; as a callback of Ray Tune, it stops Tune.

    A library that is running can swallow the exception that a signal raises. Therefore the
    exception is raised again at the end of each step of Tune.
    """

    def __init__(self) -> None:
        """Start with no signal recorded."""
        self._heard = False

    def __enter__(self) -> Self:
        hear(self._hear)
        return self

    def __exit__(self, *raised: object) -> None:
        hear()

    def on_step_end(self, iteration: int, trials: list[Any], **info: Any) -> None:
        """Raise `KeyboardInterrupt` if a signal was recorded but its exception was swallowed.

        Raises:
            KeyboardInterrupt: If a signal was recorded.
        """
        if self._heard:
            raise KeyboardInterrupt

    def _hear(self, number: int, frame: FrameType | None) -> None:
        self._heard = True
        raise KeyboardInterrupt
