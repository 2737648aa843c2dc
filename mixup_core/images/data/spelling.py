"""Spelling: hints about names that differ only in capitals or in the Unicode form of an accent."""

import unicodedata
from collections import defaultdict
from collections.abc import Iterable

from mixup_core.rules import printable


def plain(name: str) -> str:
    """Return a name in lower case, each accent in one Unicode form, as macOS compares names."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


def spelled_alike(names: Iterable[str]) -> list[list[str]]:
    """Return the groups of names that some file systems treat as the same name, such as a and A."""
    groups: dict[str, list[str]] = defaultdict(list)
    for name in sorted(set(names)):
        groups[plain(name)].append(name)
    return [group for group in groups.values() if len(group) > 1]


def spelling_hint(names: Iterable[str]) -> str:
    """Return a hint about two of the names that some file systems take for one, such as a and A.

    The result is "" if there are no such names.
    """
    for one, other, *_ in spelled_alike(names):
        if unicodedata.normalize("NFC", one) == unicodedata.normalize("NFC", other):
            coded = f"{one!a} and {other!a}"
            return (
                f" The names {coded} look equal, but write an accent in two forms of Unicode; "
                "give both folders the same name."
            )
        pair = f"{printable(one)} and {printable(other)}"
        return f" {pair} differ only in capital letters; give both folders the same name."
    return ""
