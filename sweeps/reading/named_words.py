"""Named words: the words of a study file that may name a part of a plugin, such as a law.

An installed plugin is loaded if one of these words names one of its parts.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mixup_core.config.catalogue import NAME

_CONFIGURED = ("problem", "base", "grid", "zip", "exclude", "search")
"""Keys of a study file, besides `arms`, that contain parts of configurations."""


def words_of(study: Mapping[str, Any], overrides: Sequence[str]) -> frozenset[str]:
    """Return all words of a study file and of `--set` options that may name a part of a plugin.

    A part is, for example, a law or a network. Names of arms are left out, so an arm can have the
    same name as a part of a plugin that the study does not use.
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
