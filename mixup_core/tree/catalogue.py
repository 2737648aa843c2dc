"""Catalogue: the dataclasses that an open choice may hold, by the tag or name that files use.

The type of an open choice is a plain base class that owns a catalogue:

    class Probe(Checked, ABC):
        catalogue: ClassVar = Catalogue("probe")

    @dataclass(frozen=True, kw_only=True, slots=True)
    class WeightNorm(Probe):
        tag: ClassVar = "weight-norm"

    Probe.catalogue.add(WeightNorm)

A field of type `Probe` then takes a member of the catalogue, as a field of type `A | B` takes an A
or a B: `mixup_core.tree.parts.members` returns the members of both. Members are added where the
package of the choice is imported (its `__init__` names them), so that a catalogue is full as soon
as its base class can be imported. A plugin adds its own later, all of them or none.
"""

import dataclasses
import functools
import inspect
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Generic, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

NAME = "[a-z0-9][a-z0-9-]*"
"""Regular expression of a tag or name."""

_CACHED: "list[functools._lru_cache_wrapper[Any]]" = []


class CatalogueError(ValueError):
    """A class cannot be a member of a catalogue; the text says which and why."""


class Catalogue(Mapping[str, type[T]], Generic[T]):
    """The members of an open choice by tag or name, in the order in which they were added."""

    def __init__(self, noun: str) -> None:
        """Make an empty catalogue.

        Args:
            noun: One member, for messages: `probe`.
        """
        self.noun = noun
        self._members: dict[str, type[T]] = {}

    def __getitem__(self, name: str) -> type[T]:
        """Return a member by its tag or name."""
        return self._members[name]

    def __iter__(self) -> Iterator[str]:
        """Yield the tags or names."""
        return iter(self._members)

    def __len__(self) -> int:
        """Return the number of members."""
        return len(self._members)

    def add(self, *members: type[T]) -> None:
        """Add members, all or none.

        Raises:
            CatalogueError: If one cannot be a member.
        """
        add_all((self, member) for member in members)

    def remove(self, *names: str) -> None:
        """Take members out, such as those of an older version of a plugin."""
        for name in names:
            del self._members[name]
        _clear_caches()


def add_all(entries: Iterable[tuple[Catalogue[Any], type[Any]]]) -> None:
    """Add members to their catalogues, all or none, and clear what was derived from them.

    Raises:
        CatalogueError: If one cannot be a member: its name is taken or malformed, it is not a
            frozen, keyword-only dataclass, or a method is missing.
    """
    entries = list(entries)
    for catalogue, member in entries:
        _check(catalogue, member)
    times = Counter((id(catalogue), kind_name(member)) for catalogue, member in entries)
    for catalogue, member in entries:
        if times[id(catalogue), kind_name(member)] > 1:
            raise CatalogueError(f"two classes are called the {catalogue.noun} {kind_name(member)}")
    for catalogue, member in entries:
        catalogue._members[kind_name(member)] = member
    _clear_caches()


def catalogue_of(kind: Any) -> Catalogue[Any] | None:
    """Return the catalogue that a class owns; None for any other type, members included."""
    owned = vars(kind).get("catalogue") if isinstance(kind, type) else None
    return owned if isinstance(owned, Catalogue) else None


def kind_name(kind: Any) -> str:
    """Return the tag or name of a dataclass of a choice; empty for any other."""
    found = getattr(kind, "tag", None) or getattr(kind, "name", None)
    return found if isinstance(found, str) else ""


def cached_until_growth(function: Callable[P, T]) -> Callable[P, T]:
    """Cache the results of a function of types until a catalogue grows."""
    cached = functools.cache(function)
    _CACHED.append(cached)
    return cached  # type: ignore[return-value]


def _clear_caches() -> None:
    for cached in _CACHED:
        cached.cache_clear()


def _check(catalogue: Catalogue[Any], member: type[Any]) -> None:
    """Check that a class can be a member.

    Raises:
        CatalogueError: If it cannot.
    """
    noun, called = catalogue.noun, f"{member.__module__}.{member.__qualname__}"
    name = kind_name(member)
    if not getattr(vars(member).get("__dataclass_params__"), "frozen", False):
        raise CatalogueError(
            f"{called} is not a frozen dataclass; write "
            "@dataclass(frozen=True, kw_only=True, slots=True) above the class"
        )
    if not all(field.kw_only for field in dataclasses.fields(member) if field.init):
        raise CatalogueError(f"{called} has fields that are not keyword-only; add kw_only=True")
    if not re.fullmatch(NAME, name):
        raise CatalogueError(
            f"the {noun} {called} is called {name!r}, which does not match {NAME}; "
            "set its class variable `tag` or `name`"
        )
    if inspect.isabstract(member):
        missing = ", ".join(sorted(member.__abstractmethods__))
        raise CatalogueError(f"the {noun} {name} ({called}) does not define {missing}")
    if name in catalogue:
        raise CatalogueError(
            f"the {noun} {name} exists already and cannot be replaced; "
            f"give {called} another tag or name"
        )
