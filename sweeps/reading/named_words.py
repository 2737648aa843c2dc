"""Named words: the words of a study file that may be names of a plugin's parts.

Only installed plugins that a study may use are loaded.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mixup_core.tree.catalogue import NAME

_CONFIGURED = ("problem", "base", "grid", "zip", "exclude", "search")
"""Keys of a study file, besides `arms`, that contain parts of configurations."""


def words_of(study: Mapping[str, Any], overrides: Sequence[str]) -> frozenset[str]:
    """Return every word of a study file and its overrides that may be the name of a plugin's part.

    Names of arms are not included, so an arm may have the name of a plugin that it does not use.

    Args:
        study: Content of the study file.
        overrides: Texts of `--set`, `PATH=VALUE`.
    """
    arms = study.get("arms")
    parts = [study.get(key) for key in _CONFIGURED]
    parts += list(arms.values()) if isinstance(arms, dict) else []
    found = {word for part in parts for word in _words(part)}
    for text in overrides:
        found |= set(re.findall(NAME, text.partition("=")[2]))
    return frozenset(found)


def _words(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, part in value.items():
            yield key
            yield from _words(part)
    elif isinstance(value, list):
        for part in value:
            yield from _words(part)
