"""Names of arms: the names that a study file may use, and the generated names of grid points."""

import hashlib
import re
from collections.abc import Mapping
from typing import Any

from mixup_core.config.written_forms import spelled

MAX_NAME = 100
"""Largest number of characters in the name of a study or an arm, including the values of a grid."""

ARM_NAME = r"[A-Za-z0-9][A-Za-z0-9._+-]{0,99}"


def arm_name(arm: str, point: Mapping[str, Any]) -> str:
    """Return the name of an arm at a point of a grid: `ARM PATH=VALUE ...`, such as `erm lr=0.1`.

    Each path is shortened to its last parts, to as few as distinguish it from the other paths of
    the point: `lr` for `optimizer.lr`.
    """
    words = [arm] if arm else []
    for path, value in point.items():
        parts = path.split(".")
        tails = (".".join(parts[start:]) for start in range(len(parts) - 1, -1, -1))
        label = next(
            tail
            for tail in tails
            if sum(f".{other}".endswith(f".{tail}") for other in point) == 1 or tail == path
        )
        words.append(f"{label}={_value_name(spelled(value))}")
    return " ".join(words)


def coded_values(point: Mapping[str, Any]) -> dict[str, str]:
    """Return the texts that a code replaces in an arm's name, by code: `{"5cea44": "фото"}`.

    A text value of the grid is replaced if it has more than 60 characters, or a character that is
    not ASCII. The code is made of the value's last ASCII letters, if any, and 6 digits of its hash.
    """
    texts = [value for value in map(spelled, point.values()) if isinstance(value, str)]
    return {
        name: text for text in texts if (name := _value_name(text)) != text and not _is_plain(text)
    }


def _is_plain(text: str) -> bool:
    return text.isascii() and len(text) <= _MOST_LETTERS


def _value_name(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case tuple():
            return "-".join(map(_value_name, value))
        case {**parts} if len(parts) == 1:
            ((tag, content),) = parts.items()
            return f"{tag}({_value_name(content)})"
        case {**parts}:
            return ",".join(f"{name}={_value_name(part)}" for name, part in parts.items())
        case _:
            text = str(value)
            plain = re.sub(r"[^A-Za-z0-9._+-]", "-", text)
            if _is_plain(text):
                return plain
            # All other letters become `-`; a hash keeps such values distinct.
            digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
            kept = re.sub(r"-+", "-", plain[-_KEPT_LETTERS:]).strip("-.")
            return f"{kept}-{digest[:6]}" if kept else digest[:6]


_MOST_LETTERS = 60
"""Longest text value that an arm's name contains in full, in characters."""
_KEPT_LETTERS = 24
"""Number of last characters kept of a longer value. File paths differ most at their ends."""
