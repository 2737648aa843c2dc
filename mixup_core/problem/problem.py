"""Problem: a kind of run, described by its configuration, process, metrics and needs."""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from mixup_core.laws import Law
from mixup_core.problem.axis import Axis, Series
from mixup_core.problem.cost import Cost
from mixup_core.problem.data_needs import DataNeeds
from mixup_core.problem.held_out import HeldOut
from mixup_core.problem.keying import Keying
from mixup_core.problem.metric import Metric
from mixup_core.problem.process import Config, Process
from mixup_core.problem.teaching import Teacher, Teaching
from mixup_core.rules import RuleError
from mixup_core.tree.catalogue import CatalogueError, Origin, Register, note_origin
from mixup_core.tree.parts import places


class _Problems(Register["str | Problem"]):
    """Registry of problems: built-in ones as import paths, those of plugins as objects."""

    def check(self, entry: "str | Problem") -> None:
        """Check a plugin's problem before it is registered.

        Raises:
            CatalogueError: If its name is taken, or its configuration class names another problem.
        """
        super().check(entry)
        assert isinstance(entry, Problem), "ours are given when the register is made"
        named = getattr(entry.config, "problem", None)
        if named != entry.name:
            raise CatalogueError(
                f"the problem {entry.name} has a configuration with the class variable `problem` "
                f"{named!r}; both must be equal"
            )

    def put(self, entry: "str | Problem", origin: Origin | None) -> None:
        """Register a problem that passed `check`."""
        super().put(entry, origin)
        if isinstance(entry, Problem) and origin is not None:
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
    """A kind of run that studies can contain.

    Importing a problem does not import torch; only workers import the module of its process.
    """

    name: str
    title: str
    """One line: the quantity that is computed, and the source of the experiment."""
    config: type
    """Class of the configurations: a frozen, keyword-only dataclass (see `Config`)."""
    process: str
    """`module:function` that makes the `Process` of a run before its first epoch.

    The function takes (config, data_root: Path | None, device: str) and, if the problem has
    `teaching`, teacher: Teacher | None.
    """
    network: str | None = None
    """`module:function` that takes configuration and final state, and returns the trained network
    (a
    torch module in evaluation mode) and an example input. None: runs train no network.
    """
    metrics: Mapping[str, Metric]
    """Metrics by name, in the order of table columns. Other recorded metrics are shown without a
    unit.
    """
    predicted: Mapping[str, Metric] = field(default_factory=dict)
    """Metrics computed from the predictions of the last epoch (`reports.numbers.predicted`). Claims
    can use them; records do not contain them.
    """
    headline: tuple[str, ...]
    """Metrics by which reports compare arms; the first one that the arms measure is used."""
    beside: tuple[str, ...] = ()
    """Further metrics in the printed table. `*` stands for the prefix of the headline metric."""
    curves: tuple[tuple[str, ...], ...] = ()
    """Further panels of the figure of curves. Each panel lists metrics and shows the first that was
    measured.
    """
    series: tuple[Series, ...] = ()
    """Groups of metrics; each group is drawn in a figure of its own."""
    objectives: tuple[str, ...] = ()
    """Metrics that a search can minimise."""
    baseline: str = "erm"
    """Arm that the others are compared with, if the study has an arm of this name and sets no
    baseline itself.
    """
    axis: Axis = field(default_factory=Axis)
    keying: Keying = field(default_factory=Keying)
    data: Callable[[], DataNeeds] | None = None
    """Returns a new `DataNeeds`, with empty caches. None: the problem needs no data."""
    held_out: HeldOut | None = None
    """Rules that hide numbers from a search; None: a search may read every number."""
    teaching: Teaching | None = None
    """Rules of distillation; None: no run learns from another run."""
    feasibility: Callable[[Any], Iterator[RuleError]] = lambda config: iter(())
    """Yields the reasons why a run of a prepared configuration would fail on its data."""
    infeasible_at: Callable[[Any, Sequence[int]], Iterator[RuleError]] = lambda config, seeds: iter(
        ()
    )
    """Takes a prepared configuration and seeds; yields the reasons why the random draws of a seed
    would make its run fail.
    """
    at_seed: Callable[[Any, int], Any] = lambda config, seed: replace(config, seed=seed)
    """Takes the configuration of an arm and a seed; returns the configuration of the run."""
    reserved: Mapping[str, str] = field(default_factory=dict)
    """Paths that the program fills in, with the message for a user who sets them."""
    other_names: Mapping[str, str] = field(default_factory=dict)
    """Names that other programs use for fields, with the path of the field here, for error
    messages.
    """
    unsearchable: tuple[str, ...] = ()
    """Paths that a search must not vary, because results would not be comparable."""
    tags: Callable[[Any], tuple[str, ...]] = lambda config: ()
    """Returns remarks that every table, figure and record of a run must show, such as `oracle` for
    a run that has seen its test data. A run with such a remark is never selected.
    """
    measures: Callable[[Any, str], bool] = lambda config, metric: True
    """Takes a configuration and a `headline` metric; returns True if its run measures the metric.
    """
    observed: Callable[[Any, str], Any] = lambda config, metric: config
    """Takes a configuration and a metric; returns the configuration without the fields that only
    decide which other metrics are measured. If the results are equal for two runs, both end with
    the same value of the metric.
    """
    lacks: Callable[[Any, str, int], str | None] = lambda config, metric, records: None
    """Takes a configuration, a metric that a claim needs, and a number of records. Returns a phrase
    that says what to set so that the run ends with that many records of the metric; None if it does
    already.
    """
    setting: Callable[[Any, str], str] = lambda config, metric: ""
    """Returns the data on which a metric is measured, for captions: `Fashion-MNIST, 10 000 test
    images`.
    """
    classes: Callable[[Any], Sequence[str]] = lambda config: ()
    """Returns the names of the classes in the order of the logits; empty if they have only numbers.
    """
    examples: Callable[[Any, str], Sequence[str]] = lambda config, split: ()
    """Takes a configuration and a split (`val` or `test`); returns the names of the examples in the
    order of the predictions; empty if they have no names.
    """
    remarks: Callable[[Any, Sequence[int]], Iterator[str]] = lambda config, seeds: iter(())
    """Takes a configuration and seeds; yields phrases on the data that plans and captions must
    show,
    such as test images that are also training images, or a class without images.
    """
    sample_size: Callable[[Any, str], int | None] = lambda config, metric: None
    """Returns the number N of examples if the metric is a share of N independent examples, so that
    its sampling error is sqrt(p (1 - p) / N). Otherwise it returns None.
    """
    population: Callable[[Any], Hashable] = lambda config: None
    """Returns a value that is equal for runs whose results may be compared: same test images, same
    setting.
    """
    data_paths: frozenset[str] = frozenset()
    """Paths that select the dataset. Studies with the same protocol may differ in these only."""
    law_at: Callable[[Any, int], Law] | None = None
    """Takes a configuration and a 0-based epoch; returns the mixing law in that epoch. None: the
    law
    never changes.
    """
    method: Callable[[Any], str | None] = lambda config: getattr(
        getattr(config, "law", None), "method", None
    )
    """Returns the name of the method (`erm`, `midpoint`, `uniform`) that a configuration uses, or
    None. A method has the same colour in all figures. The default reads the configuration's field
    `law`.
    """
    source: Callable[[Any], tuple[str, Any]] = lambda config: ("all", config)
    """Returns the only source of randomness that differs between seeds, or `all`, with the
    configuration in which all sources differ. It serves studies of one source of variance.
    """
    redrawn: Callable[[Any], tuple[str, Any]] = lambda config: ("nothing", config)
    """Returns the source of randomness that the configuration's second seed controls (or `nothing`,
    or
    `all`), with the configuration without the second seed. The source is the row of a crossed
    design.
    """
    dataset: Callable[[Any], str] = lambda config: ""
    """Returns the name of the dataset, by which MLflow's tables can be grouped."""

    cost: Cost = field(default_factory=Cost)

    def __post_init__(self) -> None:
        """Check that each path left out of the keys is the path of a single field.

        Raises:
            ValueError: If a path names no field, or a group of fields.
        """
        keying = self.keying
        unknown = {path for path, _, _ in keying.left_out()} - places(self.config)
        if unknown:
            raise ValueError(
                f"Keying of the problem {self.name} names {', '.join(sorted(unknown))}, but no "
                f"field of {self.config.__name__} takes a value there: name exact paths."
            )

    def metric(self, name: str) -> Metric:
        """Return a metric by name; a metric that is not declared gets its name as label."""
        return self.metrics.get(name) or self.predicted.get(name) or Metric(label=name)

    def start(
        self, config: Any, data_root: Path | None, device: str, teacher: Teacher | None = None
    ) -> Process:
        """Return the process of a run before its first epoch, with data and network loaded.

        Args:
            config: The configuration of the run, an instance of the class `self.config`.
            data_root: Folder of datasets; None means the default of this machine.
            device: `cpu` or `cuda`.
            teacher: The run to learn from, if the configuration names one.
        """
        learns = {} if self.teaching is None else {"teacher": teacher}
        process: Process = _found(self.process)(config, data_root, device, **learns)
        return process

    def trained(self, config: Any, state: bytes) -> tuple[Any, Any]:
        """Return the trained network of a finished run, and an example input for it."""
        assert self.network is not None, "asked of problems that train one"
        found: tuple[Any, Any] = _found(self.network)(config, state)
        return found


def problem_named(name: str) -> Problem:
    """Return a problem by its name.

    Raises:
        KeyError: If no problem has this name.
    """
    entry = PROBLEMS[name]
    return entry if isinstance(entry, Problem) else _of_ours(entry)


@cache
def _of_ours(place: str) -> Problem:
    problem: Problem = _found(place)
    return problem


def all_data_needs() -> Mapping[str, DataNeeds]:
    """Return one `DataNeeds` per group of datasets, by problem name.

    Problems that use the same datasets appear once.
    """
    first: dict[Callable[[], DataNeeds], str] = {}
    for problem in map(problem_named, PROBLEMS):
        if problem.data is not None:
            first.setdefault(problem.data, problem.name)
    return {name: data() for data, name in first.items()}


def problem_of(config: Config) -> Problem:
    """Return the problem that a configuration belongs to."""
    return problem_named(config.problem)


def with_named_teacher(config: Config) -> Config:
    """Return a configuration in which the teacher's key is replaced by the name of its arm.

    The keys of the result exist before the teacher is trained. They tell the configurations of one
    study apart; results are stored under other keys.
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
