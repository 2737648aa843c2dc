"""SealedFiles: files of a store that contain their own checksum.

    quarantine/    damaged files, under the last part of their names

A damaged file is moved to `quarantine/` when it is read, and then counts as missing.
"""

import logging
from pathlib import Path
from typing import Any

from mixup_core.store.errors import UnreadableError
from mixup_core.store.files import Files
from mixup_core.store.manifests import FORMAT, FormatError, unseal

_logger = logging.getLogger(__name__)


class SealedFiles:
    """Files of a store that are validated when they are read. The object is stateless.

    Anything that is not a regular file (a folder, a FIFO, a broken link) counts as damaged and is
    moved without being opened.
    """

    def __init__(self, files: Files) -> None:
        """Wrap the files of a store (`Store.files`)."""
        self._files = files

    def read(self, name: str) -> bytes | None:
        """Return the bytes of a file; None if it is missing or damaged."""
        try:
            return self._files.read(name)
        except FileNotFoundError:
            return None
        except UnreadableError as error:
            self.quarantine(name, str(error))
            return None

    def content(self, name: str, sealed: bytes | UnreadableError) -> dict[str, Any] | None:
        """Return the content of a manifest or failure; None if it is damaged.

        Args:
            name: The file.
            sealed: Its bytes, or the error that reading raised (see `Folder.read_present`).

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
                f"{name}: store format {content['format']}, this program reads format {FORMAT}: "
                "install a newer version"
            )
        return content

    def write(self, name: str, data: bytes) -> None:
        """Write a file; replace a file of the same name, or move a folder of that name aside.

        Raises:
            StoreFullError: If the disk is full.
        """
        try:
            self._files.write(name, data)
        except IsADirectoryError:
            self.quarantine(name, "is no file")
            self._files.write(name, data)

    def remove(self, name: str) -> None:
        """Remove a file. A folder of that name may hold foreign files: it is moved aside."""
        try:
            self._files.remove(name)
        except IsADirectoryError:
            self.quarantine(name, "is no file")

    def clear(self, name: str) -> None:
        """Remove a file unless its writer is alive."""
        if not (name.endswith(".tmp") and self._files.is_being_written(name)):
            self.remove(name)

    def quarantine(self, name: str, reason: str, content: bytes | None = None) -> None:
        """Move a damaged file to quarantine and log it.

        Args:
            name: The file.
            reason: Description of the damage.
            content: The bytes that were read. If the file has other bytes when it is moved, another
                process has written it again, and it is put back.
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
        """Return the names of the files in quarantine, sorted."""
        return tuple(sorted(self._files.names("quarantine")))

    def _read_aside(self, name: str) -> bytes | None:
        try:
            return self._files.read(name)
        except (FileNotFoundError, UnreadableError):
            return None
