"""Problem: what a study can run: a config type, its process, its metrics and what it needs."""

import math
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Protocol

from mixup_core.laws import Law
from mixup_core.records import EpochRecord
from mixup_core.rules import RuleError
from mixup_core.tree.limits import Range
from mixup_core.tree.parts import places

PROBLEMS: dict[str, str] = {
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
}
"""Name, as `problem:` of a study file gives it, to where the problem is; a file is read when its
problem is asked for."""

DEFAULT_PROBLEM = "images"
"""What a study is of that names no problem."""

MAX_SEED = 2**63 - 1

Seed = Annotated[int, Range(0, MAX_SEED)]
"""Names all random draws of a run."""

OneRecord = Annotated[int, Range(1, 1, hint="there is one record")]
"""Epochs of what is computed at once."""


class DivergedError(ArithmeticError):
    """A value is no longer finite; computing the run again would only find the same."""

    def __init__(self, message: str, epoch: int) -> None:
        super().__init__(message)
        self.epoch = epoch
        """0-based epoch in which it happened."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Let the error pass between processes."""
        return type(self), (str(self), self.epoch)


class DataError(Exception):
    """Data that are absent, damaged or not what they should be: what, where, and the way out."""

    def __init__(self, message: str, fields: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.fields = fields
        """Dotted paths of the configuration that named the data, the likeliest at fault first."""


class StateError(ValueError):
    """Bytes are not the state of this run, or hold more than tensors and plain values."""


class Config(Protocol):
    """Everything that decides the numbers of one run: a tree of frozen dataclasses."""

    problem: ClassVar[str]
    """Name of the problem, a key of `PROBLEMS`."""

    @property
    def epochs(self) -> int:
        """Number of records of a finished run, at least 1."""

    @property
    def seed(self) -> int:
        """Names all random draws of the run, in 0..2^63-1."""


class Process(Protocol):
    """A run under way. Iterating it goes on after the last record and ends after the last epoch.

    Between two records the state is consistent: the caller reports, stores or stops by not asking
    again. Every draw is named by (seed, purpose, epoch), so that a process that loads a state gives
    the same records, bit for bit on one machine, as one that was never stopped.
    """

    @property
    def records(self) -> list[EpochRecord]:
        """One per finished epoch, epoch 0 first."""

    def __iter__(self) -> Iterator[EpochRecord]:
        """Yield the record of each epoch that is not there yet, also appended to `records`.

        Raises:
            DivergedError: If a value is not finite.
        """

    def to_bytes(self) -> bytes:
        """Return what the next epochs need; equal states give equal bytes on a CPU."""

    def load_bytes(self, content: bytes, records: list[EpochRecord]) -> None:
        """Take the state that `to_bytes` wrote and the records that belong to it.

        Raises:
            StateError: If the bytes are no state of this run; this one is then of no use either.
        """


class Predicting(Process, Protocol):
    """A run under way that leaves predictions (`Problem.prediction_bytes`)."""

    def predictions(self) -> bytes:
        """Return what the run predicts as it is now, from `Predictions.to_bytes`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Metric:
    """A measured value: how it is called and shown, and which way is better."""

    label: str
    unit: str = ""
    """`%` where the stored value is a fraction, else for example `nats`; empty for a number."""
    is_lower_better: bool = True
    note: str = ""
    """What captions of figures explain of it, as a sentence."""
    least: float | None = None
    """No value is smaller, whatever a run does; None: 0 for a percentage, else there is no such
    bound. A claim that a bound decides is refused."""
    most: float | None = None
    """No value is larger; None: 1 for a percentage, else there is no such bound."""

    @property
    def bounds(self) -> tuple[float, float]:
        """The least and the largest possible value, infinite where there is none."""
        is_share = self.unit == "%"
        least = (0.0 if is_share else -math.inf) if self.least is None else self.least
        most = (1.0 if is_share else math.inf) if self.most is None else self.most
        return least, most

    @property
    def scale(self) -> float:
        """Factor from the stored value to the shown one; files keep fractions."""
        return 100.0 if self.unit == "%" else 1.0

    @property
    def heading(self) -> str:
        """Label and unit."""
        return f"{self.label}, {self.unit}" if self.unit else self.label

    @property
    def difference_unit(self) -> str:
        """Unit of a difference: percentage points are called `points`."""
        return "points" if self.unit == "%" else self.unit

    @property
    def digits(self) -> int:
        """Digits after the point in tables."""
        return 2 if self.unit == "%" else 3


@dataclass(frozen=True, kw_only=True, slots=True)
class Axis:
    """What the records of a run stand along."""

    label: str = "epochs trained"
    unit: str = "epoch"
    """One step, for messages."""
    scale: Literal["linear", "log"] = "linear"
    metric: str | None = None
    """Metric that holds the place of a record on the axis; None: the number of records so far."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Series:
    """Metrics of one kind, one of each part of a run: `HEAD/PART`."""

    head: str
    """Metrics below it that the problem declares by their names are none of the series."""
    metric: Metric
    """How any of them is shown."""
    along: str | None = None
    """Label of the parts if they are numbers: the values of the last record stand along them. None:
    each part has its values along the axis of the problem."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Keying:
    """How a configuration enters the keys of its results (`mixup_core.keys`)."""

    is_named: bool = True
    """Whether the name of the problem enters. Images were the only one when results were first
    stored."""
    numerics: int = 0
    """Raised whenever what the same configuration computes changes in this problem alone, so that
    old results are not mixed in; 0 enters no key. `NUMERICS_VERSION` is that of all problems."""

    first: Mapping[str, Any] = field(default_factory=dict)
    """Paths that are in every key, to the value they have there where the tree lacks them. A path
    that is not among them enters a key only where it differs from its default, so that a field
    added later orphans no result."""
    never: Mapping[str, str] = field(default_factory=dict)
    """Exact paths that enter no key, each with the reason why it changes no number."""
    stands_for: Mapping[str, str] = field(default_factory=dict)
    """Paths that never enter either, to the path that stands for what they name (`data.folder` to
    `data.digest`): a configuration that gives the first has no key before it has the second."""
    by_epoch: Mapping[str, str] = field(default_factory=dict)
    """Exact paths that enter the keys of stages through `of_epoch` alone, each with the reason why
    that is enough. The path of a choice covers the fields of its members, and the path of a list
    the fields of its items; if some of these fields are named as well, it covers only those. Every
    other path enters the key of every stage, so that a new field does."""
    of_epoch: Callable[[Any, int], Any] = lambda config, epoch: None
    """(config, 0-based epoch) to what decides that epoch beyond the other paths, as JSON, whatever
    the seed; a real number that was computed is rounded to 12 significant digits."""

    def __post_init__(self) -> None:
        """Check the named paths.

        Raises:
            ValueError: If a path ends in a dot or has no reason.
        """
        for path, reason in (*self.never.items(), *self.by_epoch.items()):
            if path.endswith("."):
                raise ValueError(
                    f"Keying names exact paths, but {path!r} ends in a dot: name each field below "
                    "it, with the reason why it may leave the keys."
                )
            if not reason.strip():
                raise ValueError(f"Keying has no reason why {path!r} may leave the keys.")

    def left_out(self) -> Iterator[tuple[str, str, str]]:
        """Yield each path that leaves a key, the keys that it leaves, and the reason."""
        for path, reason in self.never.items():
            yield path, "all keys", reason
        for path, stand_in in self.stands_for.items():
            yield path, "all keys", f"`{stand_in}` enters in its place."
        for path, reason in self.by_epoch.items():
            yield path, "stage keys, but for the epochs it decides", reason

    def covers(self, path: str) -> bool:
        """Return whether a path enters the keys of stages through `of_epoch` alone."""
        if path in self.by_epoch:
            return True
        above = path.rpartition(".")[0]
        while above and above not in self.by_epoch:
            above = above.rpartition(".")[0]
        return bool(above) and not self.names_below(above)

    def names_below(self, path: str) -> bool:
        """Return whether `by_epoch` names fields below a path one by one."""
        return any(named.startswith(f"{path}.") for named in self.by_epoch)


@dataclass(frozen=True, kw_only=True, slots=True)
class DataSet:
    """A data set that runs may need, and whether this machine has it."""

    name: str
    is_present: bool
    place: str
    """The folder that holds the files, or will; else the package that brings it."""
    num_bytes: int | None
    """In memory, training and test images at their full size; None: it is part of another set."""


@dataclass(frozen=True, kw_only=True, slots=True)
class KnownData:
    """What a store knows of data that were used before, so that results need no data."""

    configs: Sequence[Mapping[str, Any]] = ()
    """Prepared configurations (`DataNeeds.prepare`), flattened."""
    facts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Digest to facts (`DataNeeds.facts`)."""


class DataNeeds(Protocol):
    """What the runs of a problem need of data sets."""

    def root(self) -> Path:
        """Return the folder of the data sets on this machine."""

    def sets(self) -> Sequence[DataSet]:
        """Return the data sets that can be fetched, without opening a file."""

    def fetch(self, name: str) -> str:
        """Bring a data set to this machine if it is not there, and return where it came from.

        Raises:
            DataError: If it cannot be had: how each source failed, and what to do by hand.
        """

    def prepare(self, config: Any, folder: Path) -> Any:
        """Return the configuration with what stands for its data filled in.

        Called for each arm when a study is read: whatever is slow is kept for the next.

        Args:
            config: As the study file gives it.
            folder: Where relative paths count from.

        Raises:
            DataError: If the data cannot be described.
            RuleError: If the data contradicts the configuration.
        """

    def recall(self, known: Callable[[], KnownData], *, only: bool) -> None:
        """Let `prepare` take data that are not here from what a store knows of them.

        Args:
            known: Called when it is first needed.
            only: Whether data that are here are not looked at either.
        """

    def facts(self, config: Any) -> Mapping[str, Mapping[str, Any]]:
        """Return digest to what a store keeps of the data of a prepared configuration, as JSON."""

    def missing(self, config: Any) -> str | None:
        """Return what this machine lacks of the data, and how to get it, in one line."""

    def check(self, config: Any) -> None:
        """Check data that nobody has checked yet, as far as that takes no time; write nothing.

        Raises:
            DataError: If it cannot be used.
        """

    def open(self, config: Any) -> None:
        """Look at data that nobody has checked yet, before any run does.

        Raises:
            DataError: If it cannot be used.
        """

    def checksums(self, config: Any) -> Mapping[str, Mapping[str, str]]:
        """Return data set to file to checksum, for provenance; empty where it is not here."""


@dataclass(frozen=True, kw_only=True, slots=True)
class HeldOut:
    """How a search is kept from the numbers that only a confirmation may read."""

    hidden: Callable[[Any], Any]
    """The configuration as a search may train it; RuleError if it cannot be searched."""
    revealed: Callable[[Any], Any]
    """The configuration as a winner is confirmed."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Teacher:
    """The finished run that another run learns from."""

    config: Any
    state: bytes
    """What `Process.to_bytes` of its process gave after its last epoch."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Teaching:
    """How runs of a problem learn from others, each from the arm it names, at its own seed."""

    arm: Callable[[Any], str | None]
    """The arm that a configuration names as its teacher; None if it learns from none."""
    taught: Callable[[Any, str], Any]
    """(configuration, final stage key of its teacher) to the configuration with that key filled
    in, which stands for the teacher in all of its own keys."""
    unfit: Callable[[Any, Any], Iterator[RuleError]] = lambda config, teacher: iter(())
    """(configuration, that of its teacher): yields each reason why it cannot learn from it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Problem:
    """What a study can run. Reading one loads no torch; its process is imported in workers."""

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
    """What a report compares arms by: the first of these that the arms measure."""
    beside: tuple[str, ...] = ()
    """Further metrics of the printed table, in which `*` stands for the head of the headline."""
    curves: tuple[tuple[str, ...], ...] = ()
    """Panels of the figure of curves after the headline's: of each, the first that was measured."""
    series: tuple[Series, ...] = ()
    """Further metrics by part, each drawn in a figure of its own."""
    objectives: tuple[str, ...] = ()
    """What a search may minimise."""
    baseline: str = "erm"
    """The arm that others are compared with, if a study has it and declares no other."""
    axis: Axis = field(default_factory=Axis)
    keying: Keying = field(default_factory=Keying)
    data: Callable[[], DataNeeds] | None = None
    """Makes one that knows nothing yet; None: the problem needs no data."""
    held_out: HeldOut | None = None
    """None: a search may read whatever it minimises."""
    teaching: Teaching | None = None
    """None: no run learns from another."""
    feasibility: Callable[[Any], Iterator[RuleError]] = lambda config: iter(())
    """Yields each reason why a run of a prepared configuration would fail on its data."""
    infeasible_at: Callable[[Any, Sequence[int]], Iterator[RuleError]] = lambda config, seeds: iter(
        ()
    )
    """(prepared configuration, seeds): yields why a run at one of them would fail on what it
    draws."""
    reserved: Mapping[str, str] = field(default_factory=dict)
    """Paths that are filled in for the user, to what one who sets them is told."""
    unsearchable: tuple[str, ...] = ()
    """Paths that decide what the objective means, so that points would not compare."""
    tags: Callable[[Any], tuple[str, ...]] = lambda config: ()
    """What every table, figure and record of a run must say of it: `oracle` for one that has seen
    what it is tested on. A tagged run is never selected."""
    measures: Callable[[Any, str], bool] = lambda config, metric: True
    """Whether a run of a configuration measures a metric of `headline`."""
    setting: Callable[[Any, str], str] = lambda config, metric: ""
    """What a run's metric was measured on, for captions: `Fashion-MNIST, 10 000 test images`."""
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
    evaluations: Callable[[Any], int] = lambda config: int(config.epochs)
    """Records of a run that hold its headline metric."""
    prediction_bytes: Callable[[Any], int] = lambda config: 0
    """Bytes of the predictions that a finished run leaves, but for a few; 0: it leaves none. Else
    its process is a `Predicting`. They decide no key: a run is finished without them, too."""
    dataset: Callable[[Any], str] = lambda config: ""
    """Name of the data set, which MLflow's tables can be grouped by."""
    memory: Callable[[Any], Mapping[str, int]] = lambda config: {}
    """Data set to the bytes of it that a machine holds in memory, once for all of its runs."""
    work: Callable[[Any], int] = lambda config: 1
    """How much there is to do in one epoch, for rates and times to come."""
    work_unit: str = "epochs"

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


@cache
def problem_named(name: str) -> Problem:
    """Return a problem by its name.

    Raises:
        KeyError: If there is none.
    """
    problem: Problem = _found(PROBLEMS[name])
    return problem


def all_data_needs() -> Mapping[str, DataNeeds]:
    """Return name of problem to what it needs, the first of those that need the same data sets."""
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
