"""Loading: runs the code of a plugin and registers all its entries, or none if one is invalid.

An entry is a class (a model, a law, ...), a dataset or a problem that the plugin defines. A plugin
is a file, or an installed package with entry points of the group `mixsweep`:

    [project.entry-points.mixsweep]
    "model.tiny" = "package.networks:Tiny"

The names of a package's entries and its files are read without importing it. A built-in name always
means the built-in entry. A package that cannot be loaded breaks only the studies that name its
entries.
"""

import ast
import importlib
import platform
import sys
import traceback
from collections.abc import Collection, Iterable, Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from importlib.machinery import ModuleSpec
from importlib.metadata import EntryPoint, entry_points, packages_distributions
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

from mixup_core.config.catalogue import (
    CatalogueError,
    Origin,
    Register,
    add_all,
    catalogue_of,
    kind_name,
)
from mixup_core.images.data.facts import Dataset
from mixup_core.images.data.sets import DATASETS
from mixup_core.images.metrics import require_own_metrics
from mixup_core.plugins.fields import UnreadableFieldError, check_fields
from mixup_core.plugins.meaning import Meaning
from mixup_core.plugins.source import (
    PluginError,
    Source,
    package_digest,
    package_source,
    read_source,
    text_of,
    what_happened,
)
from mixup_core.plugins.stand_ins import REGISTERS, take_out
from mixup_core.problem import PROBLEMS, Problem


@dataclass(frozen=True, kw_only=True, slots=True)
class Plugin:
    """A loaded plugin: its source, and its entries (the models, laws, ... that it adds)."""

    source: Source
    entries: tuple[tuple[Register[Any], Any], ...]
    """Pairs of registry and entry (a class, a dataset or a problem) that the plugin added."""
    origins: tuple[Origin, ...]
    """Origin of each entry; its digest enters the keys of runs that use the entry."""

    @property
    def names(self) -> tuple[str, ...]:
        """Noun and name of each entry of a plugin, for messages: `model tiny`, `dataset roses`."""
        return tuple(f"{register.noun} {kind_name(entry)}" for register, entry in self.entries)

    @property
    def remark(self) -> str:
        """A note if keys cover the whole file, not only the code of an entry; empty if not."""
        content = self.source.content
        why = None if content is None else Meaning(content).untraceable
        if why is None:
            return ""
        return f"any edit of {self.source.name} changes the keys of all its runs, because {why}"


_ENDINGS = (Exception, SystemExit, GeneratorExit)
"""Exceptions that count as a failure of the plugin; KeyboardInterrupt is passed on."""

_loaded: dict[str, Plugin] = {}
"""Plugins loaded in this process, by path of the file or name of the package."""


def use(path: str | Path) -> Plugin:
    """Load a plugin file, register the models, laws, ... that it adds, and return the plugin.

    They replace the models, laws, ... of an earlier load of the file.
    """
    return load(read_source(path))


def load(source: Source) -> Plugin:
    """Load a plugin from its source, unless the same source is loaded already, and return it."""
    before = _loaded.get(source.place)
    if before is not None and before.source.digest == source.digest:
        if set(source.entries) <= set(before.source.entries):
            return before
        source = replace(
            source, entries=tuple(dict.fromkeys((*before.source.entries, *source.entries)))
        )
    elif before is not None and source.content is None:
        raise PluginError(
            f"plugin {source.name}: the package {source.place} was edited after this process had "
            "imported it; start a new process"
        )
    with redirect_stdout(sys.stderr):  # standard output is what a command prints, such as JSON
        plugin = _run_file(source) if source.content is not None else _imported(source)
    _take_out(before)
    try:
        _register(plugin)
    except Exception as error:
        if before is not None:
            add_all(before.entries, before.origins)
        is_explained = isinstance(error, UnreadableFieldError | CatalogueError)
        what = f" {error}" if is_explained else f" fails{what_happened(error, source)}"
        raise PluginError(f"plugin {source.name}:{what}") from error
    _loaded[source.place] = plugin
    return plugin


def loaded_again(plugin: Plugin) -> Plugin:
    """Unregister a plugin, load it again, and return the new one, to compare the two loads."""
    _take_out(_loaded.pop(plugin.source.place))
    return load(plugin.source)


