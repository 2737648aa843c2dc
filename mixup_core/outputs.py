"""Outputs: files that a command writes to a place that the user names; nothing else is replaced."""

import os
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from mixup_core.file_errors import naming
from mixup_core.store.local_files import sync
from mixup_core.temporary import temporary_folder

_KINDS = {
    stat.S_IFDIR: "folder", stat.S_IFLNK: "link", stat.S_IFIFO: "pipe", stat.S_IFSOCK: "socket",
    stat.S_IFCHR: "device", stat.S_IFBLK: "device",
}  # fmt: skip


class OutputError(Exception):
    """Error: a file to write would replace a file that is not ours. The message names it."""


def require_free(path: Path) -> bool:
    """Require that a path is a regular file or does not exist; return True if it exists."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return False
    if not stat.S_ISREG(mode):
        kind = _KINDS.get(stat.S_IFMT(mode), "special file")
        raise OutputError(f"{path}: is a {kind} and is not replaced; name a regular file")
    return True


@contextmanager
def output_file(
    path: Path,
    kind: str,
    is_own: Callable[[Path], bool],
    *,
    makes_folder: bool = False,
) -> Iterator[Path]:
    """Yield a path to write a file to; it is synced and then moved to its place.

    If the code inside raises an error, the place is as it was.
    """
    if require_free(path) and not is_own(path):
        raise OutputError(f"{path}: is not {kind} and is not replaced; give another name")
    if makes_folder:
        path.parent.mkdir(parents=True, exist_ok=True)
    if not path.parent.is_dir():
        raise OutputError(f"{path}: the folder {path.parent} does not exist")
    with temporary_folder(path.parent, f".{path.name}.") as folder:
        unfinished = folder / path.name
        with naming(path):
            yield unfinished
        sync(unfinished)
        require_free(path)
        unfinished.replace(path)
    sync(path.parent)


def require_places(folder: Path, names: Iterable[str], *, is_own: bool) -> None:
    """Require that files can be written to a folder without replacing what is not ours."""
    for name in names:
        path = folder / name
        for parent in path.parents:
            if parent == folder.parent:
                break
            if os.path.lexists(parent) and (parent.is_symlink() or not parent.is_dir()):
                if parent == folder and parent.is_dir():
                    continue  # a link to a folder that the user has named
                raise OutputError(f"{parent}: is not a folder")
        if require_free(path) and not is_own:
            raise OutputError(
                f"{path}: was not written by this command and is not replaced; name another folder"
            )
