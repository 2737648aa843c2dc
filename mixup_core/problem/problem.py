"""Problem: what a study trains: configuration, training process, metrics, data it needs."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from mixup_core.config.building import with_values
from mixup_core.config.catalogue import CatalogueError, Origin, Register, note_origin
from mixup_core.config.parts import places
from mixup_core.config.written_forms import flatten
from mixup_core.problem.facets import (
    Axis,
    Comparing,
    Cost,
    Measuring,
    Metric,
    Presentation,
    Randomness,
    Reading,
    Searching,
    Teacher,
    Teaching,
    spell_odd_name,
)
from mixup_core.problem.keying import Keying
from mixup_core.problem.process import Config, DataNeeds, Process


class _Problems(Register["str | Problem"]):
    """Registry of problems: built-in problems as import paths, problems of plugins as objects."""

    def check(self, entry: "str | Problem") -> None:
        super().check(entry)
        assert isinstance(entry, Problem), "built-in problems are given when the registry is made"
        named = getattr(entry.config, "problem", None)
        if named != entry.name:
            raise CatalogueError(
                f"the problem is named {entry.name!r}, but the class variable `problem` of its "
                f"configuration class {entry.config.__name__} is {named!r}; both must be equal"
            )
        if odd := spell_odd_name("metric", entry.metrics):
            raise CatalogueError(f"the problem {entry.name}: {odd}")

    def put(self, entry: "str | Problem", origin: Origin | None) -> None:
        super().put(entry, origin)
        if isinstance(entry, Problem):
            note_origin(entry.config, origin)


PROBLEMS: Register["str | Problem"] = _Problems("problem", {
    "images": "mixup_core.images.problem:IMAGES",
    "sufficiency": "mixup_core.images.sufficiency:SUFFICIENCY",
    "entropy-floor": "mixup_core.theory.entropy_floor:ENTROPY_FLOOR",
    "linear-views": "mixup_core.theory.linear_views:LINEAR_VIEWS",
    "alternating-line": "mixup_core.theory.alternating_line:ALTERNATING_LINE",
    "support-vectors": "mixup_core.theory.support_vectors:SUPPORT_VECTORS",
    "moons": "mixup_core.theory.moons:MOONS",
    "two-layer": "mixup_core.theory.two_layer.problem:TWO_LAYER",
    "label-noise-bound": "mixup_core.theory.label_noise_bound:LABEL_NOISE_BOUND",
    "random-features": "mixup_core.theory.random_features:RANDOM_FEATURES",
    "rare-features": "mixup_core.theory.rare_features:RARE_FEATURES",
    "separability": "mixup_core.theory.separability:SEPARABILITY",
    "spurious-feature": "mixup_core.theory.spurious_feature:SPURIOUS_FEATURE",
    "gaussian-features": "mixup_core.theory.gaussian_features:GAUSSIAN_FEATURES",
    "mixup-expansion": "mixup_core.theory.mixup_expansion:MIXUP_EXPANSION",
})  # fmt: skip
"""Problems by name, the value of `problem:` in a study file. A built-in problem is imported when
it is first used.
"""

DEFAULT_PROBLEM = "images"
"""Problem of a study whose file does not name one."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Problem:
    """A kind of run that studies can contain: its configuration class, its process, its metrics.

    All fields after `headline` have defaults. Importing a problem must not import torch; only the
    workers that train import the module in `process`.

    Example:
        >>> from dataclasses import dataclass
        >>> from typing import ClassVar
        >>> from mixsweep.plugins import Count, Metric, Positive, Problem, Seed
        >>> @dataclass(frozen=True, kw_only=True, slots=True)
        ... class HalvingConfig:
        ...     problem: ClassVar[str] = "halving"
        ...     first: Positive = 1.0
        ...     epochs: Count = 3
        ...     seed: Seed = 0
        >>> halving = Problem(
        ...     name="halving", title="a number that is halved", config=HalvingConfig,
        ...     process="my_plugin:start", metrics={"value": Metric(label="value")},
        ...     headline=("value",),
        ... )
        >>> halving.axis.label  # a default
        'epochs trained'
    """

    name: str
    title: str
    """One line: the quantity that is computed, and the source of the experiment."""
    config: type
    """Class of the configurations: a frozen, keyword-only dataclass (see `Config`)."""
    process: str
    """Import path of the function that creates the `Process` of a run.

    The path is written `module:function`. The function takes the configuration, `data_root` (Path
    or None), `device` (str) and, with `teaching`, `teacher` (Teacher or None).
    """
    network: str | None = None
    """Import path of the function that loads the network of a finished run. It takes the
    configuration and the final state (bytes), and returns the network (a torch module in evaluation
    mode) and an example input. None: runs train no network.
    """
    metrics: Mapping[str, Metric]
    """Metrics by name, in the order of table columns. Others are shown without a unit."""
    headline: tuple[str, ...]
    """Metrics by which reports can compare arms; the first that some arm measures is used."""
    axis: Axis = field(default_factory=Axis)
    measuring: Measuring = field(default_factory=Measuring)
    searching: Searching = field(default_factory=Searching)
    """Metrics that a search may minimise, and its limits. Default: no metric, so no searches."""
    reading: Reading = field(default_factory=Reading)
    keying: Keying = field(default_factory=Keying)
    """Fields that enter run keys and stage keys. Default: every field enters both."""
    data: Callable[[], DataNeeds] | None = None
    """Returns a new `DataNeeds`, with empty caches. None: the problem needs no data."""
    teaching: Teaching | None = None
    """Rules of distillation; None: no run learns from another run."""
    randomness: Randomness = field(default_factory=Randomness)
    comparing: Comparing = field(default_factory=Comparing)
    presentation: Presentation = field(default_factory=Presentation)
    cost: Cost = field(default_factory=Cost)
    packages: tuple[str, ...] = ()
    """Packages whose version can change results; each run records it, as those of torch, numpy and
    scipy."""

    def __post_init__(self) -> None:
        keying = self.keying
        unknown = {path for path, _, _ in keying.left_out()} - places(self.config)
        if unknown:
            raise ValueError(
                f"`keying` of the problem {self.name!r} names {', '.join(sorted(unknown))}, but "
                f"{self.config.__name__} has no such field, or only a group of fields: list the "
                "exact path of each field."
            )

    def metric(self, name: str) -> Metric:
        """Return a metric by its name; one that the problem does not describe has this as label.

        Example:
            >>> from mixup_core.problem import problem_named
            >>> problem_named("images").metric("test/error").heading
            'test error, %'
        """
        return self.metrics.get(name) or self.measuring.predicted.get(name) or Metric(label=name)

    def start(
        self, config: Any, data_root: Path | None, device: str, teacher: Teacher | None = None
    ) -> Process:
        """Create the process of a run: an iterator of its records; no epoch is trained yet.

        Args:
            config: The configuration of the run, an instance of the class `self.config`.
            data_root: Folder of datasets; None means the default of this machine.
            device: `cpu` or `cuda`.
            teacher: The run to learn from, if the configuration names one.

        Raises:
            DataError: If the data of the run are not on this machine.

        Example:
            >>> from mixup_core.problem import problem_named
            >>> from mixup_core.theory.entropy_floor import EntropyFloorConfig
            >>> process = problem_named("entropy-floor").start(EntropyFloorConfig(), None, "cpu")
            >>> [record.epoch for record in process]
            [0]
        """
        learns = {} if self.teaching is None else {"teacher": teacher}
        process: Process = _found(self.process)(config, data_root, device, **learns)
        return process

    def trained(self, config: Any, state: bytes) -> tuple[Any, Any]:
        """Return the trained network of a finished run, a torch module, and an example input.

        Args:
            config: The configuration of the run.
            state: The final state of the run, as `Process.to_bytes` returned it.

        Raises:
            StateError: If the bytes are not a state of this run.

        Example:
            >>> from mixup_core.images.choices.models import Mlp
            >>> from mixup_core.images.config import TrainConfig
            >>> from mixup_core.images.data.data_config import DataConfig
            >>> from mixup_core.problem import problem_named
            >>> images = problem_named("images")
            >>> data = DataConfig(name="digits")
            >>> config = TrainConfig(data=data, model=Mlp(), epochs=1, batch_size=8)
            >>> state = images.start(config, None, "cpu").to_bytes()
            >>> network, example = images.trained(config, state)
            >>> network(example).shape
            torch.Size([2, 10])
        """
        assert self.network is not None, "only called for problems that train a network"
        found: tuple[Any, Any] = _found(self.network)(config, state)
        return found


