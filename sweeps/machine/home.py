"""Home: the folder for all that mixsweep writes; store, MLflow and Optuna can be elsewhere."""

import errno
import os
import shlex
from dataclasses import dataclass
from pathlib import Path

from mixup_core.addresses import Address, local_path, store_address
from sweeps.machine.command_line import OPTUNA, STORE, TRACKING
from sweeps.machine.databases import database_address, database_file, sqlite_url

# Frozen: this name, and those of the files and folders below. Earlier homes would look empty;
# tests/contracts/test_homes.py fails.
_MLFLOW = "mlflow.db"
_LONGEST = 490
"""Longest path of a home, in bytes. SQLite accepts paths of 512 bytes, which include the name of a
file in the home.
"""


class PlaceError(Exception):
    """Results cannot be stored under a path; the message says why and what to do."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Home:
    """The folder with the store, the MLflow and Optuna databases and the reports of studies.

    The store and the databases can be elsewhere. Creating this object creates no folder.
    """

    folder: Path
    store_url: str | None = None
    """Path or fsspec URL of the store; None for the folder `store/` in the home."""
    tracking: str | None = None
    """Address of an MLflow server or database; None for the MLflow database in the home."""
    optuna: str | None = None
    """Database URL or journal file of Optuna; None for the Optuna database in the home."""

    def __post_init__(self) -> None:
        """Expand `~` in the paths and check them; drop empty ones, and the home's own database."""
        object.__setattr__(self, "folder", local_path(self.folder))
        for name in ("store_url", "tracking", "optuna"):
            place = getattr(self, name) or None
            if place is not None and place.startswith("~"):
                place = str(local_path(place))
            if name == "tracking" and place and (file := database_file(place)) is not None:
                is_own = os.path.realpath(file) == os.path.realpath(self.folder / _MLFLOW)
                place = None if is_own else place
            object.__setattr__(self, name, place)
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
                f"--home {resolved}: the path has {len(os.fsencode(resolved))} bytes, too many for "
                f"SQLite; choose a path of at most {_LONGEST} bytes"
            )

    @property
    def store(self) -> str:
        if self.store_url is None:
            return str(self.folder.resolve() / "store")
        is_path = "://" not in self.store_url
        return str(Path(self.store_url).absolute()) if is_path else self.store_url

    @property
    def is_self_contained(self) -> bool:
        """True if both the store and MLflow's database are those in the folder."""
        default = self.folder.resolve() / "store"
        return self.tracking is None and Path(self.store).resolve() == default.resolve()

    @property
    def tracking_uri(self) -> str:
        return self.tracking or sqlite_url(self.folder.resolve() / _MLFLOW)

    @property
    def optuna_url(self) -> str:
        """Address of Optuna's storage, which records the points of searches."""
        return self.optuna or sqlite_url(self.folder.resolve() / "optuna.db")

    @property
    def options(self) -> str:
        """Command-line options that name this home; a secret address as its variable."""
        spelled = shlex.join(("--home", str(self.folder)))
        for (option, variable), place, shown in (
            (STORE, self.store_url, self.shown_store),
            (TRACKING, self.tracking, self.shown_tracking),
            (OPTUNA, self.optuna, self.shown_optuna),
        ):
            if place is not None:
                value = shlex.quote(place) if shown.is_whole else f'"${variable}"'
                spelled += f" {option} {value}"
        return spelled

    @property
    def shown_store(self) -> Address:
        return store_address(self.store)

    @property
    def shown_tracking(self) -> Address:
        return database_address(self.tracking_uri)

    @property
    def shown_optuna(self) -> Address:
        return database_address(self.optuna_url)

    @property
    def artifact_location(self) -> str | None:
        """URL of the folder for MLflow's artifacts; None if an MLflow server chooses it."""
        is_server = self.tracking is not None and self.tracking.startswith(("http:", "https:"))
        return None if is_server else (self.folder.resolve() / "artifacts").as_uri()

    def report_of(self, study: str) -> Path:
        return self.folder / "reports" / study


def _require_text(option: str, place: str) -> None:
    """Check that a path is UTF-8 text without control characters."""
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
