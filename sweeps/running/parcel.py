"""Parcel: a run to train, packed for sending to a worker process together with its plugins.

A worker cannot import the module of a plugin file, so no object of a plugin is pickled. Instead,
the parcel contains the name of the problem, the values of the configuration by path, and the source
code of the plugins.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Self

from mixup_core.config.building import built
from mixup_core.config.written_forms import flatten, origins_in
from mixup_core.plugins.loading import load, sources_of
from mixup_core.plugins.source import Source
from mixup_core.problem import problem_named
from sweeps.running.assignment import Assignment

_CONFIGS = ("config", "teacher")


@dataclass(frozen=True, kw_only=True, slots=True)
class Parcel:
    """A run to train, with its settings; can be unpickled before its plugins are loaded."""

    plugins: tuple[Source, ...]
    configs: Mapping[str, tuple[str, Mapping[str, Any]]]
    """The configurations of the run (key `config`) and of its teacher, if any (key `teacher`).

    Each is a pair: the name of the problem, and the values of the configuration by dotted path.
    """
    plain: Mapping[str, Any]
    """All other fields of the packed `Assignment`, by name."""

    @classmethod
    def of(cls, assignment: Assignment) -> Self:
        """Pack a run to train, and its settings, for sending to another process (a worker)."""
        values = {field.name: getattr(assignment, field.name) for field in fields(assignment)}
        configs = {name: values.pop(name) for name in _CONFIGS}
        origins = [origin for config in configs.values() for origin in origins_in(config)]
        return cls(
            plugins=sources_of(origins),
            configs={
                name: (config.problem, flatten(config))
                for name, config in configs.items()
                if config is not None
            },
            plain=values,
        )

    def open(self) -> Assignment:
        """Load this parcel's plugins and return the run to train; called in the receiving process.

        Raises:
            PluginError: If a plugin cannot be loaded on this machine.
        """
        for source in self.plugins:
            load(source)
        configs: dict[str, Any] = dict.fromkeys(_CONFIGS)
        for name, (problem, values) in self.configs.items():
            configs[name] = built(problem_named(problem).config, values)
        return Assignment(**configs, **self.plain)
