"""Names of arms: the names that a study file may use, and those of the points of a grid."""

import hashlib
import re
from collections.abc import Mapping
from typing import Any

from mixup_core.tree.written_forms import spelled

MAX_NAME = 100
"""Largest number of characters in the name of a study or an arm, grid values included."""

ARM_NAME = r"[A-Za-z0-9][A-Za-z0-9._+-]{0,99}"


def arm_name(arm: str, point: Mapping[str, Any]) -> str:
    """Return `ARM PATH=VALUE ...`, each path shortened to as few last parts as keep it unique."""
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
            if text.isascii() and len(text) <= _MOST_LETTERS:
                return plain
            # All other letters become `-`; a hash keeps such values distinct.
            digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
            kept = re.sub(r"-+", "-", plain[-_KEPT_LETTERS:]).strip("-.")
            return f"{kept}-{digest[:6]}" if kept else digest[:6]


_MOST_LETTERS = 60
"""Values with more letters are shortened in the name of an arm."""
_KEPT_LETTERS = 24
"""Number of last letters kept of a shortened value; the ends of file paths differ most."""
