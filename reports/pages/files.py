"""Files: writes the files of a report; each replaces its earlier version atomically."""

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from mixup_core.store.errors import naming
from mixup_core.store.local_files import share, sync
from mixup_core.temporary import require_places, temporary_folder

Content = str | bytes | Iterable[str]
"""Content of a file: all of it, or pieces of text that are written one after the other."""


def replace_files(
    folder: Path,
    contents: Mapping[str, Content],
    *,
    is_own: bool,
    former: Collection[str] = (),
) -> None:
    """Write all files to a temporary folder, delete `former` ones, then move each into place."""
    require_places(folder, [*contents, *former], is_own=is_own)
    _make(folder.parent)
    with temporary_folder(folder.parent, f".{folder.name}.") as own:
        staged = own / "staged"  # the name of the folder `.` is empty
        staged.mkdir()
        for name, content in contents.items():
            path = staged / name
            path.parent.mkdir(exist_ok=True)
            pieces = [content] if isinstance(content, str | bytes) else content
            with naming(path), path.open("wb") as file:
                for piece in pieces:
                    file.write(piece.encode() if isinstance(piece, str) else piece)
            sync(path)
        for path in (folder / name for name in former):
            if path.is_file():
                path.unlink()
        for name in contents:
            _make((folder / name).parent)
            (staged / name).replace(folder / name)
        for place in {(folder / name).parent for name in contents}:
            sync(place)


def _make(folder: Path) -> None:
    if not folder.is_dir():
        _make(folder.parent)
        folder.mkdir(exist_ok=True)
        share(folder)
