"""Archives: what unpacks to far more than its size is refused before it is unpacked."""

import io
import random
import resource
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch

from mixup_core.archives import ArchiveError, read_arrays, require_unpacked
from mixup_core.predictions import Predictions, PredictionsError

HUGE = 1_500_000_000
"""Largest number of bytes to which half a megabyte may unpack."""


def deflated(name: str) -> bytes:
    """Return an archive of a tenth of a megabyte whose member unpacks to 100 MB."""
    buffer = io.BytesIO()
    with (
        zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open(name, "w", force_zip64=True) as member,
    ):
        np.lib.format.write_array_header_1_0(
            member, {"descr": "<f4", "fortran_order": False, "shape": (25_000_000,)}
        )
        for _ in range(100):
            member.write(bytes(1_000_000))
    return buffer.getvalue()


def overstated(descr: str = "<f4", shape: tuple[int, ...] = (HUGE,)) -> bytes:
    """Return an archive whose member declares more numbers than it contains."""
    buffer, member = io.BytesIO(), io.BytesIO()
    np.lib.format.write_array_header_1_0(
        member, {"descr": descr, "fortran_order": False, "shape": shape}
    )
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("a.npy", member.getvalue())
    return buffer.getvalue()


def pickled() -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, a=np.array([{}], dtype=object))
    return buffer.getvalue()


def peak_of(read: Callable[[], object]) -> int:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    read()
    return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (partial(deflated, "a.npy"), "got 100,000,"),
        (overstated, "^a.npy: .* bytes are too few for the shape"),
        (partial(overstated, "|V0", (10**12, 10)), "^a.npy: .* bytes are too few for the shape"),
        (partial(overstated, "<f4", (0, 10**20)), "not a readable archive of arrays"),
        (partial(overstated, "<f4", (True, True)), "not a readable archive of arrays"),
        (pickled, "not a readable archive of arrays"),
        (bytes, "not a readable zip archive"),
        (lambda: b"PK\x03\x04" + bytes(100), "not a readable zip archive"),
    ],
    ids=["deflated", "overstated", "no bytes", "wide", "truths", "pickled", "empty", "cut"],
)
def test_an_archive_of_objects_or_too_many_numbers_is_refused_without_allocating_them(
    make: Callable[[], bytes], reason: str
) -> None:
    content = make()

    def read() -> None:
        with pytest.raises(ArchiveError, match=reason):
            read_arrays(content)

    assert peak_of(read) < 50_000_000
    with pytest.raises(PredictionsError):
        Predictions.from_bytes(content)


def test_uncompressed_torch_files_are_accepted_and_compressed_ones_refused(tmp_path: Path) -> None:
    written, again = tmp_path / "written.pt", tmp_path / "again.pt"
    torch.save({"a": torch.zeros(1_000_000)}, written)
    with written.open("rb") as stream:
        require_unpacked(stream)
        assert stream.tell() == 0
    with zipfile.ZipFile(written) as old, zipfile.ZipFile(again, "w", zipfile.ZIP_DEFLATED) as new:
        for member in old.infolist():
            new.writestr(member.filename, old.read(member))
    with (
        again.open("rb") as stream,
        pytest.raises(ArchiveError, match="members must be uncompressed"),
    ):
        require_unpacked(stream)


def test_an_archive_with_changed_bytes_is_read_or_raises_an_archive_error() -> None:
    buffer = io.BytesIO()
    np.savez(buffer, a=np.arange(6, dtype=np.float16).reshape(2, 3), b=np.zeros(3, dtype=np.int64))
    whole, draw, refused = buffer.getvalue(), random.Random(0), 0
    for _ in range(3000):
        changed = bytearray(whole)
        for _ in range(draw.choice([1, 2, 4])):
            changed[draw.randrange(len(changed))] = draw.randrange(256)
        try:
            read_arrays(bytes(changed))
        except ArchiveError:
            refused += 1
    assert refused > 1000