def sources_of(origins: Iterable[Origin]) -> tuple[Source, ...]:
    """Return the source of each loaded plugin that one of the given origins names."""
    wanted = {origin.source for origin in origins}
    return tuple(p.source for p in _loaded.values() if p.source.digest in wanted)


def loaded_paths() -> tuple[str, ...]:
    """Return the paths of all plugin files, not packages, that this process has loaded."""
    return tuple(path for path, plugin in _loaded.items() if plugin.source.content is not None)


def message_of(error: BaseException, used: Collection[str] = ()) -> str | None:
    """Return a message about an error that a loaded plugin caused; None if none did.

    The message names the plugin whose code is in the innermost frame, even if that plugin called
    back into this package. If no frame belongs to a plugin (a layer of a plugin's network
    fails inside torch, for example), it names the plugins that the run uses.
    """
    frames = traceback.extract_tb(error.__traceback__)
    for frame in reversed(frames):
        for source in (plugin.source for plugin in _loaded.values()):
            if source.holds(frame.filename):
                return _to_correct(source.name, f"fails{what_happened(error, source)}")
    if not used:
        return None
    where = f"{Path(frames[-1].filename).name} line {frames[-1].lineno}" if frames else ""
    what = f"a run that uses it fails in {where} ({type(error).__name__}: {text_of(error)})"
    return _to_correct(" and ".join(sorted(used)), what)


def _to_correct(plugin: str, what: str) -> str:
    return f"plugin {plugin}: {what}; correct it and try it with: mixsweep check {plugin}"


def _register(plugin: Plugin) -> None:
    """Register the entries of a plugin."""
    for register, entry in plugin.entries:
        take_out(register.noun, kind_name(entry))
    add_all(plugin.entries, plugin.origins)
    try:
        check_fields(plugin.entries)
        require_own_metrics(entry for _, entry in plugin.entries if isinstance(entry, type))
    except Exception:
        _take_out(plugin)
        raise


def _take_out(plugin: Plugin | None) -> None:
    for register, entry in () if plugin is None else plugin.entries:
        register.remove(kind_name(entry))


class _Loader:
    """Import loader that gives tracebacks the source lines of a plugin file sent to a worker."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def get_source(self, name: str) -> str:
        """Return this plugin's source text; tracebacks and `inspect.getsource` call this method."""
        del name
        return self._content.decode()


def _run_file(source: Source) -> Plugin:
    """Run a plugin file as a module; return the plugin."""
    assert source.content is not None, "a file has a content"
    name = f"mixsweep_plugin_{source.name.removesuffix('.py')}_{source.digest[:8]}"
    spec = ModuleSpec(name, _Loader(source.content), origin=source.place)  # type: ignore[arg-type]
    module = ModuleType(name)
    module.__spec__, module.__loader__, module.__file__ = spec, spec.loader, source.place
    sys.modules[name] = module
    try:
        code = compile(source.content, source.place, "exec", dont_inherit=True)
        exec(code, vars(module))  # noqa: S102  the user names the file to be run
    except _ENDINGS as error:
        del sys.modules[name]
        hint = _import_hint(error, Path(source.place).parent)
        raise PluginError(
            f"plugin {source.name}: fails{what_happened(error, source)}{hint}"
        ) from error
    if (other := _imported_from_beside(source)) is not None:
        del sys.modules[name]
        raise PluginError(
            f"plugin {source.name}: imports {other} from its own folder; edits of that file would "
            "not change keys: put all code in one file or make a package"
        )
    found = tuple(_entries(vars(module).values(), name))
    if not found:
        del sys.modules[name]
        raise PluginError(
            f"plugin {source.name}: the file defines no entry; define a public class that extends "
            "a class of mixsweep.plugins, such as Model, or a value of type Dataset or Problem"
        )
    meaning = Meaning(source.content)
    names = [[name for name, value in vars(module).items() if value is it] for _, it in found]
    origins = tuple(source.origin(meaning.digest(of)) for of in names)
    return Plugin(source=source, entries=found, origins=origins)


def _imported_from_beside(source: Source) -> str | None:
    """Return a module, not installed, that a plugin file imports from its own folder; else None."""
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
    return min(beside - packages_distributions().keys(), default=None) if beside else None


