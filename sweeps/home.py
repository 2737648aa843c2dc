"""Home: where a machine keeps its results, and the addresses that replace parts of it."""

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

    @property
    def store(self) -> str:
        """Path or URL of the checkpoint store."""
        return self.store_url or str(self.folder.resolve() / "store")

    @property
    def tracking_uri(self) -> str:
        """Address for MLflow."""
        return self.tracking or f"sqlite:///{self.folder.resolve() / 'mlflow.db'}"

    @property
    def optuna_url(self) -> str:
        """Storage of searches."""
        return self.optuna or f"sqlite:///{self.folder.resolve() / 'optuna.db'}"

    @property
    def artifact_location(self) -> str | None:
        """Where MLflow keeps files, as a URL; None leaves that to the server it talks to."""
        return None if self.tracking else (self.folder.resolve() / "artifacts").as_uri()

    def report_of(self, study: str) -> Path:
        """Return the folder of a study's report."""
        return self.folder / "reports" / study
