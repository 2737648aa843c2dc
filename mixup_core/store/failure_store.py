"""FailureStore: the causes of failed runs in a store.

    failures/<run key>.json    message, epoch and number of attempts

Each file contains its own sha256.
"""

import dataclasses
from collections.abc import Iterable, Mapping
from pathlib import Path

from mixup_core.store.files import Files
from mixup_core.store.manifests import Failure, seal
from mixup_core.store.names import FAILURE_NAME, failure_name
from mixup_core.store.sealed_files import SealedFiles, known


class FailureStore:
    """Reads and writes the stored failures of runs, by run key. The object is stateless."""

    def __init__(self, files: Files) -> None:
        """Open the failures among the files of a store (`Store.files`)."""
        self._files = files
        self._sealed = SealedFiles(files)

    def write(self, failure: Failure) -> None:
        """Store the failure of a run, replacing an earlier failure of this run."""
        self._sealed.write(failure_name(failure.run_key), seal(dataclasses.asdict(failure)))

    def keys(self) -> frozenset[str]:
        """Return the run keys under which failures are stored; no file is validated."""
        names = self._files.names("failures")
        return frozenset(Path(name).stem for name in names if FAILURE_NAME.fullmatch(name))

    def read_all(self, keys: Iterable[str] | None = None) -> Mapping[str, Failure]:
        """Return stored failures by run key; damaged files are moved to quarantine."""
        names = {failure_name(key): key for key in sorted(self.keys() if keys is None else keys)}
        found = {}
        for name, sealed in self._files.read_present(names):
            failure = self._sealed.record(Failure, name, sealed, names[name])
            if failure is not None:
                found[failure.run_key] = failure
        return found

    def remove(self, run_key: str) -> None:
        """Remove the stored failure of a run, if there is one."""
        self._sealed.remove(failure_name(run_key))

    def verify(self) -> tuple[str, ...]:
        """Read the files of all failures of runs, and move damaged ones to `quarantine/`."""
        found = known(sorted(self.keys()), lambda key: self.read_all([key]))
        return tuple(f"{failure_name(key)}: damaged" for key, failure in found if not failure)
