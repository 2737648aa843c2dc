"""PredictionStore: predictions are read with their own record, or not at all."""

from pathlib import Path

import pytest

from mixup_core.records import EpochRecord
from mixup_core.store.checkpoints import Store
from tests.mixup_core.store.other_processes import interrupted_at
from tests.mixup_core.store.stored_files import FACTS, KEY, write

LAST = EpochRecord(epoch=0, metrics={"test/error": 1 / 3})
OTHER = EpochRecord(epoch=0, metrics={"test/error": 0.5})
CONTENT = bytes(range(256)) * 40 + b"\n"


@pytest.fixture
def file(disk: Store) -> Path:
    """Stored predictions on a disk."""
    disk.predictions.write(KEY, LAST, CONTENT)
    (path,) = (disk.folder / "predictions").rglob("*.bin")
    return path


def test_predictions_are_read_with_their_own_record_and_the_first_ones_are_kept(
    store: Store,
) -> None:
    assert store.predictions.read(KEY, LAST) is None
    for content in (CONTENT, b"again"):
        store.predictions.write(KEY, LAST, content)
        assert store.predictions.read(KEY, LAST) == CONTENT
    assert store.predictions.read(KEY, OTHER) is None
    assert store.predictions.keys() == {KEY}
    store.predictions.write(KEY, OTHER, b"another machine's")
    assert store.predictions.read(KEY, OTHER) == b"another machine's"
    assert store.predictions.read(KEY, LAST) is None
    assert store.quarantined() == ()


def test_sizes_and_remove_return_the_bytes_of_stored_predictions(store: Store) -> None:
    store.predictions.write(KEY, LAST, CONTENT)
    sizes = store.predictions.sizes([KEY, "f" * 32])
    assert sizes == {KEY: pytest.approx(len(CONTENT), abs=250)}
    assert store.predictions.remove([KEY, "f" * 32]) == sizes[KEY]
    assert store.predictions.keys() == set()
    assert store.predictions.remove([KEY]) == 0


@pytest.mark.parametrize("place", [3, 60, 90, 150, 500, -1])
def test_predictions_with_a_flipped_bit_are_quarantined_and_missing(
    disk: Store, file: Path, place: int
) -> None:
    damaged = bytearray(file.read_bytes())
    damaged[place] ^= 1
    file.write_bytes(damaged)
    assert disk.predictions.read(KEY, LAST) is None
    is_of_record = place == 150  # the digest of the record: sound, and of no record there is
    assert len(disk.quarantined()) == (0 if is_of_record else 1)
    disk.predictions.write(KEY, LAST, CONTENT)
    assert disk.predictions.read(KEY, LAST) == CONTENT


def test_verify_checks_predictions_and_removes_files_of_dead_writers(
    disk: Store, file: Path
) -> None:
    write(disk, state=None, records=[LAST], facts=FACTS[:1])
    torn = file.with_name(f"{file.name}.x1y2z3_4.tmp")
    torn.write_bytes(b"half")
    assert disk.verify(stale_after=0.0) == ()
    assert not torn.exists()
    file.write_bytes(file.read_bytes()[:-1])
    assert disk.verify() == (f"predictions/01/{KEY}.bin: damaged",)
    assert disk.read(KEY) is not None


def test_predictions_that_another_process_removes_are_not_damaged(
    disk: Store, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupted_at(monkeypatch, type(disk.files), "read_present", file.unlink, after=0)
    assert disk.predictions.verify() == ()


def test_anything_but_a_regular_file_goes_to_quarantine(disk: Store, file: Path) -> None:
    file.unlink()
    file.mkdir()
    assert disk.predictions.read(KEY, LAST) is None
    disk.predictions.write(KEY, LAST, CONTENT)
    assert disk.predictions.read(KEY, LAST) == CONTENT
