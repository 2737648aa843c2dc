"""Errors that end a run: its numbers diverged, its data are no good, or a state is not its own."""

from typing import Any


class DivergedError(ArithmeticError):
    """A value is no longer finite; computing the run again would only find the same."""

    def __init__(self, message: str, epoch: int) -> None:
        super().__init__(message)
        self.epoch = epoch
        """0-based epoch in which it happened."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Let the error pass between processes."""
        return type(self), (str(self), self.epoch)


class DataError(Exception):
    """Data that are absent, damaged or not what they should be: what, where, and the way out."""

    def __init__(self, message: str, fields: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.fields = fields
        """Dotted paths of the configuration that named the data, the likeliest at fault first."""


class StateError(ValueError):
    """Bytes are not the state of this run, or hold more than tensors and plain values."""
