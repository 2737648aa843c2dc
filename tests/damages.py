"""Damages: ways in which a file can be damaged, and a folder whose file modes bind even root."""

import os
import random
import shutil
import socket
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

Damage = Callable[[Path], object]

_NOBODY = 65534


def _flip(path: Path) -> None:
    content = bytearray(path.read_bytes() or b"\0")
    content[len(content) // 2] ^= 4
    path.write_bytes(content)


def _folder(path: Path) -> None:
    path.mkdir()
    (path / "notes.txt").write_text("of a colleague")


def _socket(path: Path) -> None:
    here = Path.cwd()
    os.chdir(path.parent)  # the name of a socket has at most 107 bytes
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path.name)
    os.chdir(here)


def _replaced_by(make: Damage) -> Damage:
    """Return a damage that removes the file and makes another object with its name."""

    def damage(path: Path) -> None:
        path.unlink()
        make(path)

    return damage


CONTENTS: Mapping[str, Damage] = {
    "empty": lambda path: path.write_bytes(b""),
    "truncated": lambda path: os.truncate(path, path.stat().st_size // 2),
    "bit flipped": _flip,
    "random": lambda path: path.write_bytes(
        random.Random(0).randbytes(max(path.stat().st_size, 64))
    ),
    "a list": lambda path: path.write_text("[1, 2]"),
    "other's content": lambda path: path.write_text('{"mine": "notes of a colleague"}\n'),
}
"""Damages after which the file still exists."""

NO_FILES: Mapping[str, Damage] = {
    "a folder": _replaced_by(_folder),
    "a dangling link": _replaced_by(lambda path: path.symlink_to("/nowhere/at/all")),
    "a link to itself": _replaced_by(lambda path: path.symlink_to(path.name)),
    "a FIFO": _replaced_by(os.mkfifo),
    "a socket": _replaced_by(_socket),
    "unreadable": lambda path: path.chmod(0),
}
"""Damages after which nothing can be read under the file's name."""

DAMAGES: Mapping[str, Damage] = {**CONTENTS, **NO_FILES, "missing": Path.unlink}


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
