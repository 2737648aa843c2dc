"""Loading: a plugin's source is run, and what it defines joins the catalogues, all or nothing."""

import importlib
import inspect
import platform
import sys
import traceback
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from mixup_core.images.data.catalog import PUBLISHED
from mixup_core.images.data.facts import Dataset
from mixup_core.plugins.source import PluginError, Source, package_digest, read_source
from mixup_core.problem import PROBLEMS, Problem
from mixup_core.tree.catalogue import (
    CatalogueError,
    Origin,
    Register,
    add_all,
    catalogue_of,
    kind_name,
)
from mixup_core.tree.parts import parts
from mixup_core.tree.spelling_errors import expected


@dataclass(frozen=True, kw_only=True, slots=True)
class Plugin:
    """A plugin that was loaded."""

    source: Source
    entries: tuple[tuple[Register[Any], Any], ...]
    """The entries that it added, each with its register."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of its entries, for people: `model tiny`, `dataset roses`."""
        return tuple(f"{register.noun} {kind_name(entry)}" for register, entry in self.entries)


_loaded: dict[str, Plugin] = {}
"""Place to the plugin that was last loaded from there."""


def use(path: str | Path) -> Plugin:
    """Load a plugin file; an edited one takes the place of what it added before.

    Raises:
        PluginError: If it cannot be loaded; nothing is added then.
    """
    return load(read_source(path))


def load(source: Source) -> Plugin:
    """Load a plugin unless it is loaded already.

    Raises:
        PluginError: If it cannot be loaded; nothing is added then.
    """
    before = _loaded.get(source.place)
    if before is not None and before.source.digest == source.digest:
        if set(source.entries) <= set(before.source.entries):
            return before
        source = replace(
            source, entries=tuple(dict.fromkeys((*before.source.entries, *source.entries)))
        )
    found = tuple(_run_file(source) if source.content is not None else _imported(source))
    _take_out(before)
    try:
        add_all(found, source.origin)
        _check_fields(found)
    except CatalogueError as error:
        raise PluginError(f"plugin {source.name}: {error}") from error
    except _UnreadableFieldError as error:
        _take_out(Plugin(source=source, entries=found))
        raise PluginError(f"plugin {source.name}: {error}") from error
    _loaded[source.place] = plugin = Plugin(source=source, entries=found)
    return plugin


def sources_of(origins: Iterable[Origin]) -> tuple[Source, ...]:
    """Return the sources of plugins that were loaded in this process."""
    wanted = {origin.digest for origin in origins}
    return tuple(p.source for p in _loaded.values() if p.source.digest in wanted)


def loaded_files() -> frozenset[str]:
    """Return the digests of the plugin files of this process."""
    sources = (plugin.source for plugin in _loaded.values())
    return frozenset(source.digest for source in sources if source.content is not None)


class _UnreadableFieldError(Exception):
    """A field has a type that study files cannot give."""


def _take_out(plugin: Plugin | None) -> None:
    for register, entry in () if plugin is None else plugin.entries:
        register.remove(kind_name(entry))


class _Loader:
    """Gives tracebacks and `inspect.getsource` the lines of a file that a worker was sent."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def get_source(self, name: str) -> str:
        """Return the source, as the import system's loaders do."""
        del name
        return self._content.decode()


def _run_file(source: Source) -> Iterator[tuple[Register[Any], Any]]:
    """Run a file as a module of its own and yield what it defines for our registers.

    Raises:
        PluginError: If it cannot be run, or defines nothing for them.
    """
    assert source.content is not None, "a file has a content"
    name = f"mixsweep_plugin_{source.name.removesuffix('.py')}_{source.digest[:8]}"
    spec = ModuleSpec(name, _Loader(source.content), origin=source.place)  # type: ignore[arg-type]
    module = ModuleType(name)
    module.__spec__, module.__loader__, module.__file__ = spec, spec.loader, source.place
    sys.modules[name] = module
    try:
        exec(_compiled(source), vars(module))  # noqa: S102  the user names the file to be run
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise PluginError(f"plugin {source.name}: {_what_happened(error, source)}") from error
    found = list(_entries(vars(module).values(), name))
    if not found:
        del sys.modules[name]
        raise PluginError(
            f"plugin {source.name}: it defines nothing; a plugin has public classes that extend "
            "those of mixsweep.plugins, such as Model, or values of type Dataset"
        )
    yield from found


def _compiled(source: Source) -> CodeType:
    code: CodeType = compile(source.content or b"", source.place, "exec", dont_inherit=True)
    return code


def _what_happened(error: BaseException, source: Source) -> str:
    """Return the error that ended the loading of a file, with its line."""
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename == source.place]
    line = error.lineno if isinstance(error, SyntaxError) else lines[-1] if lines else None
    text = error.msg if isinstance(error, SyntaxError) else str(error)
    sibling = (
        "; a plugin file cannot import files beside it: put all in one file or make a package"
        if isinstance(error, ModuleNotFoundError)
        else ""
    )
    at = "" if line is None else f" in line {line}"
    return f"fails{at}: {type(error).__name__}: {text}{sibling}"


def _entries(values: Iterable[Any], module: str) -> Iterator[tuple[Register[Any], Any]]:
    """Yield the entries that a module defines: public classes, and datasets."""
    for value in values:
        if isinstance(value, Dataset):
            yield PUBLISHED, value
        elif isinstance(value, Problem):
            yield PROBLEMS, value
        elif isinstance(value, type) and value.__module__ == module:
            register = _register_of(value)
            if register is not None and not value.__name__.startswith("_"):
                yield register, value


def _register_of(kind: type[Any]) -> Register[Any] | None:
    """Return the catalogue of the open choice that a class extends."""
    return next(filter(None, map(catalogue_of, inspect.getmro(kind)[1:])), None)


def _imported(source: Source) -> Iterator[tuple[Register[Any], Any]]:
    """Import the entries of an installed package and yield them.

    Raises:
        PluginError: If the package here is another one, cannot be imported, or lacks an entry.
    """
    here = package_digest(source.place, source.name)
    if here != source.digest:
        raise PluginError(
            f"plugin {source.name}: the package {source.place} on {platform.node()} differs from "
            f"the one that the study was read with ({here[:8]}, not {source.digest[:8]}); install "
            "the same on every node and launch again"
        )
    for place in source.entries:
        module, _, attribute = place.partition(":")
        try:
            value = getattr(importlib.import_module(module), attribute)
        except (Exception, SystemExit) as error:
            raise PluginError(
                f"plugin {source.name}: {place} fails: {type(error).__name__}: {error}"
            ) from error
        found = list(_entries([value], getattr(value, "__module__", "")))
        if not found:
            raise PluginError(
                f"plugin {source.name}: {place} extends no class of mixsweep.plugins and is no "
                "Dataset"
            )
        yield from found


def _check_fields(entries: Iterable[tuple[Register[Any], Any]]) -> None:
    """Check that study files can give every field of the new members.

    Raises:
        _UnreadableFieldError: If one has a type that they cannot.
    """
    for register, kind in entries:
        if not isinstance(kind, type):
            continue
        try:
            for part in parts(kind):
                expected(part.hint)
        except Exception as error:
            raise _UnreadableFieldError(
                f"the fields of the {register.noun} {kind_name(kind)} cannot be read from a study "
                f"file ({type(error).__name__}: {error}); use numbers, text, true or false, "
                "tuples, dataclasses and our limits as types"
            ) from error
