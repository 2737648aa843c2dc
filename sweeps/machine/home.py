"""Home: where a machine keeps its results, and the addresses that replace parts of it."""

import errno
import re
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True, slots=True)
class Home:
    """A folder with the store, the tracking database and the reports. Nothing is created here."""

    folder: Path
    store_url: str | None = None
    """Checkpoint store elsewhere: a path or any fsspec URL. None keeps it in `folder`."""
    tracking: str | None = None
    """MLflow server or database elsewhere. None keeps a database in `folder`."""
    optuna: str | None = None
    """Optuna storage elsewhere: a database URL, or the path of a journal file. None keeps a
    database in `folder`."""

    def __post_init__(self) -> None:
        """Check that the folder, there or not, has a place.

        Raises:
            OSError: If links lead round to where they began.
        """
        try:
            self.folder.stat()
        except OSError as error:
            if error.errno == errno.ELOOP:  # all else is for whoever reads or writes there
                raise

    @property
    def store(self) -> str:
        """Path or URL of the checkpoint store."""
        return self.store_url or str(self.folder.resolve() / "store")

    @property
    def tracking_uri(self) -> str:
        """Address for MLflow."""
        return self.tracking or f"sqlite:///{self.folder.resolve() / 'mlflow.db'}"

    @property
    def tracking_server(self) -> str | None:
        """Address of MLflow elsewhere, fit to be shown: a password in it is masked."""
        return None if self.tracking is None else masked(self.tracking)

    @property
    def optuna_url(self) -> str:
        """Storage of searches."""
        return self.optuna or f"sqlite:///{self.folder.resolve() / 'optuna.db'}"

    @property
    def artifact_location(self) -> str | None:
        """Where MLflow keeps files, as a URL; None leaves that to the server it talks to."""
        is_server = self.tracking is not None and self.tracking.startswith(("http:", "https:"))
        return None if is_server else (self.folder.resolve() / "artifacts").as_uri()

    def report_of(self, study: str) -> Path:
        """Return the folder of a study's report."""
        return self.folder / "reports" / study


def masked(text: str) -> str:
    """Return a text with the password of each address in it, if it has one, as `***`."""
    text = re.sub(r"(://[^/@:\s]*):[^/\s]+@", r"\1:***@", text)
    return re.sub(r"([?&]password=)[^&\s'\"]+", r"\1***", text)
