"""DataNeeds: the datasets that the runs of a problem need."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol


@dataclass(frozen=True, kw_only=True, slots=True)
class DataSet:
    """A dataset that runs can need, and whether this machine has it."""

    name: str
    is_present: bool
    place: str
    """Folder of the files (existing or not), or the package that contains them."""
    num_bytes: int | None
    """Size in memory of all training and test images; None if the set is part of another set."""


@dataclass(frozen=True, kw_only=True, slots=True)
class KnownData:
    """Facts that a store keeps about the data of its runs: results can be read without the data."""

    configs: Sequence[Mapping[str, Any]] = ()
    """Configurations after `DataNeeds.prepare`, flattened."""
    facts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Facts (`DataNeeds.facts`) by digest."""


class DataNeeds(Protocol):
    """Finds, fetches, describes and checks the datasets that runs of a problem need."""

    def root(self) -> Path:
        """Return the folder of datasets on this machine."""

    def sets(self) -> Sequence[DataSet]:
        """Return the datasets that can be fetched. Opens no file."""

    def fetch(self, name: str) -> str:
        """Download a dataset unless it is here; return its source.

        Raises:
            DataError: If every source failed; the message gives each reason and what to do by hand.
        """

    def prepare(self, config: Any, folder: Path) -> Any:
        """Return the configuration with the fields that describe its data (a digest) filled in.

        Called for each arm whenever a study is read, so slow results must be cached.

        Args:
            config: The configuration, as read from the study file.
            folder: Folder to which relative paths refer.

        Raises:
            DataError: If the data cannot be described.
            RuleError: If the data contradict the configuration.
        """

    def recall(self, known: Callable[[], KnownData], *, only: bool) -> None:
        """Let `prepare` use a store's facts about data that are not on this machine.

        Args:
            known: Returns the facts; called only when they are needed.
            only: Use the store's facts even for data that are on this machine.
        """

    def facts(self, config: Any) -> Mapping[str, Mapping[str, Any]]:
        """Return facts about a prepared configuration's data, by digest, as JSON to be stored."""

    def missing(self, config: Any) -> str | None:
        """Return one line that names missing data and how to get it, or None."""

    def check(self, config: Any) -> None:
        """Run the quick checks of data that were not checked before. Writes nothing.

        Raises:
            DataError: If the data cannot be used.
        """

    def open(self, config: Any) -> None:
        """Open data that were not checked before, before the first run starts.

        Raises:
            DataError: If the data cannot be used.
        """

    def checksums(self, config: Any) -> Mapping[str, Mapping[str, str]]:
        """Return checksums by dataset and file, for provenance; empty if the data are not here."""
