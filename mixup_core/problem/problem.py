"""Problem: what a study can run: a config type, its process, its metrics and what it needs."""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
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
    """Places of our problems, and the problems of plugins."""

    def check(self, entry: "str | Problem") -> None:
        """Check that a plugin's problem can be an entry.

        Raises:
            CatalogueError: If its name is taken, or its configuration names another problem.
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
        """Add a problem that was checked."""
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
"""Name, as `problem:` of a study file gives it, to where the problem is; a file is read when its
problem is asked for."""

DEFAULT_PROBLEM = "images"
"""Problem of a study that names none."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Problem:
    """A kind of run that studies can contain.

    Reading it loads no torch; workers import its process.
    """

    name: str
    title: str
    """One line: what is computed, of whom."""
    config: type
    """A frozen, keyword-only dataclass, see `Config`."""
    process: str
    """`module:function`; the function takes (config, data_root: Path | None, device: str) and, if
    the problem has `teaching`, teacher: Teacher | None; it returns a `Process` before its first
    epoch."""
    network: str | None = None
    """`module:function` from (config, state after the last epoch) to the trained network, a torch
    module in evaluation mode, and an example of what it takes; None: a run trains none."""
    metrics: Mapping[str, Metric]
    """In the order of columns. A metric that is not here is shown as a number by its own name."""
    predicted: Mapping[str, Metric] = field(default_factory=dict)
    """Metrics computed from predictions of the last epoch (`reports.numbers.predicted`):
    claims may be about them, and no record holds them."""
    headline: tuple[str, ...]
    """Metrics by which a report compares arms: the first of these that the arms measure."""
    beside: tuple[str, ...] = ()
    """Further metrics of the printed table, in which `*` stands for the head of the headline."""
    curves: tuple[tuple[str, ...], ...] = ()
    """Panels of the figure of curves after the headline's: of each, the first that was measured."""
    series: tuple[Series, ...] = ()
    """Further metrics by part, each drawn in a figure of its own."""
    objectives: tuple[str, ...] = ()
    """Metrics that a search may minimise."""
    baseline: str = "erm"
    """The arm that others are compared with, if a study has it and declares no other."""
    axis: Axis = field(default_factory=Axis)
    keying: Keying = field(default_factory=Keying)
    data: Callable[[], DataNeeds] | None = None
    """Makes one that knows nothing yet; None: the problem needs no data."""
    held_out: HeldOut | None = None
    """Numbers that a search may not read; None: it may read all that it minimises."""
    teaching: Teaching | None = None
    """The rules of teachers; None: no run learns from another."""
    feasibility: Callable[[Any], Iterator[RuleError]] = lambda config: iter(())
    """Yields each reason why a run of a prepared configuration would fail on its data."""
    infeasible_at: Callable[[Any, Sequence[int]], Iterator[RuleError]] = lambda config, seeds: iter(
        ()
    )
    """(prepared configuration, seeds): yields why a run at one of them would fail on what it
    draws."""
    reserved: Mapping[str, str] = field(default_factory=dict)
    """Paths that are filled in for the user, to what one who sets them is told."""
    other_names: Mapping[str, str] = field(default_factory=dict)
    """Names that other programs give to a path, to that path: what a message offers for them."""
    unsearchable: tuple[str, ...] = ()
    """Paths that decide what the objective means, so that points would not compare."""
    tags: Callable[[Any], tuple[str, ...]] = lambda config: ()
    """Remarks that every table, figure and record of a run must show: `oracle` for one that has
    seen what it is tested on. A tagged run is never selected."""
    measures: Callable[[Any, str], bool] = lambda config, metric: True
    """True if a run of a configuration measures a metric of `headline`."""
    setting: Callable[[Any, str], str] = lambda config, metric: ""
    """The data on which a metric of a run was measured, for captions: `Fashion-MNIST, 10 000 test
    images`."""
    classes: Callable[[Any], Sequence[str]] = lambda config: ()
    """Names of the classes that a run predicts, in the order of its logits; empty: they have only
    their numbers."""
    examples: Callable[[Any, str], Sequence[str]] = lambda config, split: ()
    """(configuration, `val` or `test`) to the names of the examples that are predicted, in their
    order; empty: they have none."""
    remarks: Callable[[Any, Sequence[int]], Iterator[str]] = lambda config, seeds: iter(())
    """(configuration, seeds) to what plans and captions must say of the data of these runs, each a
    phrase: test images that were trained on, a class without an image."""
    sample_size: Callable[[Any, str], int | None] = lambda config, metric: None
    """Number of examples whose mean a run's metric is, if it is a share of them: its own sampling
    noise is sqrt(p (1 - p) / N); None where it is no share of drawn examples."""
    population: Callable[[Any], Hashable] = lambda config: None
    """Runs are compared only where this is equal: the same images, the same setting."""
    data_paths: frozenset[str] = frozenset()
    """Paths that say which data set a run is of, and nothing of how it is used: all that studies of
    one protocol may differ in."""
    law_at: Callable[[Any, int], Law] | None = None
    """(config, 0-based epoch) to the mixing law in force; None: its law never changes."""
    method: Callable[[Any], str | None] = lambda config: getattr(
        getattr(config, "law", None), "method", None
    )
    """Name of the plain method a configuration is (`erm`, `midpoint`, `uniform`), which has one
    colour in all figures; None for any other. By default that of a field `law`."""
    source: Callable[[Any], tuple[str, Any]] = lambda config: ("all", config)
    """The source of randomness that alone differs between the seeds of a configuration, and the
    configuration in which all of them do, `all`."""
    redrawn: Callable[[Any], tuple[str, Any]] = lambda config: ("nothing", config)
    """The source of randomness that a configuration draws by its second seed, or `nothing` or
    `all`, and the configuration that draws none by it: the lines of a crossed design."""
    dataset: Callable[[Any], str] = lambda config: ""
    """Name of the data set, which MLflow's tables can be grouped by."""

    cost: Cost = field(default_factory=Cost)

    def __post_init__(self) -> None:
        """Check that each path which may leave a key takes a value.

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
        """Return how a metric is shown; an unknown one under its own name."""
        return self.metrics.get(name) or self.predicted.get(name) or Metric(label=name)

    def start(
        self, config: Any, data_root: Path | None, device: str, teacher: Teacher | None = None
    ) -> Process:
        """Return the process of a run before its first epoch; loads what the process needs.

        Args:
            config: The run, of type `config`.
            data_root: Folder of the data sets; None: the machine's own.
            device: `cpu` or `cuda`.
            teacher: What the run learns from, if it names one.
        """
        learns = {} if self.teaching is None else {"teacher": teacher}
        process: Process = _found(self.process)(config, data_root, device, **learns)
        return process

    def trained(self, config: Any, state: bytes) -> tuple[Any, Any]:
        """Return the network of a finished run and an example of what it takes (`network`)."""
        assert self.network is not None, "asked of problems that train one"
        found: tuple[Any, Any] = _found(self.network)(config, state)
        return found


def problem_named(name: str) -> Problem:
    """Return a problem by its name.

    Raises:
        KeyError: If there is none.
    """
    entry = PROBLEMS[name]
    return entry if isinstance(entry, Problem) else _of_ours(entry)


@cache
def _of_ours(place: str) -> Problem:
    problem: Problem = _found(place)
    return problem


def all_data_needs() -> Mapping[str, DataNeeds]:
    """Return the data needs by problem name; problems that need the same datasets appear once."""
    first: dict[Callable[[], DataNeeds], str] = {}
    for problem in map(problem_named, PROBLEMS):
        if problem.data is not None:
            first.setdefault(problem.data, problem.name)
    return {name: data() for data, name in first.items()}


def problem_of(config: Config) -> Problem:
    """Return the problem that a configuration belongs to."""
    return problem_named(config.problem)


def with_named_teacher(config: Config) -> Config:
    """Return a configuration that has keys before its teacher is known, whose arm stands for it.

    The keys tell configurations of one study apart; results are stored under others.
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
