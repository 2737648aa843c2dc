"""Interrupts: Ctrl-C and its like end a launch, whatever Ray is doing at that moment."""

from types import FrameType
from typing import Any, Self

from ray import tune

from sweeps.machine.signals import hear


class Interrupts(tune.Callback):  # type: ignore[misc]
    """Hears the ending signals within a `with`, and stops Tune in whose callbacks it is.

    The exception that a signal raises can vanish in a library that is being called just then; what
    was heard is therefore raised again at the end of Tune's step.
    """

    def __init__(self) -> None:
        """Hear nothing yet."""
        self._heard = False

    def __enter__(self) -> Self:
        hear(self._hear)
        return self

    def __exit__(self, *raised: object) -> None:
        hear()

    def on_step_end(self, iteration: int, trials: list[Any], **info: Any) -> None:
        """Stop, if that was asked for and did not come through.

        Raises:
            KeyboardInterrupt: If a signal was heard.
        """
        if self._heard:
            raise KeyboardInterrupt

    def _hear(self, number: int, frame: FrameType | None) -> None:
        self._heard = True
        raise KeyboardInterrupt
