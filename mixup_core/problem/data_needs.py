"""DataNeeds: what the runs of a problem need of data sets."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol


@dataclass(frozen=True, kw_only=True, slots=True)
class DataSet:
    """A data set that runs may need, and whether this machine has it."""

    name: str
    is_present: bool
    place: str
    """The folder that holds the files, or will; else the package that brings it."""
    num_bytes: int | None
    """In memory, training and test images at their full size; None: it is part of another set."""


@dataclass(frozen=True, kw_only=True, slots=True)
class KnownData:
    """Facts that a store keeps of the data of its runs: results can be read without the data."""

    configs: Sequence[Mapping[str, Any]] = ()
    """Prepared configurations (`DataNeeds.prepare`), flattened."""
    facts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Digest to facts (`DataNeeds.facts`)."""


class DataNeeds(Protocol):
    """The needs of the runs of a problem for data sets."""

    def root(self) -> Path:
        """Return the folder of the data sets on this machine."""

    def sets(self) -> Sequence[DataSet]:
        """Return the data sets that can be fetched, without opening a file."""

    def fetch(self, name: str) -> str:
        """Bring a data set to this machine if it is not there, and return where it came from.

        Raises:
            DataError: If it cannot be had: how each source failed, and what to do by hand.
        """

    def prepare(self, config: Any, folder: Path) -> Any:
        """Return the configuration with what stands for its data filled in.

        Called for each arm when a study is read: whatever is slow is kept for the next.

        Args:
            config: As the study file gives it.
            folder: Where relative paths count from.

        Raises:
            DataError: If the data cannot be described.
            RuleError: If the data contradicts the configuration.
        """

    def recall(self, known: Callable[[], KnownData], *, only: bool) -> None:
        """Let `prepare` take data that are not here from what a store knows of them.

        Args:
            known: Called when it is first needed.
            only: Whether data that are here are not looked at either.
        """

    def facts(self, config: Any) -> Mapping[str, Mapping[str, Any]]:
        """Return the facts of a prepared configuration's data by digest, as JSON for a store."""

    def missing(self, config: Any) -> str | None:
        """Return one line on data that are missing on this machine and how to get them."""

    def check(self, config: Any) -> None:
        """Check data that were not checked yet, where that is quick; write nothing.

        Raises:
            DataError: If it cannot be used.
        """

    def open(self, config: Any) -> None:
        """Open data that were not checked yet, before any run starts.

        Raises:
            DataError: If it cannot be used.
        """

    def checksums(self, config: Any) -> Mapping[str, Mapping[str, str]]:
        """Return data set to file to checksum, for provenance; empty where it is not here."""
