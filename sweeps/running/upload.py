"""Upload: the files that are sent with a job, each named because the job needs it."""

import os
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from mixup_core.rules import printable
from mixup_core.store.local_files import open_regular

_PACKAGES = ("mixsweep", "reports", "sweeps", "mixup_core", "cluster")
_SOURCES = {".py", ".yaml", ".bib", ".html", ".sh", ".sbatch", ".service", ".md"}
"""Endings of the files of these packages that an installation has too."""
_DATA = Path("reports", "published")
"""Folder of a checkout that an installation lacks."""
_LARGEST = 500 * 2**20
"""Largest upload, in bytes; Ray itself refuses 512 MiB and more."""
_OLDEST = (1980, 1, 1, 0, 0, 0)
"""Time stamp of every file in an archive. With it, equal files give equal archives, which Ray
uploads only once."""


class UploadError(Exception):
    """A file cannot be uploaded; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class Upload:
    """The files that are sent with a job."""

    files: Mapping[str, Path]
    """Files by their path in the working directory of the job, in sorted order."""

    @classmethod
    def of(cls, files: Iterable[Path], *, folder: Path) -> "Upload":
        """Return an upload of files, and of the packages of mixsweep if they run from a checkout.

        Files below `folder`, that of the study file, keep their place; others are put beside it.
        Raises `UploadError` if two files have the same name, or a name is not UTF-8.
        """
        by_name: dict[str, Path] = {}
        # Links are not followed: the study names a file in a linked folder by the link.
        root = os.path.abspath(folder)  # noqa: PTH100
        for file in dict.fromkeys(path.absolute() for path in files):
            path = Path(os.path.abspath(file))  # noqa: PTH100
            name = path.relative_to(root).as_posix() if path.is_relative_to(root) else path.name
            if name in by_name:
                raise UploadError(f"{by_name[name]} and {file}: both would be {name} in the job")
            try:
                name.encode()
            except UnicodeEncodeError as error:
                raise UploadError(
                    f"{printable(ascii(str(file)))}: the name is not UTF-8, so the file cannot be "
                    "uploaded; rename the file"
                ) from error
            by_name[name] = file
        return cls(dict(sorted((_checkout() | by_name).items())))

    def name_of(self, file: Path) -> str:
        return next(name for name, path in self.files.items() if path == file.absolute())

    def write(self, archive: Path) -> None:
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as packed:
            for name, file in self.files.items():
                with open_regular(file) as stream:
                    member = zipfile.ZipInfo(name, _OLDEST)
                    member.compress_type = zipfile.ZIP_DEFLATED
                    member.external_attr = os.fstat(stream.fileno()).st_mode << 16
                    packed.writestr(member, stream.read())
        if (size := archive.stat().st_size) > _LARGEST:
            raise UploadError(
                f"the upload has {size / 1e6:,.0f} MB, but Ray accepts at most "
                f"{_LARGEST / 1e6:,.0f} MB; `--list-files` prints the files in it; name large ones "
                "by a path that all nodes can read"
            )


def checkout() -> Path | None:
    root = Path(__file__).resolve().parents[2]
    return root if (root / "pyproject.toml").is_file() else None


def _checkout() -> dict[str, Path]:
    """Return the files of the packages of a checkout by their path in it; none if installed."""
    root = checkout()
    if root is None:
        return {}
    by_path = {}
    for package in _PACKAGES:
        spec = find_spec(package)
        if spec is None or spec.origin is None:
            continue
        for file in Path(spec.origin).resolve().parent.rglob("*"):
            place = file.relative_to(root) if file.is_relative_to(root) else Path(file.name)
            if file.suffix in _SOURCES and file.is_file() and not place.is_relative_to(_DATA):
                by_path[place.as_posix()] = file
    return by_path
