"""Damages: ways in which a file can be damaged, and a folder whose file modes bind even root."""

import os
import random
import shutil
import socket
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

Damage = Callable[[Path], None]

_NOBODY = 65534


def _empty(path: Path) -> None:
    path.write_bytes(b"")


def _truncate(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def _flip(path: Path) -> None:
    content = bytearray(path.read_bytes() or b"\0")
    content[len(content) // 2] ^= 4
    path.write_bytes(content)


def _randomise(path: Path) -> None:
    path.write_bytes(random.Random(0).randbytes(max(path.stat().st_size, 64)))


def _list(path: Path) -> None:
    path.write_text("[1, 2]")


def _other(path: Path) -> None:
    path.write_text('{"mine": "notes of a colleague"}\n')


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()
    (path / "notes.txt").write_text("of a colleague")


def _dangling_link(path: Path) -> None:
    path.unlink()
    path.symlink_to("/nowhere/at/all")


def _link_to_itself(path: Path) -> None:
    path.unlink()
    path.symlink_to(path.name)


def _fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _socket(path: Path) -> None:
    path.unlink()
    here = Path.cwd()
    os.chdir(path.parent)  # the name of a socket has at most 107 bytes
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path.name)
    os.chdir(here)


def _close(path: Path) -> None:
    path.chmod(0)


def _remove(path: Path) -> None:
    path.unlink()


CONTENTS: Mapping[str, Damage] = {
    "empty": _empty,
    "truncated": _truncate,
    "bit flipped": _flip,
    "random": _randomise,
    "a list": _list,
    "other's content": _other,
}
"""Damages after which the file still exists."""

NO_FILES: Mapping[str, Damage] = {
    "a folder": _folder,
    "a dangling link": _dangling_link,
    "a link to itself": _link_to_itself,
    "a FIFO": _fifo,
    "a socket": _socket,
    "unreadable": _close,
}
"""Damages after which nothing can be read under the file's name."""

DAMAGES: Mapping[str, Damage] = {**CONTENTS, **NO_FILES, "missing": _remove}


@contextmanager
def bound_by_modes() -> Iterator[Path]:
    """Yield a new folder in which file modes bind this process even if it is root."""
    folder = Path(tempfile.mkdtemp(prefix="modes-"))
    is_root = os.geteuid() == 0
    if is_root:
        os.chown(folder, _NOBODY, _NOBODY)
        os.setegid(_NOBODY)
        os.seteuid(_NOBODY)
    try:
        yield folder
    finally:
        if is_root:
            os.seteuid(0)
            os.setegid(0)
        shutil.rmtree(folder)