def problem_named(name: str) -> Problem:
    """Return a problem by its name."""
    entry = PROBLEMS[name]
    return entry if isinstance(entry, Problem) else _of_ours(entry)


@cache
def _of_ours(place: str) -> Problem:
    problem: Problem = _found(place)
    return problem


def all_data_needs() -> Mapping[str, DataNeeds]:
    """Return new objects that find and fetch datasets, by the first problem that uses each."""
    first: dict[Callable[[], DataNeeds], str] = {}
    for problem in map(problem_named, PROBLEMS):
        if problem.data is not None:
            first.setdefault(problem.data, problem.name)
    return {name: data() for data, name in first.items()}


def problem_of(config: Config) -> Problem:
    """Return the problem that a configuration belongs to."""
    return problem_named(config.problem)


def fields_apart(first: Config, second: Config, metric: str) -> list[str]:
    """Return the fields that alone make two configurations incomparable by a metric."""
    settings, population = flatten(first), problem_of(first).comparing.population
    fields = []
    for path, value in flatten(second).items():
        if value != settings.get(path):
            with suppress(ValueError):  # this value alone may contradict other fields
                changed = with_values(first, {path: value})
                if population(changed, metric) != population(first, metric):
                    fields.append(path)
    return fields


def with_named_teacher(config: Config) -> Config:
    """Return a copy of a configuration that names its teacher by arm (`arm wide`), not by key.

    The key of the teacher may not be known while a study file is read. Keys of the copy only tell
    the configurations of one study apart. A configuration without a teacher is returned unchanged.
    """
    teaching = problem_of(config).teaching
    arm = None if teaching is None else teaching.arm(config)
    if teaching is None or arm is None:
        return config
    named: Config = teaching.taught(config, f"arm {arm}")
    return named


def _found(place: str) -> Any:
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)
