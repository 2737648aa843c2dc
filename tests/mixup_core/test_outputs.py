"""Outputs: only regular files of the same kind are replaced, and only by complete files."""

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from mixup_core.outputs import OutputError, output_file, require_places

Make = Callable[[Path], object]


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(path))


def _link(path: Path) -> None:
    target = path.with_name("target")
    target.write_text("ours")
    path.symlink_to(target)


IN_THE_WAY: dict[str, Make] = {
    "folder": Path.mkdir,
    "pipe": os.mkfifo,
    "socket": _socket,
    "link": _link,
    "link that leads nowhere": lambda path: path.symlink_to("nowhere"),
}


def _is_own(path: Path) -> bool:
    return path.read_text().startswith("ours")


@pytest.mark.parametrize("kind", IN_THE_WAY)
def test_special_files_are_never_replaced(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # sockets have short names
    path = Path("out")
    IN_THE_WAY[kind](path)
    before = path.lstat()
    entries = sorted(Path().iterdir())
    refusing = pytest.raises(OutputError, match=rf"out: is a {kind.split()[0]} ")
    with refusing, output_file(path, "ours", _is_own):
        pytest.fail("opened")
    assert os.path.samestat(path.lstat(), before)
    assert sorted(Path().iterdir()) == entries
    with pytest.raises(OutputError, match="out"):
        require_places(tmp_path, ["out"], is_own=True)


def test_a_file_of_the_same_kind_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_text("ours, old")
    with output_file(path, "ours", _is_own) as place:
        place.write_text("ours, new")
        assert path.read_text() == "ours, old"
    assert path.read_text() == "ours, new"
    assert list(tmp_path.iterdir()) == [path]


def test_another_file_and_a_missing_folder_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_text("mine")
    refused = pytest.raises(OutputError, match="is not ours and is not replaced; give another name")
    with refused, output_file(path, "ours", _is_own):
        pytest.fail("opened")
    refused = pytest.raises(OutputError, match="absent does not exist")
    with refused, output_file(tmp_path / "absent" / "out", "ours", _is_own):
        pytest.fail("opened")
    assert path.read_text() == "mine"
    assert list(tmp_path.iterdir()) == [path]


def test_an_error_while_writing_leaves_the_earlier_file(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_text("ours, old")

    def write() -> None:
        with output_file(path, "ours", _is_own) as place:
            place.write_text("ours, n")
            raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        write()
    assert path.read_text() == "ours, old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_link_below_a_folder_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "figures").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OutputError, match="figures: is not a folder"):
        require_places(tmp_path / "out", ["figures/a.svg"], is_own=True)
    require_places(tmp_path / "out" / "figures", ["a.svg"], is_own=False)


def test_files_of_others_in_a_folder_are_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text("mine")
    require_places(tmp_path, ["table.csv"], is_own=True)
    require_places(tmp_path, ["other.csv", "figures/a.svg"], is_own=False)
    with pytest.raises(OutputError, match=r"table\.csv: was not written by this command"):
        require_places(tmp_path, ["other.csv", "table.csv"], is_own=False)
