"""Errors that end a run: numbers that diverge, unusable data, or the state of another run."""

from typing import Any


class DivergedError(ArithmeticError):
    """Error: a value is not finite. Training the run again would give the same result."""

    def __init__(self, message: str, epoch: int) -> None:
        super().__init__(message)
        self.epoch = epoch
        """0-based epoch in which it happened."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Support pickling, so that the error can pass between processes."""
        return type(self), (str(self), self.epoch)


class DataError(Exception):
    """Error: data are missing, damaged or unexpected. The text says which, and what to do."""

    def __init__(self, message: str, fields: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.fields = fields
        """Dotted paths of the configuration fields that named the data, the most likely cause
        first.
        """


class StateError(ValueError):
    """Error: bytes are not a state of this run, or contain more than tensors and plain values."""
