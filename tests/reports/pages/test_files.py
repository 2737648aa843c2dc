import subprocess
import sys
from pathlib import Path

import pytest

from reports.pages.files import replace_files


def names(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def test_files_are_written_and_others_of_the_folder_are_left(tmp_path: Path) -> None:
    folder = tmp_path / "reports" / "study"
    replace_files(folder, {"table.md": "one ±\n", "figures/a.png": b"\x89"})
    replace_files(folder, {"table.md": "two\n", "figures/b.png": b"\x90"})
    assert names(tmp_path) == {
        f"reports/study/{n}" for n in ("table.md", "figures/a.png", "figures/b.png")
    }
    assert (folder / "table.md").read_text() == "two\n"
    assert (folder / "figures" / "b.png").read_bytes() == b"\x90"


def test_if_one_file_cannot_be_written_none_is_replaced(tmp_path: Path) -> None:
    folder = tmp_path / "study"
    replace_files(folder, {"a": "old", "b": "old"})
    with pytest.raises(OSError, match="x" * 300):
        replace_files(folder, {"a": "new", "x" * 300: "too long a name"})
    assert (folder / "a").read_text() == "old"
    assert names(tmp_path) == {"study/a", "study/b"}


def test_a_folder_with_the_name_of_a_file_is_named_and_nothing_is_replaced(tmp_path: Path) -> None:
    folder = tmp_path / "study"
    replace_files(folder, {"a": "old", "b": "old"})
    (folder / "b").unlink()
    (folder / "b").mkdir()
    with pytest.raises(IsADirectoryError) as caught:
        replace_files(folder, {"a": "new", "b": "new"})
    assert caught.value.filename == str(folder / "b")
    assert (folder / "a").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["study"]


def test_only_the_report_that_a_killed_process_left_half_written_is_removed(
    tmp_path: Path,
) -> None:
    program = (
        "import os, sys; from pathlib import Path; from mixup_core.temporary import *\n"
        "with temporary_folder(Path(sys.argv[1]), '.study.') as folder:\n"
        "    (folder / 'a').touch(); os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=False)
    (left,) = tmp_path.iterdir()
    assert sorted(path.name for path in left.iterdir()) == ["a", "lock"]
    (tmp_path / ".study.conclusion.json").touch()
    replace_files(tmp_path / "study", {"a": "new"})
    assert names(tmp_path) == {"study/a", ".study.conclusion.json"}


def test_a_text_in_pieces_is_one_file(tmp_path: Path) -> None:
    replace_files(tmp_path / "out", {"a": iter(["one ±\n", "", "two\n"])})
    assert (tmp_path / "out" / "a").read_bytes() == "one ±\ntwo\n".encode()
