"""Source: the code of a plugin, its digest, which is part of keys, and the place of its errors."""

import hashlib
import importlib.util
import platform
import sys
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint
from pathlib import Path

from mixup_core.addresses import local_path
from mixup_core.config.catalogue import Origin
from mixup_core.rules import printable
from mixup_core.store.errors import UnreadableError
from mixup_core.store.local_files import read_regular

_MAX_BYTES = 1_000_000
_CACHES = "__pycache__"


class PluginError(Exception):
    """Error: a plugin cannot be used. The text names the plugin and says what to do.

    Example:
        >>> from mixsweep.plugins import PluginError, use
        >>> try:
        ...     use("plugin.txt")
        ... except PluginError as error:
        ...     print(error)
        plugin plugin.txt: expected a Python file, whose name ends in .py
    """


@dataclass(frozen=True, kw_only=True, slots=True)
class Source:
    """The source of a plugin: the content of a file, or an installed package."""

    name: str
    """Name of the file, or of the distribution."""
    place: str
    """Absolute path of the file, or top-level name of the package."""
    digest: str
    """sha256 of the content, in hexadecimal; enters the keys of runs that use the plugin."""
    content: bytes | None = field(default=None, repr=False)
    """Content of the file, which is sent to every worker. None for a package, which must be
    installed on every node.
    """
    version: str = ""
    """Version of the distribution; empty for a file."""
    entries: tuple[str, ...] = ()
    """`module:attribute` of each entry to load from a package; empty for a file."""

    def origin(self, digest: str = "") -> Origin:
        """Return the origin of an entry."""
        return Origin(
            plugin=self.name, digest=digest or self.digest, source=self.digest, version=self.version
        )

    def holds(self, file: str) -> bool:
        """Return whether a file is this plugin's, or is in the imported package of this plugin."""
        if self.content is not None:
            return file == self.place
        top = getattr(sys.modules.get(self.place), "__file__", None) or ""
        is_folder = Path(top).name == "__init__.py"
        return file == top or (is_folder and Path(top).parent in Path(file).parents)


def read_source(path: str | Path) -> Source:
    """Return the source of a plugin file, read once: its digest is that of the code which runs."""
    file = local_path(path)
    if file.suffix != ".py":
        raise PluginError(f"plugin {path}: expected a Python file, whose name ends in .py")
    try:
        content = read_regular(file, _MAX_BYTES + 1)
    except (OSError, UnreadableError) as error:
        reason = (getattr(error, "strerror", None) or str(error)).lower()
        raise PluginError(f"plugin {path}: cannot read the file: {reason}") from error
    if len(content) > _MAX_BYTES:
        raise PluginError(f"plugin {path}: the file must have at most {_MAX_BYTES:,} bytes")
    return Source(
        name=file.name,
        place=str(file.absolute()),
        digest=hashlib.sha256(content).hexdigest(),
        content=content,
    )


def package_source(package: str, entries: Sequence[EntryPoint]) -> Source:
    """Return the source of a package that some entry points name, without running its code."""
    distribution = entries[0].dist
    name = package if distribution is None else distribution.name
    return Source(
        name=name,
        place=package,
        digest=package_digest(package, name),
        version="" if distribution is None else distribution.version,
        entries=tuple(entry.value for entry in entries),
    )


def package_digest(package: str, name: str) -> str:
    """Return the sha256 over names and contents of all files of an installed package.

    Line ends of Python files count as LF. Every file below the top-level package counts, because
    it may change what the plugin computes; only `.pyc` files and `__pycache__` folders do not.
    """
    found = importlib.util.find_spec(package)
    if found is None:
        raise PluginError(
            f"plugin {name}: the package {package} is not installed on {platform.node()}; install "
            "the same version on every node and launch again"
        )
    if found.origin is None:
        raise PluginError(
            f"plugin {name}: the package {package} has no __init__.py, so its files cannot be "
            "determined; add an __init__.py"
        )
    top = Path(found.origin)
    is_folder = found.submodule_search_locations is not None
    files = [top]
    if is_folder:
        below = (file for file in top.parent.rglob("*") if file.suffix != ".pyc")
        files = sorted(file for file in below if file.is_file() and _CACHES not in file.parts)
    digest = hashlib.sha256()
    try:
        for file in files:
            content = file.read_bytes()
            if file.suffix == ".py":
                content = content.replace(b"\r\n", b"\n")
            digest.update(str(file.relative_to(top.parent)).encode() + b"\0")
            digest.update(hashlib.sha256(content).digest())
    except OSError as error:
        raise PluginError(
            f"plugin {name}: cannot read {error.filename}: {error.strerror}"
        ) from error
    return digest.hexdigest()


_MODULE = "<module>"


def what_happened(error: BaseException, source: Source) -> str:
    """Return line and text of an error: ` in line 60 (read): RuntimeError: no images`."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if source.holds(f.filename)]
    line, function = (frames[-1].lineno, frames[-1].name) if frames else (None, _MODULE)
    if isinstance(error, SyntaxError):
        line, function = error.lineno, _MODULE
    is_package = source.content is None
    file = f" of {Path(frames[-1].filename).name}" if frames and is_package else ""
    where = "" if line is None else f" in line {line}{file}"
    where += "" if function == _MODULE else f" ({function})"
    return f"{where}: {type(error).__name__}: {text_of(error)}"


def text_of(error: BaseException) -> str:
    """Return the message of an error on one line, even if the error cannot produce it."""
    try:
        return printable(str(error.msg if isinstance(error, SyntaxError) else error))
    except Exception:
        return "(the text of this error cannot be produced)"