def _import_hint(error: BaseException, folder: Path) -> str:
    """Return advice for a plugin file that imports a missing module; empty for other errors."""
    if not isinstance(error, ModuleNotFoundError):
        return ""
    module = (error.name or "").partition(".")[0]
    if module and any((folder / name).exists() for name in (module, f"{module}.py")):
        return (
            "; a plugin file cannot import files of its folder: put all code in one file or make a "
            "package"
        )
    return f"; install it on {platform.node()}, where this plugin is loaded"


def _entries(values: Iterable[Any], module: str) -> Iterator[tuple[Register[Any], Any]]:
    """Yield (registry, entry) for each public class, dataset and problem that a module defines."""
    for value in values:
        if isinstance(value, Dataset):
            yield DATASETS, value
        elif isinstance(value, Problem):
            yield PROBLEMS, value
        elif isinstance(value, type) and value.__module__ == module:
            register = next(filter(None, map(catalogue_of, value.__mro__[1:])), None)
            if register is not None and not value.__name__.startswith("_"):
                yield register, value


def _imported(source: Source) -> Plugin:
    """Import the listed entries of an installed package; return the plugin."""
    here = package_digest(source.place, source.name)
    if here != source.digest:
        raise PluginError(
            f"plugin {source.name}: the package {source.place} on {platform.node()} differs from "
            f"the one with which the study was read (digest {here[:8]}, not {source.digest[:8]}); "
            "install the same version on every node and launch again"
        )
    entries: list[tuple[Register[Any], Any]] = []
    for place in source.entries:
        module, _, attribute = place.partition(":")
        try:
            value = getattr(importlib.import_module(module), attribute)
        except _ENDINGS as error:
            what = what_happened(error, source)
            raise PluginError(f"plugin {source.name}: the entry {place} fails{what}") from error
        found = list(_entries([value], getattr(value, "__module__", "")))
        if not found:
            raise PluginError(
                f"plugin {source.name}: the entry {place} must extend a class of mixsweep.plugins "
                "or be a Dataset or Problem"
            )
        entries += found
    origins = (source.origin(),) * len(entries)
    return Plugin(source=source, entries=tuple(entries), origins=origins)


GROUP = "mixsweep"
"""Group of the entry points by which packages name their entries: `model.tiny = package:Tiny`."""


def load_installed(names: Collection[str]) -> None:
    """Load those plugin entries (models, laws, ...) of installed packages that have given names."""
    for source in _sources(_asked(names)):
        load(source)


def load_distribution(name: str) -> Plugin:
    """Load every plugin entry (model, law, ...) of an installed distribution; return the plugin."""
    entries = [entry for entry in entry_points(group=GROUP) if _distribution(entry) == name]
    if not entries:
        raise PluginError(
            f"plugin {name}: no installed distribution of this name has entry points in the group "
            f"{GROUP}; to use a plugin file, give its path, which ends in .py"
        )
    sources = _sources(entries)
    if len(sources) > 1:
        places = ", ".join(sorted(source.place for source in sources))
        raise PluginError(
            f"plugin {name}: all its entry points must be in one top-level package, got {places}"
        )
    return load(sources[0])


def _sources(entries: Iterable[EntryPoint]) -> list[Source]:
    """Return the source of each package that some entry points name."""
    packages: dict[str, list[EntryPoint]] = {}
    for entry in entries:
        packages.setdefault(entry.module.partition(".")[0], []).append(entry)
    return [package_source(package, of) for package, of in packages.items()]


def _asked(names: Collection[str]) -> list[EntryPoint]:
    """Return the entry points with given names, except names that are registered already."""
    asked: dict[str, EntryPoint] = {}
    for entry in entry_points(group=GROUP):
        noun, _, name = entry.name.partition(".")
        if name not in names or (noun in REGISTERS and _is_taken(REGISTERS[noun], name)):
            continue
        other = asked.setdefault(entry.name, entry)
        if other.value != entry.value:
            both = " and ".join(sorted(_distribution(one) for one in (other, entry)))
            raise PluginError(
                f"the installed packages {both} both have a {noun} {name}; uninstall one of them"
            )
    return list(asked.values())


def _is_taken(register: Register[Any], name: str) -> bool:
    """Return whether a name is registered by a built-in entry or a plugin file."""
    origin = register.origins.get(name)
    files = {p.source.digest for p in _loaded.values() if p.source.content is not None}
    return name in register and (origin is None or origin.source in files)


def _distribution(entry: EntryPoint) -> str:
    return entry.value if entry.dist is None else entry.dist.name
