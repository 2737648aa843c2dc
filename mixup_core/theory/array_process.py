"""ArrayProcess: a run in progress whose state consists of NumPy arrays."""

import io
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from mixup_core.archives import ArchiveError, read_arrays
from mixup_core.problem import DivergedError, StateError
from mixup_core.records import EpochRecord

Arrays = dict[str, NDArray[Any]]
"""Arrays of a run's state, by name. Names, shapes and types stay the same during a run."""


@dataclass(kw_only=True, slots=True)
class ArrayProcess:
    """A run in progress whose state consists of NumPy arrays; an iterator of its records.

    In each epoch, the function `advance` updates the arrays and returns the metrics.

    Example:
        >>> import numpy as np
        >>> from mixsweep.plugins import ArrayProcess
        >>> def advance(epoch, state):
        ...     state["x"] *= 0.5
        ...     return {"loss": float(state["x"] ** 2)}
        >>> process = ArrayProcess(epochs=3, state={"x": np.array(2.0)}, advance=advance)
        >>> [record.metrics["loss"] for record in process]
        [1.0, 0.25, 0.0625]
    """

    epochs: int
    """Number of records of the finished run."""
    state: Arrays
    """The arrays that `advance` changes."""
    advance: Callable[[int, Arrays], Mapping[str, float]]
    """Takes the epoch (from 0) and the state; updates the state in place and returns the metrics of
    the epoch. State and metrics must depend on nothing else.
    """
    records: list[EpochRecord] = field(default_factory=list)
    """Records of the finished epochs, epoch 0 first."""

    @classmethod
    def of_records(cls, epochs: int, record: Callable[[int], Mapping[str, float]]) -> Self:
        """Return a run in progress that has no state: each record depends on its epoch alone.

        Args:
            epochs: Number of records of the finished run.
            record: Takes an epoch (from 0) and returns its metrics.

        Example:
            >>> from mixsweep.plugins import ArrayProcess
            >>> process = ArrayProcess.of_records(3, lambda epoch: {"value": 0.5**epoch})
            >>> [record.metrics["value"] for record in process]
            [1.0, 0.5, 0.25]
        """
        return cls(epochs=epochs, state={}, advance=lambda epoch, _: record(epoch))

    def __iter__(self) -> Iterator[EpochRecord]:
        """Yield the record of each remaining epoch, and append it to `records`.

        Raises:
            DivergedError: If a metric or the state is not finite.
        """
        for epoch in range(len(self.records), self.epochs):
            with np.errstate(over="ignore", invalid="ignore"):  # reported below as divergence
                metrics = dict(self.advance(epoch, self.state))
            broken = [name for name, value in metrics.items() if not math.isfinite(value)]
            broken += [name for name, value in self.state.items() if not np.isfinite(value).all()]
            if broken:
                raise DivergedError(
                    f"{' and '.join(broken)} must be finite, got ({epoch=}, {metrics=}).",
                    epoch,
                )
            record = EpochRecord(epoch=epoch, metrics=metrics)
            self.records.append(record)
            yield record

    def to_bytes(self) -> bytes:
        """Return the arrays of this run's state as an NPZ archive; equal arrays give equal bytes.

        Example:
            >>> import numpy as np
            >>> from mixsweep.plugins import ArrayProcess
            >>> state = {"x": np.array(2.0)}
            >>> process = ArrayProcess(epochs=3, state=state, advance=lambda epoch, state: {})
            >>> content = process.to_bytes()
            >>> list(process)[-1].epoch, process.to_bytes() == content  # `advance` changes nothing
            (2, True)
        """
        buffer = io.BytesIO()
        np.savez(buffer, allow_pickle=False, **self.state)
        return buffer.getvalue()

    def load_bytes(self, content: bytes, records: list[EpochRecord]) -> None:
        """Restore a state that `to_bytes` returned, and its records; the run then continues there.

        Raises:
            StateError: If the bytes are not an archive of arrays with the names, shapes and types
                of this run's state.

        Example:
            >>> import numpy as np
            >>> from mixsweep.plugins import ArrayProcess
            >>> def advance(epoch, state):
            ...     state["x"] += 1
            ...     return {"x": float(state["x"])}
            >>> stopped = ArrayProcess(epochs=3, state={"x": np.zeros(())}, advance=advance)
            >>> resumed = ArrayProcess(epochs=3, state={"x": np.zeros(())}, advance=advance)
            >>> first = next(iter(stopped))
            >>> resumed.load_bytes(stopped.to_bytes(), [first])
            >>> [record.metrics["x"] for record in resumed]
            [2.0, 3.0]
        """
        try:
            found = read_arrays(content)
        except ArchiveError as error:
            raise StateError(
                f"a stored state of {len(content)} bytes is not a readable archive of arrays "
                f"({type(error).__name__})."
            ) from error
        if _forms(found) != _forms(self.state):
            raise StateError(
                f"a stored state of {len(content)} bytes is not a state of this run: its arrays "
                f"have the names, shapes and types {_forms(found)}, but {_forms(self.state)} are "
                "needed."
            )
        self.state = found
        self.records = list(records)


def _forms(arrays: Arrays) -> dict[str, tuple[tuple[int, ...], str]]:
    return {name: (array.shape, str(array.dtype)) for name, array in arrays.items()}
