"""Digests of files. No torch."""

import hashlib
from pathlib import Path

from mixup_core.images.data.facts import DataError


def file_digest(file: Path, algorithm: str = "sha256") -> str:
    """Return the digest of a file's contents in hexadecimal digits.

    Raises:
        DataError: If the file cannot be read.
    """
    try:
        with file.open("rb") as stream:
            return hashlib.file_digest(stream, algorithm).hexdigest()
    except OSError as error:
        raise DataError(f"{file}: {error.strerror}.") from error
