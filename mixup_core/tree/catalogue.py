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
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Generic, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

NAME = "[a-z0-9][a-z0-9-]*"
"""Regular expression of a tag or name."""

_DIGITS = 16
"""Hexadecimal digits of a plugin's digest that keys hold."""

_ORIGINS: "dict[Any, Origin]" = {}

_CACHED: "list[functools._lru_cache_wrapper[Any]]" = []


class CatalogueError(ValueError):
    """Something cannot be an entry; the text says what and why."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Origin:
    """The plugin that an entry comes from."""

    plugin: str
    """Name of the file or of the distribution."""
    digest: str
    """sha256 of the source, in hexadecimal. Keys hold it, so an edit makes new results."""
    version: str = ""
    """Version of the distribution; empty for a file."""

    def keyed(self, name: str) -> str:
        """Return a tag or name as it enters keys: `cutmix@0123456789abcdef`."""
        return f"{name}@{self.digest[:_DIGITS]}"


class Register(Mapping[str, T]):
    """Entries by name, in the order in which they were added; plugins may add more."""

    def __init__(self, noun: str, entries: Mapping[str, T] = MappingProxyType({})) -> None:
        """Make a register.

        Args:
            noun: One entry, for messages: `probe`.
            entries: Entries of ours that do not carry their names.
        """
        self.noun = noun
        self.origins: dict[str, Origin] = {}
        """The origin of each entry that a plugin added."""
        self._entries: dict[str, T] = dict(entries)

    def __getitem__(self, name: str) -> T:
        """Return an entry by its name."""
        return self._entries[name]

    def __iter__(self) -> Iterator[str]:
        """Yield the names."""
        return iter(self._entries)

    def __len__(self) -> int:
        """Return the number of entries."""
        return len(self._entries)

    def add(self, *entries: T) -> None:
        """Add entries, all or none.

        Raises:
            CatalogueError: If one cannot be an entry.
        """
        add_all((self, entry) for entry in entries)

    def remove(self, *names: str) -> None:
        """Take entries out, such as those of an older version of a plugin."""
        for name in names:
            del self._entries[name]
            self.origins.pop(name, None)
        _clear_caches()

    def check(self, entry: T) -> None:
        """Check that something can be an entry.

        Raises:
            CatalogueError: If it cannot.
        """
        name = kind_name(entry)
        if not re.fullmatch(NAME, name):
            raise CatalogueError(
                f"the {self.noun} {described(entry)} is called {name!r}, which does not match "
                f"{NAME}; set its `tag` or `name`"
            )
        if name in self:
            raise CatalogueError(
                f"the {self.noun} {name} exists already and cannot be replaced; "
                f"give {described(entry)} another tag or name"
            )

    def put(self, entry: T, origin: Origin | None) -> None:
        """Add an entry that was checked."""
        self._entries[kind_name(entry)] = entry
        if origin is not None:
            self.origins[kind_name(entry)] = origin


class Catalogue(Register[type[T]], Generic[T]):
    """The members of an open choice by tag or name."""

    def check(self, entry: type[T]) -> None:
        """Check that a class can be a member: frozen, keyword-only, with every method.

        Raises:
            CatalogueError: If it cannot.
        """
        if not getattr(vars(entry).get("__dataclass_params__"), "frozen", False):
            raise CatalogueError(
                f"{described(entry)} is not a frozen dataclass; write "
                "@dataclass(frozen=True, kw_only=True, slots=True) above the class"
            )
        if not all(field.kw_only for field in dataclasses.fields(entry) if field.init):  # type: ignore[arg-type]
            raise CatalogueError(
                f"{described(entry)} has fields that are not keyword-only; add kw_only=True"
            )
        super().check(entry)
        if inspect.isabstract(entry):
            missing = ", ".join(sorted(getattr(entry, "__abstractmethods__", ())))
            name = kind_name(entry)
            raise CatalogueError(
                f"the {self.noun} {name} ({described(entry)}) does not define {missing}"
            )

    def put(self, entry: type[T], origin: Origin | None) -> None:
        """Add a member that was checked."""
        super().put(entry, origin)
        if origin is not None:
            note_origin(entry, origin)


def note_origin(kind: type[Any], origin: Origin) -> None:
    """Note the plugin that a class comes from."""
    _ORIGINS[kind] = origin


def add_all(entries: Iterable[tuple[Register[Any], Any]], origin: Origin | None = None) -> None:
    """Add entries to their registers, all or none, and clear what was derived from them.

    Args:
        entries: Each with its register.
        origin: The plugin that they come from; None: they are ours.

    Raises:
        CatalogueError: If one cannot be an entry.
    """
    entries = list(entries)
    for register, entry in entries:
        register.check(entry)
    times = Counter((id(register), kind_name(entry)) for register, entry in entries)
    for register, entry in entries:
        if times[id(register), kind_name(entry)] > 1:
            raise CatalogueError(f"two entries are called the {register.noun} {kind_name(entry)}")
    for register, entry in entries:
        register.put(entry, origin)
    _clear_caches()


def origin_of(kind: Any) -> Origin | None:
    """Return the plugin that a dataclass of a choice comes from; None if it is ours.

    A class keeps its origin when a newer version of its plugin takes its place.
    """
    return _ORIGINS.get(kind)


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


def described(entry: Any) -> str:
    """Return where an entry is defined, for messages."""
    kind = entry if isinstance(entry, type) else type(entry)
    return kind.__qualname__
