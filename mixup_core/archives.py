"""Archives: zip files of arrays or tensors, read only if they unpack to no more than their size."""

import io
import math
import zipfile
from typing import IO, Any

_DAMAGES = (ValueError, KeyError, OSError, EOFError, zipfile.BadZipFile, RuntimeError)
"""Errors raised when a damaged archive is read. RuntimeError: encryption or unknown compression."""


class ArchiveError(ValueError):
    """Error: the file is not a zip file, or declares more content than it has bytes."""


def require_unpacked(stream: IO[bytes]) -> None:
    """Check that the members of a zip archive are stored uncompressed, before any is read.

    NumPy and PyTorch write uncompressed members. A compressed member comes from another program,
    and could unpack to a thousand times its size.

    Args:
        stream: The archive, at any position. Afterwards it is rewound to its beginning.

    Raises:
        ArchiveError: If a member is compressed, or all members declare more bytes than the file
            has.
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
            f"damaged or unsafe: its uncompressed contents claim {stated:,} bytes, "
            f"but the file has only {size:,}"
        )
    stream.seek(0)


def read_arrays(content: bytes) -> dict[str, Any]:
    """Return the arrays of an NPZ archive by name, without unpickling.

    Raises:
        ArchiveError: If the bytes are no archive, or declare more content than they have.
    """
    import numpy as np
    from numpy.lib import format as npy

    headers = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
    require_unpacked(io.BytesIO(content))
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            for member in archive.infolist():
                with archive.open(member) as stream:
                    shape, _, dtype = headers[npy.read_magic(stream)](stream)
                if math.prod(shape) * dtype.itemsize > member.file_size:
                    too_large = f"{member.filename}: {member.file_size:,} bytes, stated as {shape}"
                    break
            else:
                too_large = None
        if too_large is None:
            with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
                return {name: arrays[name] for name in arrays.files}
    except _DAMAGES as error:
        raise ArchiveError(
            f"not a readable archive of arrays ({type(error).__name__}: {error})"
        ) from error
    raise ArchiveError(too_large)
