"""Archives: read zip files of arrays or tensors, and refuse files that could fill the memory."""

import io
import math
import zipfile
from typing import IO, Any

from mixup_core.arrays import np

_DAMAGES = (
    ValueError, KeyError, OSError, EOFError, zipfile.BadZipFile, RuntimeError, TypeError,
    OverflowError,
)  # fmt: skip
"""Errors raised when a damaged archive is read. RuntimeError: encryption or unknown compression.
TypeError, OverflowError: a shape of other values than sizes."""


class ArchiveError(ValueError):
    """Error: a file is not a readable zip archive, or could take more memory than its own size."""


def require_unpacked(stream: IO[bytes]) -> None:
    """Check, before reading a zip archive, that all its members are uncompressed.

    NumPy and PyTorch write uncompressed members. A compressed member was written by another
    program, and could unpack to a thousand times its size.
    """
    size = stream.seek(0, io.SEEK_END)
    try:
        with zipfile.ZipFile(stream) as archive:
            members = archive.infolist()
    except _DAMAGES as error:
        raise ArchiveError(f"not a readable zip archive ({error})") from error
    stated = sum(member.file_size for member in members)
    if any(member.compress_type != zipfile.ZIP_STORED for member in members) or stated > size:
        raise ArchiveError(
            "damaged or unsafe zip archive: its members must be uncompressed and no larger than "
            f"the file, got {stated:,} bytes of members in a file of {size:,} bytes"
        )
    stream.seek(0)


def read_arrays(content: bytes) -> dict[str, Any]:
    """Return the arrays of an NPZ archive by name, without unpickling."""
    require_unpacked(io.BytesIO(content))
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            for member in archive.infolist():
                _require_whole(archive, member)
        with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
            return {name: arrays[name] for name in arrays.files}
    except ArchiveError:
        raise
    except _DAMAGES as error:
        raise ArchiveError(
            f"not a readable archive of arrays ({type(error).__name__}: {error})"
        ) from error


def _require_whole(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> None:
    """Check that a member is as large as the array that its header describes."""
    from numpy.lib import format as npy

    headers = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
    with archive.open(member) as stream:
        shape, _, dtype = headers[npy.read_magic(stream)](stream)
    if math.prod(shape) * max(1, dtype.itemsize) > member.file_size:
        raise ArchiveError(
            f"{member.filename}: {member.file_size:,} bytes are too few for the shape "
            f"{shape} in its header"
        )
