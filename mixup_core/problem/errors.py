"""Errors that end a run: values that are not finite, unusable data, or an unusable stored state."""

from typing import Any


class DivergedError(ArithmeticError):
    """Error: a value, such as the loss, is not finite.

    Training the run again would give the same result.

    Example:
        >>> from mixsweep.plugins import ArrayProcess, DivergedError
        >>> try:
        ...     list(ArrayProcess.of_records(3, lambda epoch: {"loss": float("nan")}))
        ... except DivergedError as error:
        ...     print(error)
        loss must be finite, got (epoch=0, metrics={'loss': nan}).
    """

    def __init__(self, message: str, epoch: int) -> None:
        super().__init__(message)
        self.epoch = epoch
        """Epoch (0-based) in which the value appeared."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Support pickling, so that the error can pass between processes."""
        return type(self), (str(self), self.epoch)


class DataError(Exception):
    """Error: data are missing, damaged or unexpected. The message names them and the remedy.

    `fields` contains the configuration fields that named the data.

    Example:
        >>> from mixsweep.plugins import DataError
        >>> error = DataError("photos: no folder of this name", fields=("data.folder",))
        >>> str(error), error.fields
        ('photos: no folder of this name', ('data.folder',))
    """

    def __init__(self, message: str, fields: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.fields = fields
        """Dotted paths of the configuration fields that named the data, the most likely cause
        first.
        """


class StateError(ValueError):
    """Error: stored bytes are not a training state that this run can load.

    Example:
        >>> from mixsweep.plugins import ArrayProcess, StateError
        >>> process = ArrayProcess.of_records(3, lambda epoch: {"loss": 1.0})
        >>> try:
        ...     process.load_bytes(b"no archive", [])
        ... except StateError as error:
        ...     print(error)
        a stored state of 10 bytes is not a readable archive of arrays (ArchiveError).
    """
