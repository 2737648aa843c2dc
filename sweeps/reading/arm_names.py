"""Names of arms: what a study file may call one, and what a grid calls its points."""

import re
from typing import Any

from mixup_core.laws import Beta, Erm, Midpoint
from mixup_core.tree import spelled
from sweeps.reading.config_paths import Settings

MAX_NAME = 100
"""Characters of a study or an arm, grid values included."""

ARM_NAME = r"[A-Za-z0-9][A-Za-z0-9._+-]{0,99}"


def arm_name(arm: str, point: Settings) -> str:
    """Return `ARM PATH=VALUE ...`, paths by as few last parts as tell them apart."""
    words = [arm] if arm else []
    for path, setting in point.items():
        parts = path.split(".")
        tails = (".".join(parts[start:]) for start in range(len(parts) - 1, -1, -1))
        label = next(
            tail
            for tail in tails
            if sum(f".{other}".endswith(f".{tail}") for other in point) == 1 or tail == path
        )
        words.append(f"{label}={_value_name(setting.value)}")
    return " ".join(words)


def _value_name(value: Any) -> str:
    match value:
        case Erm() | Midpoint():
            return str(spelled(value))
        case Beta(alpha=alpha):
            return f"beta({alpha!r})"
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case tuple():
            return "-".join(map(str, value))
        case _:
            return re.sub(r"[^A-Za-z0-9._+-]", "-", str(value))
