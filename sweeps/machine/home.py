"""Home: the folder of a machine's results, and the addresses that replace parts of it."""

import errno
import os
from dataclasses import dataclass
from pathlib import Path

from mixup_core.addresses import Address, local_path, store_address
from sweeps.machine.databases import database_address, sqlite_url

_LONGEST = 490
"""Largest number of bytes in a home's path: SQLite accepts 512, including a file name in the home.
"""


class PlaceError(Exception):
    """A path that cannot be used for results; the message says why and what to do."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Home:
    """A folder with the store, the tracking database and the reports. Nothing is created here."""

    folder: Path
    store_url: str | None = None
    """Checkpoint store elsewhere: a path or any fsspec URL. None for the one in `folder`."""
    tracking: str | None = None
    """MLflow server or database elsewhere. None for the database in `folder`."""
    optuna: str | None = None
    """Optuna storage elsewhere: a database URL, or the path of a journal file. None for the
    database in `folder`."""

    def __post_init__(self) -> None:
        """Check that every library can use the paths; the folder need not exist yet.

        Raises:
            OSError: If links form a loop.
            PlaceError: If a path is too long, not UTF-8, or has a control character.
        """
        object.__setattr__(self, "folder", local_path(self.folder))
        places = {"--home": str(self.folder), "--store": self.store_url,
                  "--tracking-uri": self.tracking, "--optuna": self.optuna}  # fmt: skip
        for option, place in places.items():
            _require_text(option, place or "")
        try:
            self.folder.stat()
        except OSError as error:
            if error.errno == errno.ELOOP:  # other errors are reported on first use
                raise
        _require_text("--home", resolved := str(self.folder.resolve()))
        if len(os.fsencode(resolved)) > _LONGEST:
            raise PlaceError(
                f"--home {resolved}: the path has {len(os.fsencode(resolved))} bytes, and SQLite "
                f"opens no file there; choose a path of at most {_LONGEST} bytes"
            )

    @property
    def store(self) -> str:
        """Path or URL of the checkpoint store."""
        if self.store_url is None:
            return str(self.folder.resolve() / "store")
        is_path = "://" not in self.store_url
        return str(Path(self.store_url).absolute()) if is_path else self.store_url

    @property
    def tracking_uri(self) -> str:
        """Address of MLflow."""
        return self.tracking or sqlite_url(self.folder.resolve() / "mlflow.db")

    @property
    def optuna_url(self) -> str:
        """Address of the storage of searches."""
        return self.optuna or sqlite_url(self.folder.resolve() / "optuna.db")

    @property
    def shown_store(self) -> Address:
        """The checkpoint store's address, without secrets."""
        return store_address(self.store)

    @property
    def shown_tracking(self) -> Address:
        """MLflow's address, without secrets."""
        return database_address(self.tracking_uri)

    @property
    def shown_optuna(self) -> Address:
        """The address of the storage of searches, without secrets."""
        return database_address(self.optuna_url)

    @property
    def artifact_location(self) -> str | None:
        """URL of the folder for MLflow's files; None if the server chooses it."""
        is_server = self.tracking is not None and self.tracking.startswith(("http:", "https:"))
        return None if is_server else (self.folder.resolve() / "artifacts").as_uri()

    def report_of(self, study: str) -> Path:
        """Return the folder of a study's report."""
        return self.folder / "reports" / study


def _require_text(option: str, place: str) -> None:
    """Check that a path can be used in a URL, a database, JSON and one line of text.

    Raises:
        PlaceError: If not.
    """
    try:
        place.encode()
    except UnicodeEncodeError as error:
        raise PlaceError(
            f"{option} {place!a}: the path is not UTF-8, which databases and URLs need; "
            "rename the folder or choose another"
        ) from error
    if any(ord(letter) < 32 or ord(letter) == 127 for letter in place):
        raise PlaceError(
            f"{option}: the path has a control character (such as a line break); rename the "
            "folder or choose another"
        )
