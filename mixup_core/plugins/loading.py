"""Loading: a plugin's source is run, and what it defines joins the catalogues, all or nothing."""

import ast
import importlib
import inspect
import platform
import sys
from collections.abc import Collection, Iterable, Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from importlib.machinery import ModuleSpec
from importlib.metadata import packages_distributions
from importlib.util import find_spec
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from mixup_core.images.data.catalog import PUBLISHED
from mixup_core.images.data.facts import Dataset
from mixup_core.plugins.failures import failure_of_plugin, what_happened
from mixup_core.plugins.fields import UnreadableFieldError, check_fields
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


_ENDINGS = (Exception, SystemExit, GeneratorExit)
"""Exceptions by which the source of a plugin may end; an interrupt is the user's."""

_loaded: dict[str, Plugin] = {}
"""Place to the plugin that was last loaded from there."""


def use(path: str | Path) -> Plugin:
    """Load a plugin file; an edited file replaces its earlier entries.

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
    if before is not None and source.content is None and before.source.digest != source.digest:
        raise PluginError(
            f"plugin {source.name}: the package {source.place} was edited after this process had "
            "imported it; start a new process"
        )
    with redirect_stdout(sys.stderr):  # standard output is what a command prints, such as JSON
        found = tuple(_run_file(source) if source.content is not None else _imported(source))
    _take_out(before)
    try:
        add_all(found, source.origin)
        check_fields(found)
    except CatalogueError as error:
        raise PluginError(f"plugin {source.name}: {error}") from error
    except UnreadableFieldError as error:
        _take_out(Plugin(source=source, entries=found))
        raise PluginError(f"plugin {source.name}: {error}") from error
    _loaded[source.place] = plugin = Plugin(source=source, entries=found)
    return plugin


def loaded_again(plugin: Plugin) -> Plugin:
    """Load a plugin file anew, as another process does."""
    _take_out(_loaded.pop(plugin.source.place))
    return load(plugin.source)


def sources_of(origins: Iterable[Origin]) -> tuple[Source, ...]:
    """Return the sources of plugins that were loaded in this process."""
    wanted = {origin.digest for origin in origins}
    return tuple(p.source for p in _loaded.values() if p.source.digest in wanted)


def loaded_files() -> frozenset[str]:
    """Return the digests of the plugin files of this process."""
    sources = (plugin.source for plugin in _loaded.values())
    return frozenset(source.digest for source in sources if source.content is not None)


def message_of(error: BaseException, used: Collection[str] = ()) -> str | None:
    """Return the message of an error that a plugin of this process caused; None if none did.

    Args:
        error: The error, with its traceback.
        used: Names of the plugins that the run uses.
    """
    return failure_of_plugin(error, (plugin.source for plugin in _loaded.values()), used)


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
    except _ENDINGS as error:
        del sys.modules[name]
        hint = _import_hint(error, Path(source.place).parent)
        raise PluginError(
            f"plugin {source.name}: fails{what_happened(error, source.place)}{hint}"
        ) from error
    if (other := _imported_from_beside(source)) is not None:
        del sys.modules[name]
        raise PluginError(
            f"plugin {source.name}: imports {other}, a file beside it, whose edits no key would "
            "show; put all in one file or make a package"
        )
    found = list(_entries(vars(module).values(), name))
    if not found:
        del sys.modules[name]
        raise PluginError(
            f"plugin {source.name}: it defines nothing; a plugin has public classes that extend "
            "those of mixsweep.plugins, such as Model, or values of type Dataset"
        )
    yield from found


def _imported_from_beside(source: Source) -> str | None:
    """Return a module that a plugin file imports, anywhere in it, from its own folder.

    Packages that are installed are none, even if they lie there, as in an environment.
    """
    folder = Path(source.place).parent
    names: set[str] = set()
    for node in ast.walk(ast.parse(source.content or b"")):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            names.add(node.module.partition(".")[0])
    beside = {
        name
        for name in names
        if (spec := find_spec(name)) is not None
        and spec.origin is not None
        and folder in Path(spec.origin).parents
    }
    return next(iter(sorted(beside - packages_distributions().keys())), None) if beside else None


def _compiled(source: Source) -> CodeType:
    code: CodeType = compile(source.content or b"", source.place, "exec", dont_inherit=True)
    return code


def _import_hint(error: BaseException, folder: Path) -> str:
    """Return advice on a missing module that a plugin file imports."""
    if not isinstance(error, ModuleNotFoundError):
        return ""
    module = (error.name or "").partition(".")[0]
    if module and any((folder / name).exists() for name in (module, f"{module}.py")):
        return (
            "; a plugin file cannot import files beside it: put all in one file or make a package"
        )
    return f"; install it on {platform.node()}, where this plugin is loaded"


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
        except _ENDINGS as error:
            what = what_happened(error, source.place)
            raise PluginError(f"plugin {source.name}: {place} fails{what}") from error
        found = list(_entries([value], getattr(value, "__module__", "")))
        if not found:
            raise PluginError(
                f"plugin {source.name}: {place} extends no class of mixsweep.plugins and is no "
                "Dataset"
            )
        yield from found
