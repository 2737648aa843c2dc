"""Synthetic problems: their process, and their description in one call.

The runs of a synthetic problem need no dataset and no device: data are drawn or derived.
"""

import io
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from mixup_core.archives import ArchiveError, read_arrays
from mixup_core.problem import Axis, DivergedError, Metric, Problem, StateError
from mixup_core.records import EpochRecord

Arrays = dict[str, NDArray[Any]]
"""Arrays of a run's state, by name. Names, shapes and types stay the same during a run."""
Metrics = Mapping[str, float]


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
                    f"{' and '.join(broken)} must be finite, got ({epoch=}, {metrics=}).", epoch
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


def metric(
    label: str,
    unit: str = "",
    least: float | None = None,
    most: float | None = None,
    *,
    higher: bool = False,
) -> Metric:
    """Return a metric; `higher` means that higher values are better."""
    return Metric(label=label, unit=unit, least=least, most=most, is_lower_better=not higher)


def synthetic_problem(
    config: Any,
    start: Callable[[Any], ArrayProcess],
    metrics: Mapping[str, Metric],
    axis: Axis | None = None,
    **described: Any,
) -> Problem:
    """Return the problem of a configuration class whose runs need no dataset and no device.

    Args:
        config: Class of the configurations; its class variable `problem` is the problem's name.
        start: Takes a configuration and returns its process.
        metrics: Metrics by name. That of the axis is added if it is missing.
        axis: As in `Problem`.
        described: Other fields of `Problem`, or of one of its facets, such as `objectives` of
            `Searching`.
    """
    _STARTS[config.problem] = start
    axis = axis or Axis()
    if axis.metric is not None:
        metrics = {**metrics}
        metrics.setdefault(axis.metric, metric(axis.label, least=0.0))
    if "steps_per_epoch" in {field.name for field in fields(config)}:
        described |= {"work": lambda config: int(config.steps_per_epoch), "work_unit": "steps"}
    for part in fields(Problem):
        facet: Any = part.default_factory
        if facet not in {Axis, MISSING}:
            own = {field.name for field in fields(facet)} & described.keys()
            described[part.name] = facet(**{name: described.pop(name) for name in own})
    place = f"{__name__}:{start_named.__name__}"
    return Problem(
        name=config.problem, config=config, process=place, metrics=metrics, axis=axis, **described
    )


_STARTS: dict[str, Callable[[Any], ArrayProcess]] = {}
"""Functions that start the runs of the problems, by name of the problem."""


def start_named(config: Any, data_root: Path | None, device: str) -> ArrayProcess:
    del data_root, device  # the data are drawn, and NumPy computes on the CPU
    return _STARTS[config.problem](config)


def by_record(record: Callable[[Any, int], Metrics]) -> Callable[[Any], ArrayProcess]:
    """Return the `start` of runs whose records depend on configuration and epoch alone."""
    return lambda config: ArrayProcess.of_records(config.epochs, partial(record, config))
