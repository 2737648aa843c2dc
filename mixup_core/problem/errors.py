"""Errors that end a run: diverged numbers, unusable data, or the state of another run."""

from typing import Any


class DivergedError(ArithmeticError):
    """A value is not finite. Training the run again would give the same."""

    def __init__(self, message: str, epoch: int) -> None:
        super().__init__(message)
        self.epoch = epoch
        """0-based epoch in which it happened."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the error with its epoch, to pass it between processes."""
        return type(self), (str(self), self.epoch)


class DataError(Exception):
    """Data are missing, damaged or not as expected. The message says what, where and what to do."""

    def __init__(self, message: str, fields: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.fields = fields
        """Dotted paths of the configuration fields that named the data, the most likely cause
        first.
        """


class StateError(ValueError):
    """The bytes are not a state of this run, or contain more than tensors and plain values."""
