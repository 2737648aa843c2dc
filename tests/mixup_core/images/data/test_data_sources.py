"""Archives: unpacked files are deleted when their reader ends, even after an error."""

import subprocess
import sys
from pathlib import Path

import pytest

from mixup_core.images.data.sources import unpacked
from tests.mixup_core.small_files import tar

READER = """
import sys, tempfile, time
from pathlib import Path
from mixup_core.images.data.sources import unpacked
tempfile.tempdir = sys.argv[1]
with unpacked(Path(sys.argv[2])) as folder:
    print(folder, flush=True)
    time.sleep(60)
"""


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    file = tmp_path / "images.tar"
    file.write_bytes(tar({"dtd/lock": b"abc"}))
    return file


def test_files_unpacked_by_a_killed_process_are_deleted_by_the_next_reader(
    tmp_path: Path, archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(place))
    reader = subprocess.Popen(
        [sys.executable, "-c", READER, str(place), str(archive)], stdout=subprocess.PIPE, text=True
    )
    assert reader.stdout is not None
    left = Path(reader.stdout.readline().strip())
    with unpacked(archive) as folder:
        assert (folder / "dtd" / "lock").read_bytes() == b"abc"
        assert (left / "dtd" / "lock").read_bytes() == b"abc", "its reader lives"
    reader.kill()
    reader.communicate()
    with unpacked(archive):
        assert not left.exists()
    assert list(place.iterdir()) == []
