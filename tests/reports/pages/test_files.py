import subprocess
import sys
from pathlib import Path

import pytest

from mixup_core.temporary import OutputError
from reports.pages.files import replace_files


def names(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def test_files_are_written_and_other_files_in_the_folder_are_kept(tmp_path: Path) -> None:
    folder = tmp_path / "reports" / "study"
    replace_files(folder, {"table.md": "one ±\n", "figures/a.png": b"\x89"}, is_own=True)
    replace_files(folder, {"table.md": "two\n", "figures/b.png": b"\x90"}, is_own=True)
    assert names(tmp_path) == {
        f"reports/study/{n}" for n in ("table.md", "figures/a.png", "figures/b.png")
    }
    assert (folder / "table.md").read_text() == "two\n"
    assert (folder / "figures" / "b.png").read_bytes() == b"\x90"


def test_no_file_is_replaced_if_one_cannot_be_written(tmp_path: Path) -> None:
    folder = tmp_path / "study"
    replace_files(folder, {"a": "old", "b": "old"}, is_own=True)
    with pytest.raises(OSError, match="x" * 300):
        replace_files(folder, {"a": "new", "x" * 300: "too long a name"}, is_own=True)
    assert (folder / "a").read_text() == "old"
    assert names(tmp_path) == {"study/a", "study/b"}


def test_a_folder_at_the_path_of_a_file_is_reported_and_no_file_is_replaced(tmp_path: Path) -> None:
    folder = tmp_path / "study"
    replace_files(folder, {"a": "old", "b": "old"}, is_own=True)
    (folder / "b").unlink()
    (folder / "b").mkdir()
    with pytest.raises(OutputError, match="is a folder and is not replaced"):
        replace_files(folder, {"a": "new", "b": "new"}, is_own=True)
    assert (folder / "a").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["study"]


def test_only_partial_reports_of_killed_processes_are_removed(
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
    replace_files(tmp_path / "study", {"a": "new"}, is_own=True)
    assert names(tmp_path) == {"study/a", ".study.conclusion.json"}


def test_former_files_below_a_link_are_not_deleted(tmp_path: Path) -> None:
    folder, other = tmp_path / "study", tmp_path / "other"
    other.mkdir()
    (other / "thesis.tex").write_text("mine")
    replace_files(folder, {"a": "old"}, is_own=True)
    (folder / "docs").symlink_to(other)
    with pytest.raises(OutputError, match="docs: is not a folder"):
        replace_files(folder, {"a": "new"}, is_own=True, former=["docs/thesis.tex"])
    assert (other / "thesis.tex").read_text() == "mine"
    assert (folder / "a").read_text() == "old"


def test_files_are_written_to_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    replace_files(Path(), {"a": "new", "figures/b": "new"}, is_own=True)
    assert names(tmp_path) == {"a", "figures/b"}
