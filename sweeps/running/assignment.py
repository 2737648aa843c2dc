"""Assignment: a run for a worker to train, with all settings that training it needs.

A worker cannot import the module of a plugin file. So a pickled assignment has the values of its
configurations by path and the source of their plugins; `open` loads the plugins.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Self

from mixup_core.addresses import local_path
from mixup_core.config.building import built
from mixup_core.config.written_forms import flatten, origins_in
from mixup_core.plugins.loading import load, sources_of
from mixup_core.problem import Config, problem_named
from mixup_core.store.checkpoints import Store
from sweeps.state.stages import PlannedRun

_CONFIGS = ("config", "teacher")


@dataclass(frozen=True, kw_only=True, repr=False)  # Tune writes copies that are not opened
class Assignment:
    """A run for a worker to train; after unpickling, call `open` first."""

    config: Config
    store: str
    keep: frozenset[int] = frozenset()
    """Epochs, counted from 1, after which the state is kept because other runs need it."""
    keep_final_state: bool = False
    """True to keep the state after the last epoch, so that a longer run can continue from it."""
    teacher: Config | None = None
    """Configuration of the teacher, whose final state is in the store; None for runs without a
    teacher."""
    data_root: str | None = None
    """Folder of the datasets on every node; None for the default folder of each node."""
    on_gpu: bool = False
    gpus: float = 0.0
    """Number of GPUs reserved for the run."""
    report_every: float = 1.0
    """Seconds between two reports to the driver. Epochs that other runs wait for are reported at
    once."""
    writing: str | None = None
    """Path of the file by which the driver waits for writes (`open_write`); None without it."""
    spare_bytes: int = 0
    """Largest final state, in bytes, that is kept although no run needs it yet. A longer run may
    continue from it."""

    @classmethod
    def of(cls, planned: PlannedRun, store: Store, **given: Any) -> Self:
        """Return an assignment for a planned run; `MIXSWEEP_DATA` sets the data folder, if any."""
        own_data = os.environ.get("MIXSWEEP_DATA")
        return cls(
            config=planned.run.config,
            keep=planned.keep,
            store=store.url,
            teacher=planned.run.teacher,
            data_root=str(local_path(own_data).absolute()) if own_data else None,
            **given,
        )

    def __getstate__(self) -> Mapping[str, Any]:
        if "packed" in self.__dict__:
            return self.__dict__
        plain = {field.name: getattr(self, field.name) for field in fields(self)}
        configs = {name: plain.pop(name) for name in _CONFIGS}
        origins = [origin for config in configs.values() for origin in origins_in(config)]
        written = {
            name: (config.problem, flatten(config))
            for name, config in configs.items()
            if config is not None
        }
        return {**plain, "packed": (sources_of(origins), written)}

    def open(self) -> Self:
        """Return the run as it was before pickling; load its plugins."""
        if "packed" not in self.__dict__:
            return self
        plain = dict(self.__dict__)
        sources, written = plain.pop("packed")
        for source in sources:
            load(source)
        configs: dict[str, Any] = dict.fromkeys(_CONFIGS)
        for name, (problem, values) in written.items():
            configs[name] = built(problem_named(problem).config, values)
        return type(self)(**configs, **plain)
