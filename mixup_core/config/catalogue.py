"""Catalogue: a registry of the dataclasses that a field can hold, by tag or name in study files.

A field that plugins can extend has an abstract base class as its type, which owns a catalogue:

    class Probe(Checked, ABC):
        catalogue: ClassVar = Catalogue("probe")

    @dataclass(frozen=True, kw_only=True, slots=True)
    class WeightNorm(Probe):
        tag: ClassVar = "weight-norm"

    Probe.catalogue.add(WeightNorm)

A field of type `Probe` then accepts every class of the catalogue. The package of the base class
adds its classes in its `__init__`, so that the catalogue is complete once the base class can be
imported. A plugin adds its classes later, all of them or none.
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
"""Regular expression for valid tags and names."""

# Frozen: this number, because keys depend on it. After a change, stored results of plugins are not
# found; tests/mixup_core/plugins/test_loading.py fails.
_DIGITS = 16
"""Number of hexadecimal digits of a plugin's digest that enter keys."""

_ORIGINS: "dict[Any, Origin]" = {}

_CLEARING: list[Callable[[], None]] = []
"""Functions that each empty one cache of `cached_until_growth`."""


class CatalogueError(ValueError):
    """Error: an entry, such as a law, cannot be added to a registry. The message says why."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Origin:
    """Name and source hash of the plugin that defines an entry of a registry, such as a model."""

    plugin: str
    """Name of the plugin's file or distribution."""
    digest: str
    """sha256, in hexadecimal, of the code that the entry reaches. Keys of runs that use the entry
    depend on it, so that results from before an edit of this code are not reused.
    """
    source: str = ""
    """sha256 of the whole source of the plugin."""
    version: str = ""
    """Version of the distribution; empty for a file."""

    def keyed(self, name: str) -> str:
        """Return the name that enters keys: `cutmix@0123456789abcdef`, with the short digest."""
        return f"{name}@{self.digest[:_DIGITS]}"


class Register(Mapping[str, T]):
    """Registry: maps names to entries, such as models, to which plugins can add their own."""

    def __init__(
        self,
        noun: str,
        entries: Mapping[str, T] = MappingProxyType({}),
        *,
        meant: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.noun, self.meant = noun, meant
        self.origins: dict[str, Origin] = {}
        """Plugin that added an entry, by name of the entry; built-in entries are absent."""
        self._entries: dict[str, T] = dict(entries)

    def __getitem__(self, name: str) -> T:
        return self._entries[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def add(self, *entries: T) -> None:
        """Add built-in entries, such as classes of laws: all, or none if one is invalid."""
        add_all((self, entry) for entry in entries)

    def remove(self, *names: str) -> None:
        """Remove entries of this registry by name, such as those of a plugin's older version."""
        for name in names:
            del self._entries[name]
            self.origins.pop(name, None)
        _clear_caches()

    def check(self, entry: T) -> None:
        """Check an entry, such as a model, that is to be added to this registry."""
        name = kind_name(entry)
        if not re.fullmatch(NAME, name):
            raise CatalogueError(
                f"the {self.noun} {described(entry)} has the tag or name {name!r}, which does not "
                f"match {NAME}; set its `tag` or `name`"
            )
        if name in self.meant:
            raise CatalogueError(
                f"the {self.noun} {name} could be mistaken for the built-in {self.noun} "
                f"{self.meant[name]}; give {described(entry)} another tag or name"
            )
        if name in self:
            raise CatalogueError(
                f"the {self.noun} {name} exists already and cannot be replaced; "
                f"give {described(entry)} another tag or name"
            )

    def put(self, entry: T, origin: Origin | None) -> None:
        """Add an entry to this registry without checks; `check` must have accepted it before."""
        self._entries[kind_name(entry)] = entry
        if origin is not None:
            self.origins[kind_name(entry)] = origin


class Catalogue(Register[type[T]], Generic[T]):
    """Registry of the dataclasses of one base class, by tag or name."""

    def check(self, entry: type[T]) -> None:
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
            whose = f"the {self.noun} {kind_name(entry)} ({described(entry)})"
            raise CatalogueError(f"{whose} does not define {missing}")

    def put(self, entry: type[T], origin: Origin | None) -> None:
        super().put(entry, origin)
        note_origin(entry, origin)


def note_origin(kind: type[Any], origin: Origin | None) -> None:
    """Record the plugin that defines a class, for `origin_of`."""
    if origin is not None:
        _ORIGINS[kind] = origin


def add_all(
    entries: Iterable[tuple[Register[Any], Any]], origins: Iterable[Origin | None] | None = None
) -> None:
    """Add entries, such as models, to their registries: all, or none if one is not allowed."""
    entries = list(entries)
    for register, entry in entries:
        register.check(entry)
    times = Counter((id(register), kind_name(entry)) for register, entry in entries)
    for register, entry in entries:
        if times[id(register), kind_name(entry)] > 1:
            raise CatalogueError(
                f"two of the entries to add are called {register.noun} {kind_name(entry)}; give "
                "one of them another tag or name"
            )
    for (register, entry), origin in zip(entries, origins or [None] * len(entries), strict=True):
        register.put(entry, origin)
    _clear_caches()


def origin_of(kind: Any) -> Origin | None:
    """Return the plugin that defines a dataclass, also a replaced one; None if it is built in."""
    return _ORIGINS.get(kind)


def catalogue_of(kind: Any) -> Catalogue[Any] | None:
    """Return the catalogue (registry of classes) that a base class owns; None for other types."""
    owned = vars(kind).get("catalogue") if isinstance(kind, type) else None
    return owned if isinstance(owned, Catalogue) else None


def kind_name(kind: Any) -> str:
    """Return the tag or name by which study files select a dataclass; empty text if it has none."""
    found = getattr(kind, "tag", None) or getattr(kind, "name", None)
    return found if isinstance(found, str) else ""


def cached_until_growth(function: Callable[P, T]) -> Callable[P, T]:
    """Decorator: cache a function's results until any registry grows or loses entries."""
    cached = functools.cache(function)
    _CLEARING.append(cached.cache_clear)
    return cached  # type: ignore[return-value]


def _clear_caches() -> None:
    for clear in _CLEARING:
        clear()


def described(entry: Any) -> str:
    """Return the qualified class name of an entry of a registry, for messages."""
    kind = entry if isinstance(entry, type) else type(entry)
    return kind.__qualname__
