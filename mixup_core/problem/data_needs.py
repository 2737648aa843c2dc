"""DataNeeds: finding, fetching and checking the datasets that the runs of a problem need."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol


@dataclass(frozen=True, kw_only=True, slots=True)
class DataSet:
    """A dataset that runs can need, and whether it is on this machine."""

    name: str
    is_present: bool
    place: str
    """Folder of the files (it need not exist), or the package that contains them."""
    num_bytes: int | None
    """Size in memory of all training and test images; None if it is part of another dataset."""


@dataclass(frozen=True, kw_only=True, slots=True)
class KnownData:
    """Facts that a store keeps about the data of its runs, for reading results without the data."""

    configs: Sequence[Mapping[str, Any]] = ()
    """Configurations of the runs after `DataNeeds.prepare`, each flattened to path and value."""
    facts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Results of `DataNeeds.facts`, by digest of the data."""


class DataNeeds(Protocol):
    """Interface that finds, fetches, describes and checks the datasets of a problem's runs."""

    def root(self) -> Path:
        """Return the folder that contains the datasets on this machine."""

    def sets(self) -> Sequence[DataSet]:
        """Return the datasets that can be fetched, without opening a file."""

    def fetch(self, name: str) -> str:
        """Download a dataset unless it is on this machine; return its source.

        Raises:
            DataError: If every source failed; the message gives each reason and what to do by hand.
        """

    def prepare(self, config: Any, folder: Path) -> Any:
        """Return the configuration with the fields that describe its data (a digest) filled in.

        The method is called for each arm whenever a study is read, so slow results must be cached.

        Args:
            config: The configuration, as read from the study file.
            folder: Folder to which relative paths refer.

        Raises:
            DataError: If the data cannot be described.
            RuleError: If the data contradict the configuration.
        """

    def recall(self, known: Callable[[], KnownData], *, only: bool) -> None:
        """Let `prepare` use a store's knowledge of data that are not on this machine.

        Args:
            known: Returns the store's knowledge; called only when it is needed.
            only: True: use the store's knowledge even for data that are on this machine.
        """

    def facts(self, config: Any) -> Mapping[str, Mapping[str, Any]]:
        """Return facts about a prepared configuration's data, by digest, as JSON for the store."""

    def missing(self, config: Any) -> str | None:
        """Return a line that names missing data and how to get them; None if none are missing."""

    def check(self, config: Any) -> None:
        """Run the quick checks on data that this object has not checked yet; write nothing.

        Raises:
            DataError: If the data cannot be used.
        """

    def notes(self, config: Any) -> Iterable[str]:
        """Return notes for plans on how a prepared configuration's data are used."""

    def open(self, config: Any) -> None:
        """Open data that were not opened before, so that errors appear before the first run.

        Raises:
            DataError: If the data cannot be used.
        """

    def checksums(self, config: Any) -> Mapping[str, Mapping[str, str]]:
        """Return checksums by dataset and file, for provenance; empty if the data are missing."""
