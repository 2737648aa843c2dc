"""Notes: small JSON files on which no computed number depends.

Leases, the ledger, the provenance of a report and caches are notes. Other programs may
change them, so a note that is not a regular file, too large or malformed counts as missing, and
is written again.
"""

import dataclasses
import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import UnionType
from typing import Any, TypeVar, get_args, get_origin

from mixup_core.store.errors import UnreadableError
from mixup_core.store.local_files import read_regular

LARGEST = 2**26
"""Size limit for reading notes, in bytes; the provenance of 10,000 runs needs a tenth of it."""
LATEST_MS = 250_000_000_000_000
"""Latest accepted Unix time in ms, in the year 9892; later times cannot be formatted as a date."""

_Kind = TypeVar("_Kind")


def read_note(path: Path) -> dict[str, Any] | None:
    """Return the mapping in a local JSON file; None if the file is missing or malformed."""
    try:
        return parse_note(read_regular(path, LARGEST))
    except (OSError, UnreadableError):
        return None


def parse_note(content: bytes | UnreadableError) -> dict[str, Any] | None:
    """Return the mapping in a JSON text; None if it is malformed, no mapping or not valid Unicode.

    Args:
        content: Content of a file, or the error that reading it raised, which gives None.
    """
    if isinstance(content, UnreadableError):
        return None
    try:
        note = json.loads(content)
        if b"\\u" in content:  # half of a surrogate pair, which cannot be encoded
            json.dumps(note, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return None
    return note if isinstance(note, dict) else None


def filled(kind: type[_Kind], plain: object) -> _Kind | None:
    """Build a dataclass from parsed JSON, whose types are checked; ignore fields of later versions.

    A missing field takes its default, or None. Lists become tuples.

    Args:
        kind: The dataclass. The types of its fields may be plain types, dataclasses, tuples,
            mappings from text, unions of these, and `Any`.
        plain: Parsed JSON. Anything but a mapping gives None.

    Returns:
        The instance; None if a field has another type.
    """
    try:
        found: _Kind = _as(kind, plain)
    except TypeError:
        return None
    return found


def _as(kind: Any, plain: Any) -> Any:
    """Return a parsed JSON value converted to a type.

    Raises:
        TypeError: If the value has another type.
    """
    if kind is Any:
        return plain
    origin = get_origin(kind)
    if origin is UnionType:
        for one in get_args(kind):
            with suppress(TypeError):
                return _as(one, plain)
    elif origin is tuple and isinstance(plain, list | tuple):
        return tuple(_as(get_args(kind)[0], part) for part in plain)
    elif origin is Mapping and isinstance(plain, dict):
        return {name: _as(get_args(kind)[1], part) for name, part in plain.items()}
    elif isinstance(kind, type) and dataclasses.is_dataclass(kind) and isinstance(plain, dict):
        return kind(**{field.name: _field(field, plain) for field in dataclasses.fields(kind)})
    elif origin is None and isinstance(plain, kind) and isinstance(plain, bool) == (kind is bool):
        return plain
    raise TypeError(f"{kind} must be the type of a value, got ({type(plain)=}).")


def _field(field: dataclasses.Field[Any], plain: dict[str, Any]) -> Any:
    if field.name not in plain and field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    otherwise = None if field.default is dataclasses.MISSING else field.default
    return _as(field.type, plain.get(field.name, otherwise))
