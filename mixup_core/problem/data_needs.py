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
    """Size in memory of all training and test images; None if the dataset is part of another one.
    """


@dataclass(frozen=True, kw_only=True, slots=True)
class KnownData:
    """Facts about data, such as class names, kept in a store for machines that lack the data."""

    configs: Sequence[Mapping[str, Any]] = ()
    """Configurations of the store's runs, as `DataNeeds.prepare` returned them: each maps the
    dotted name of a field to its value.
    """
    facts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Facts about data (see `DataNeeds.facts`), by digest of the data."""


class DataNeeds(Protocol):
    """Interface that finds, fetches, describes and checks the datasets of a problem's runs."""

    def root(self) -> Path:
        """Return the folder that contains the datasets on this machine."""

    def sets(self) -> Sequence[DataSet]:
        """Return the datasets that `fetch` can download; this method opens no file."""

    def fetch(self, name: str) -> str:
        """Download a dataset unless it is on this machine; return a text that names the source."""

    def prepare(self, config: Any, folder: Path) -> Any:
        """Fill in the fields of a configuration that describe its data, such as a digest.

        This method is called for each arm whenever a study file is read, so cache slow results.
        """

    def recall(self, known: Callable[[], KnownData], *, only: bool) -> None:
        """Let `prepare` use facts from a store to fill in a configuration whose data are missing.

        The facts describe data that other machines have, for example their class names.
        """

    def facts(self, config: Any) -> Mapping[str, Mapping[str, Any]]:
        """Return facts on a configuration's data, such as class names, to be kept in a store.

        With these facts, results can be read on machines where the data are missing (see `recall`).
        """

    def missing(self, config: Any) -> str | None:
        """Return a message on a configuration's missing data and how to get them.

        The result is None if all data are present.
        """

    def check(self, config: Any) -> None:
        """Check quickly that a configuration's data can be used; write nothing to disk."""

    def notes(self, config: Any) -> Iterable[str]:
        """Return notes on how a run uses its data, which `mixsweep plan` prints."""

    def open(self, config: Any) -> None:
        """Open a configuration's data as a run does, so that errors appear before the first run.

        Unlike `check`, this method may be slow and may write files that runs then load.
        """

    def checksums(self, config: Any) -> Mapping[str, Mapping[str, str]]:
        """Return the checksum of each file of a configuration's data, by dataset and file name.

        The result is empty if the data are missing. The checksums are stored with the results, to
        show which data were used.
        """
