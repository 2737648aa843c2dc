"""Interrupts: make signals such as Ctrl-C end a launch, whatever Ray is doing at that moment."""

from types import FrameType
from typing import Any, Self

from ray import tune

from sweeps.machine.signals import hear


class Interrupts(tune.Callback):  # type: ignore[misc]
    """Context and Ray Tune callback that ends a launch after SIGINT, SIGTERM or SIGHUP.

    Inside the context, a signal raises `KeyboardInterrupt`. A library that is running can swallow
    this exception. Therefore the signal is also recorded, and the callback raises the exception
    again at the end of the present step of Tune.
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
        """Raise `KeyboardInterrupt` if a signal has arrived; Tune calls this after each step.

        Raises:
            KeyboardInterrupt: If a signal has arrived.
        """
        if self._heard:
            raise KeyboardInterrupt

    def _hear(self, number: int, frame: FrameType | None) -> None:
        self._heard = True
        raise KeyboardInterrupt
