"""SealedFiles: files of a store that show whether they are as they were written.

    quarantine/    damaged files, under the last part of their names

Whoever reads a damaged file moves it there, and from then on it is absent.
"""

import logging
from pathlib import Path
from typing import Any

from mixup_core.store.errors import UnreadableError
from mixup_core.store.files import Files
from mixup_core.store.manifests import FORMAT, FormatError, unseal

_logger = logging.getLogger(__name__)


class SealedFiles:
    """Files of a store, none of which is taken for whole unread. Holds no state of its own.

    What is no file (a folder, a FIFO, a link that leads nowhere) is damaged, and moved as it is.
    """

    def __init__(self, files: Files) -> None:
        """Take the files of a store (`Store.files`)."""
        self._files = files

    def read(self, name: str) -> bytes | None:
        """Return a file's bytes; None if it is missing, or was damaged."""
        try:
            return self._files.read(name)
        except FileNotFoundError:
            return None
        except UnreadableError as error:
            self.quarantine(name, str(error))
            return None

    def content(self, name: str, sealed: bytes | UnreadableError) -> dict[str, Any] | None:
        """Return the content of a manifest or failure; None if it was damaged.

        Args:
            name: The file.
            sealed: Its bytes, or why it has none (see `Folder.read_present`).

        Raises:
            FormatError: If a newer version of this program wrote it.
        """
        if isinstance(sealed, UnreadableError):
            self.quarantine(name, str(sealed))
            return None
        content = unseal(sealed)
        if content is None:
            self.quarantine(name, "does not have the sha256 it states", sealed)
            return None
        if content["format"] > FORMAT:
            raise FormatError(
                f"{name}: store format {content['format']}, this program knows {FORMAT}"
            )
        return content

    def write(self, name: str, data: bytes) -> None:
        """Write a file in place of what has its name.

        Raises:
            StoreFullError: If the disk is full.
        """
        try:
            self._files.write(name, data)
        except IsADirectoryError:
            self.quarantine(name, "is no file")
            self._files.write(name, data)

    def remove(self, name: str) -> None:
        """Remove a file; what is none may hold somebody's files, and is put aside."""
        try:
            self._files.remove(name)
        except IsADirectoryError:
            self.quarantine(name, "is no file")

    def clear(self, name: str) -> None:
        """Remove a file that was listed, unless its writer lives."""
        if not (name.endswith(".tmp") and self._files.is_being_written(name)):
            self.remove(name)

    def quarantine(self, name: str, reason: str, content: bytes | None = None) -> None:
        """Move a damaged file aside, and log it.

        Args:
            name: The file.
            reason: What is wrong with it.
            content: What was read; a file with another by now is a good one, and put back.
        """
        aside = f"quarantine/{Path(name).name}"
        try:
            self._files.move(name, aside)
        except FileNotFoundError:
            return  # another reader was faster
        if content is not None and (moved := self._read_aside(aside)) not in {None, content}:
            assert moved is not None
            self._files.create(name, moved)
            return
        _logger.warning("%s %s; moved to quarantine", name, reason)

    def quarantined(self) -> tuple[str, ...]:
        """Return the names of the damaged files that were put aside, sorted."""
        return tuple(sorted(self._files.names("quarantine")))

    def _read_aside(self, name: str) -> bytes | None:
        try:
            return self._files.read(name)
        except (FileNotFoundError, UnreadableError):
            return None
