"""Interrupts: signals such as Ctrl-C end a launch, whatever Ray is doing at that moment."""

from types import FrameType
from typing import Any, Self

from ray import tune

from sweeps.machine.signals import hear


class Interrupts(tune.Callback):  # type: ignore[misc]
    """Catches the ending signals while the context is open, and stops Tune as its callback.

    A library that is being called can swallow the exception that a signal raises; therefore it is
    raised again at the end of Tune's step.
    """

    def __init__(self) -> None:
        """Start without a caught signal."""
        self._heard = False

    def __enter__(self) -> Self:
        hear(self._hear)
        return self

    def __exit__(self, *raised: object) -> None:
        hear()

    def on_step_end(self, iteration: int, trials: list[Any], **info: Any) -> None:
        """Stop if a signal was caught whose exception was swallowed.

        Raises:
            KeyboardInterrupt: If a signal was caught.
        """
        if self._heard:
            raise KeyboardInterrupt

    def _hear(self, number: int, frame: FrameType | None) -> None:
        self._heard = True
        raise KeyboardInterrupt
