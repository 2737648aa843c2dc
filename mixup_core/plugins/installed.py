"""Installed: plugins in installed packages, found by entry points, loaded when a study names them.

A package registers each of its entries in the group `mixsweep` under `NOUN.NAME`:

    [project.entry-points.mixsweep]
    "model.tiny" = "package.networks:Tiny"

The names of its entries and its files are read without importing the package. A built-in name
always means the built-in entry. A package that cannot be loaded breaks only the studies that name
its entries.
"""

from collections.abc import Collection
from dataclasses import replace
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from mixup_core.config.catalogue import Register
from mixup_core.plugins.loading import Plugin, load, loaded_files
from mixup_core.plugins.registers import REGISTERS
from mixup_core.plugins.source import PluginError, Source, package_source

GROUP = "mixsweep"


def load_installed(names: Collection[str]) -> None:
    """Load those plugin entries (models, laws, ...) of installed packages that have given names."""
    found: dict[str, Source] = {}
    for entry in _asked(names):
        source = package_source(entry)
        before = found.get(source.place, replace(source, entries=()))
        found[source.place] = replace(before, entries=(*before.entries, entry.value))
    for source in found.values():
        load(source)


def load_distribution(name: str) -> Plugin:
    """Load every plugin entry (model, law, ...) of an installed distribution; return the plugin."""
    entries = [entry for entry in entry_points(group=GROUP) if _distribution(entry) == name]
    if not entries:
        raise PluginError(
            f"plugin {name}: no installed distribution of this name has entry points in the group "
            f"{GROUP}; to use a plugin file, give its path, which ends in .py"
        )
    sources = [package_source(entry) for entry in entries]
    if len({source.place for source in sources}) > 1:
        places = ", ".join(sorted({source.place for source in sources}))
        raise PluginError(
            f"plugin {name}: all its entry points must be in one top-level package, got {places}"
        )
    return load(replace(sources[0], entries=tuple(entry.value for entry in entries)))


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
    return name in register and (origin is None or origin.source in loaded_files())


def _distribution(entry: EntryPoint) -> str:
    return entry.value if entry.dist is None else entry.dist.name
