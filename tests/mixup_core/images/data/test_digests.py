"""Digests: hashes of files, and the cache of hashes of unchanged files."""

import hashlib
import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from mixup_core.images.data.digests import KnownDigests, file_digest
from mixup_core.images.data.facts import DataError
from tests.damages import DAMAGES, bound_by_modes

FORGED = "f" * 64
"""A false hash that is put into the cache; it is returned only if the file was not read."""
SECOND_NS = 1_000_000_000


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Folder of three files."""
    folder = tmp_path / "images"
    folder.mkdir()
    for number in range(3):
        (folder / f"{number}.png").write_bytes(b"%d" % number)
    return folder


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    return tmp_path / "data" / "digests" / "kept.json"


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> None:
    """A time ten seconds after everything was written."""
    now = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: now() + 10 * SECOND_NS)


def true_digests(folder: Path) -> dict[str, str]:
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in folder.iterdir()}


def told(folder: Path, kept: Path) -> dict[str, str]:
    """Return the hash of each file, and update the cache."""
    known = KnownDigests(kept)
    with os.scandir(folder) as entries:
        found = {entry.name: known.of(entry) for entry in entries}
    known.keep()
    return found


def forge(kept: Path, **changes: Any) -> None:
    """Put false hashes into the cache, one per file."""
    memory = json.loads(kept.read_text())
    for path, entry in memory.items():
        entry[-1] = FORGED
        memory[path] = changes.get(Path(path).stem, entry)
    kept.write_text(json.dumps(memory))


@pytest.mark.parametrize(
    ("damage", "reason"),
    [("unreadable", "denies access to its owner"), ("missing", "No such file or directory")],
)
def test_an_unreadable_file_raises_a_data_error_with_name_and_reason(
    damage: str, reason: str
) -> None:
    with bound_by_modes() as folder:
        file = folder / "file"
        file.touch()
        DAMAGES[damage](file)
        with pytest.raises(DataError) as caught:
            file_digest(file)
        assert str(caught.value) == f"{file}: {reason}."


@pytest.mark.usefixtures("later")
def test_unchanged_files_are_not_read_again(folder: Path, kept: Path) -> None:
    assert told(folder, kept) == true_digests(folder)
    assert set(json.loads(kept.read_text())) == {str(file) for file in folder.iterdir()}
    forge(kept)
    assert told(folder, kept) == dict.fromkeys(["0.png", "1.png", "2.png"], FORGED)


@pytest.mark.usefixtures("later")
@pytest.mark.parametrize(
    "entry", [0, 1, 2, None, [], "text", {}, [1, 2, 3], [1, 2, 3, 4], [[1], 2, 3, FORGED]]
)
def test_a_file_is_read_again_if_its_entry_has_another_size_or_time_or_is_malformed(
    folder: Path, kept: Path, entry: Any
) -> None:
    told(folder, kept)
    if isinstance(entry, int):  # place of the size or a time
        place, entry = entry, json.loads(kept.read_text())[str(folder / "1.png")]
        entry[place] += 1
        entry[-1] = FORGED
    forge(kept, **{"1": entry})
    expected = {**dict.fromkeys(["0.png", "2.png"], FORGED), "1.png": true_digests(folder)["1.png"]}
    assert told(folder, kept) == expected
    assert told(folder, kept) == expected, "what was read again is kept"


@pytest.mark.usefixtures("later")
def test_content_that_was_changed_under_the_same_size_and_time_is_read_again(
    folder: Path, kept: Path
) -> None:
    told(folder, kept)
    file = folder / "1.png"
    before = file.stat()
    file.write_bytes(b"x")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (file.stat().st_size, file.stat().st_mtime_ns) == (before.st_size, before.st_mtime_ns)
    assert told(folder, kept)["1.png"] == hashlib.sha256(b"x").hexdigest()


@pytest.mark.parametrize(("age", "is_kept"), [(2 * SECOND_NS, False), (2 * SECOND_NS + 1, True)])
def test_a_digest_is_cached_only_when_the_file_is_older_than_two_seconds(
    folder: Path, kept: Path, monkeypatch: pytest.MonkeyPatch, age: int, is_kept: bool
) -> None:
    file = folder / "0.png"
    os.utime(file, (1_000_000_000, 1_000_000_000))  # its entry is as young as before
    for other in ("1.png", "2.png"):
        (folder / other).unlink()
    youngest = max(file.stat().st_mtime_ns, file.stat().st_ctime_ns)
    assert youngest == file.stat().st_ctime_ns
    monkeypatch.setattr(time, "time_ns", lambda: youngest + age)
    told(folder, kept)
    assert kept.exists() == is_kept


@pytest.mark.usefixtures("later")
@pytest.mark.parametrize("damage", sorted(DAMAGES))
def test_a_damaged_or_replaced_cache_file_is_ignored(folder: Path, kept: Path, damage: str) -> None:
    told(folder, kept)
    DAMAGES[damage](kept)
    assert told(folder, kept) == true_digests(folder)
    assert list(kept.parent.iterdir()) == [kept]


@pytest.mark.usefixtures("later")
def test_entries_of_deleted_files_are_removed_from_the_cache(folder: Path, kept: Path) -> None:
    told(folder, kept)
    (folder / "1.png").unlink()
    assert told(folder, kept).keys() == {"0.png", "2.png"}
    assert json.loads(kept.read_text()).keys() == {str(folder / f"{n}.png") for n in (0, 2)}


@pytest.mark.usefixtures("later")
def test_leftovers_of_a_killed_process_beside_the_cache_are_deleted(
    folder: Path, kept: Path
) -> None:
    told(folder, kept)
    kept.with_name(f"{kept.name}.4711").write_text("{")
    kept.with_name("another.json").write_text("{}")
    (folder / "3.png").touch()
    told(folder, kept)
    assert sorted(path.name for path in kept.parent.iterdir()) == ["another.json", kept.name]


@pytest.mark.usefixtures("later")
def test_digests_are_computed_when_the_cache_cannot_be_written(
    folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    assert told(folder, tmp_path / "file" / "kept.json") == true_digests(folder)
    assert (tmp_path / "file").is_file()
