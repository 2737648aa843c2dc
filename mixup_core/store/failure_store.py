"""FailureStore: the causes of failed runs in a store.

    failures/<run key>.json    message, epoch and number of attempts

Each file contains its own sha256.
"""

import dataclasses
from collections.abc import Mapping

from mixup_core.rules import printable
from mixup_core.store.errors import UnreadableError
from mixup_core.store.files import Files
from mixup_core.store.manifests import NOT_AS_WRITTEN, Failure, built, seal
from mixup_core.store.names import FAILURE_NAME, failure_name
from mixup_core.store.sealed_files import SealedFiles


class FailureStore:
    """Reads and writes the stored failures of runs, by run key. The object is stateless."""

    def __init__(self, files: Files) -> None:
        """Open the failures among the files of a store (`Store.files`)."""
        self._files = files
        self._sealed = SealedFiles(files)

    def write(self, failure: Failure) -> None:
        """Store the failure of a run, replacing an earlier failure of this run.

        Raises:
            StoreFullError: If the disk is full.
        """
        self._sealed.write(failure_name(failure.run_key), seal(dataclasses.asdict(failure)))

    def read_all(self) -> Mapping[str, Failure]:
        """Return all stored failures of runs by run key; damaged files are moved to quarantine.

        Raises:
            FormatError: If a newer version of this program wrote one of them.
        """
        found = {}
        for name, sealed in self._files.read_present(self._names()):
            failure = self._failure_in(name, sealed)
            if failure is not None:
                found[failure.run_key] = failure
        return found

    def remove(self, run_key: str) -> None:
        """Remove the stored failure of a run, if there is one."""
        self._sealed.remove(failure_name(run_key))

    def verify(self) -> tuple[str, ...]:
        """Read the files of all failures of runs, and move damaged ones to `quarantine/`.

        Returns:
            One line per damaged file; empty if there is none.

        Raises:
            FormatError: If a newer version of this program wrote one of them.
        """
        names = self._names()
        sound = {failure_name(key) for key in self.read_all()}
        return tuple(f"{name}: damaged" for name in names if name not in sound)

    def _names(self) -> list[str]:
        return [name for name in self._files.names("failures") if FAILURE_NAME.fullmatch(name)]

    def _failure_in(self, name: str, sealed: bytes | UnreadableError) -> Failure | None:
        content = self._sealed.content(name, sealed)
        if content is None:
            return None
        try:
            failure = built(Failure, content)
        except NOT_AS_WRITTEN:
            self._sealed.quarantine(name, "is not a failure file")
            return None
        if name != f"failures/{failure.run_key}.json":
            self._sealed.quarantine(name, f"is the failure of another run, {failure.run_key}")
            return None
        # Another program, or another user of a shared store, may have written the text.
        trace = "\n".join(map(printable, failure.trace.splitlines()))
        return dataclasses.replace(failure, message=printable(failure.message), trace=trace)
