"""Facets of a problem: metrics of its runs, how studies are read, searched, compared and shown.

Fields that are functions take a configuration (`Any`) first.
"""

import math
import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from mixup_core.laws import Law
from mixup_core.rules import RuleError, printable, shown


@dataclass(frozen=True, kw_only=True, slots=True)
class Metric:
    """A kind of measured value: label, unit, which direction is better, and the possible range.

    Example:
        >>> from mixsweep.plugins import Metric
        >>> Metric(label="test accuracy", unit="%", is_lower_better=False).heading
        'test accuracy, %'
    """

    label: str
    unit: str = ""
    """`%` if the stored value is a fraction, another unit such as `nats`, or empty."""
    is_lower_better: bool = True
    note: str = ""
    """One sentence that explains the metric in captions of figures."""
    least: float | None = None
    """Lower bound of all values. None: 0 if the unit is `%`, else no bound. A claim is refused if
    the bounds alone make it true or false.
    """
    most: float | None = None
    """Upper bound of all possible values. None: 1 if the unit is `%`, else no bound."""

    @property
    def bounds(self) -> tuple[float, float]:
        """Smallest and largest possible value of this metric; infinite where there is no limit.

        Example:
            >>> from mixsweep.plugins import Metric
            >>> Metric(label="error", unit="%").bounds, Metric(label="loss", least=0.0).bounds
            ((0.0, 1.0), (0.0, inf))
        """
        is_share = self.unit == "%"
        least = (0.0 if is_share else -math.inf) if self.least is None else self.least
        most = (1.0 if is_share else math.inf) if self.most is None else self.most
        return least, most

    def allows(self, value: float) -> bool:
        """Return True if a value is within `bounds`, apart from float32 rounding.

        Example:
            >>> from mixsweep.plugins import Metric
            >>> error = Metric(label="error", unit="%")
            >>> error.allows(1.0000001), error.allows(-0.1)
            (True, False)
        """
        least, most = self.bounds
        return least - _slack(least) <= value <= most + _slack(most)

    @property
    def scale(self) -> float:
        """Factor from stored to printed values of this metric: 100 if the unit is `%`, else 1.

        Example:
            >>> from mixsweep.plugins import Metric
            >>> 0.25 * Metric(label="error", unit="%").scale
            25.0
        """
        return 100.0 if self.unit == "%" else 1.0

    @property
    def heading(self) -> str:
        """Label and unit of this metric for column headings, such as `test error, %`.

        Example:
            >>> from mixsweep.plugins import Metric
            >>> Metric(label="loss", unit="nats").heading, Metric(label="rank").heading
            ('loss, nats', 'rank')
        """
        return f"{self.label}, {self.unit}" if self.unit else self.label

    @property
    def difference_unit(self) -> str:
        """Unit of differences of this metric: `points` if its unit is `%`, else its unit.

        Example:
            >>> from mixsweep.plugins import Metric
            >>> Metric(label="error", unit="%").difference_unit
            'points'
        """
        return "points" if self.unit == "%" else self.unit

    @property
    def digits(self) -> int:
        """Number of digits after the decimal point in tables: 2 if the unit is `%`, else 3.

        Example:
            >>> from mixsweep.plugins import Metric
            >>> Metric(label="error", unit="%").digits, Metric(label="loss", unit="nats").digits
            (2, 3)
        """
        return 2 if self.unit == "%" else 3


def _slack(bound: float) -> float:
    return 1e-6 * max(1.0, abs(bound))


_NAME = re.compile(r"(?=.{1,150}$)\w[\w .:-]*(/\w[\w .:-]*)*", re.ASCII)
"""Names that MLflow accepts, also with a suffix of ours such as a read-out."""


def spell_odd_name(noun: str, names: Iterable[str]) -> str | None:
    """Return a message about a name that MLflow would refuse; None if it would refuse none."""
    if not (odd := sorted(name for name in names if not _NAME.fullmatch(name))):
        return None
    return (
        f"no {noun} can have the name {printable(shown(odd[0]))}: allowed are up to 150 letters, "
        "digits, `_`, `.`, `:`, `-` and blanks, and `/` between words"
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class Axis:
    """The x-axis of the learning curves of a run: epochs, or a metric such as simulated time.

    Example:
        >>> from mixsweep.plugins import Axis
        >>> Axis(label="time", unit="step", scale="log", metric="time").unit
        'step'
    """

    label: str = "epochs trained"
    unit: str = "epoch"
    """Name of one step along the axis in messages, such as `epoch` or `doubling`."""
    scale: Literal["linear", "log"] = "linear"
    metric: str | None = None
    """Metric whose value is a record's position on the axis. None: the number of epochs so far."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Series:
    """Metrics of one kind that one figure shows, named `HEAD/PART`: `norm/layer/1`, and so on.

    Example:
        >>> from mixsweep.plugins import Metric, Series
        >>> norms = Series(head="norm/layer", metric=Metric(label="weight norm"), along="layer")
        >>> norms.head  # its metrics are named norm/layer/1, norm/layer/2, ...
        'norm/layer'
    """

    head: str
    """The common `HEAD` of the names; those that `Problem.metrics` declares do not belong to it."""
    metric: Metric
    """Label and unit shared by all metrics of the series."""
    along: str | None = None
    """Label of the x-axis if each `PART` is a number: the figure shows the last record over them.
    None: one panel per arm, in which each `PART` is a row of cells over `Problem.axis`.
    """


@dataclass(frozen=True, kw_only=True, slots=True)
class Measuring:
    """Functions that say which metrics a run measures, and which fields decide this.

    Example:
        >>> from types import SimpleNamespace
        >>> from mixsweep.plugins import Measuring
        >>> measuring = Measuring(
        ...     lacks=lambda config, metric, _: None if config.kind == metric else "set kind"
        ... )
        >>> measuring.lacks(SimpleNamespace(kind="gap"), "gap", 1) is None
        True
    """

    predicted: Mapping[str, Metric] = field(default_factory=dict)
    """Metrics that reports compute from the predictions of the last epoch, by name. Claims can use
    them; records do not contain them.
    """
    observed: Callable[[Any, str], Any] = lambda config, metric: config
    """Returns a copy in which fields that cannot change the last value of the named metric have
    fixed values, such as those that only decide which others are measured, and when. Runs with
    equal copies end with the same value of it.
    """
    lacks: Callable[[Any, str, int], str | None] = lambda config, metric, records: None
    """Takes also the name of a metric and a number n. Returns None if the last n records that can
    contain the metric contain it, else a phrase that says what to set: `set quantity to gap`.
    """
    lacks_at: Callable[[Any, str, Sequence[int]], str | None] = lambda config, metric, seeds: None
    """Takes the name of a metric and seeds. Returns None unless the random draws of one of the
    seeds keep its run from recording the metric; else a phrase as `lacks` does.
    """
    sample_size: Callable[[Any, str], int | None] = lambda config, metric: None
    """Returns N if the named metric is a fraction p of N independent examples, with the sampling
    error sqrt(p (1 - p) / N); else None.
    """
    guessing: Callable[[Any, str], float | None] = lambda config, metric: None
    """Returns the value of the named metric that guessing reaches, such as the error 1 - 1 / k with
    k classes; None if it is unknown. Lower values must be better.
    """

    def missing(self, config: Any, metric: str, records: int, seeds: Sequence[int]) -> str | None:
        """Return why the run of one of the seeds would not record a metric; None if all record it.

        Example:
            >>> from mixsweep.plugins import Measuring
            >>> measuring = Measuring(lacks_at=lambda config, metric, seeds: "set more points")
            >>> measuring.missing(None, "gap", 1, [0, 1])
            'set more points'
        """
        return self.lacks(config, metric, records) or self.lacks_at(config, metric, seeds)


@dataclass(frozen=True, kw_only=True, slots=True)
class HeldOut:
    """Rules that hide test results from a search; only the confirmation of its winner sees them."""

    hidden: Callable[[Any], Any]
    """Returns the configuration that a search trains, without test results; raises RuleError if a
    search cannot use it.
    """
    revealed: Callable[[Any], Any]
    """Takes a configuration that a search trained; returns that of its confirmation, with tests."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Searching:
    """Rules of a search: metrics it can minimise, fields it must not vary, results it must not see.

    Example:
        >>> from mixsweep.plugins import Searching
        >>> Searching(objectives=("loss",), unsearchable=("test_points",)).objectives
        ('loss',)
    """

    objectives: tuple[str, ...] = ()
    """Names of the metrics that a search can minimise."""
    unsearchable: tuple[str, ...] = ()
    """Paths of fields that a search must not vary, beside those that change
    `Comparing.population`.
    """
    held_out: HeldOut | None = None
    """Rules that hide test results from a search; None: a search may use every metric."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Reading:
    """Rules for reading study files: fields they must not set, further checks, names for hints.

    Example:
        >>> from mixsweep.plugins import Reading
        >>> reading = Reading(other_names={"learning_rate": "rate"})
        >>> reading.other_names["learning_rate"]
        'rate'
    """

    reserved: Mapping[str, str] = field(default_factory=dict)
    """Paths that a study file must not set, because the program fills them in, each with the
    message for a user who sets it.
    """
    other_names: Mapping[str, str] = field(default_factory=dict)
    """Names of settings in other programs, each with its path in this problem, for messages."""
    feasibility: Callable[[Any], Iterator[RuleError]] = lambda config: iter(())
    """Yields the reasons why the run of a prepared configuration would fail on the data."""
    infeasible_at: Callable[[Any, Sequence[int]], Iterator[RuleError]] = lambda *_: iter(())
    """Takes also seeds; yields the reasons why the run of one would fail on its random draws."""

    def unfit(self, config: Any, seeds: Sequence[int]) -> Iterator[RuleError]:
        """Yield all reasons why a run of a prepared configuration would fail at one of the seeds.

        Raises:
            DataError: If the data cannot be read.

        Example:
            >>> from mixup_core.rules import RuleError
            >>> from mixsweep.plugins import Reading
            >>> too_few = RuleError("images >= 100", {"images": 10})
            >>> reading = Reading(feasibility=lambda config: iter([too_few]))
            >>> [str(reason) for reason in reading.unfit(None, [0, 1])]
            ['`images >= 100` must hold, got (images=10).']
        """
        yield from self.feasibility(config)
        yield from self.infeasible_at(config, seeds)


@dataclass(frozen=True, kw_only=True, slots=True)
class Randomness:
    """Functions that set the seed of a run, and say which random draws differ between seeds.

    Example:
        >>> from mixup_core.images.config import TrainConfig
        >>> from mixsweep.plugins import Randomness
        >>> Randomness().at_seed(TrainConfig(epochs=1, batch_size=8), 3).seed
        3
    """

    at_seed: Callable[[Any, int], Any] = lambda config, seed: replace(config, seed=seed)
    """Takes the configuration of an arm and a seed; returns that of the run."""
    source: Callable[[Any], tuple[str, Any]] = lambda config: ("all", config)
    """Returns the name of the only source of randomness that differs between seeds, or `all`, and a
    copy of the configuration in which all sources differ. Reports compare configurations with
    equal copies, to show the spread of results that each source causes.
    """
    redrawn: Callable[[Any], tuple[str, Any]] = lambda config: ("nothing", config)
    """Returns the name of the source of randomness that a run draws with a second seed, or
    `nothing`, or `all`, and a copy of the configuration without a second seed. Configurations with
    equal copies form a crossed design.
    """


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparing:
    """Functions that say which runs may be compared: those for which `population` is equal.

    The population is what the results are measured on, such as the test images. In a table of
    several studies, arms of one name may differ only in the fields that `data_paths` names.

    Example:
        >>> from types import SimpleNamespace
        >>> from mixsweep.plugins import Comparing
        >>> comparing = Comparing(
        ...     population=lambda config, metric: config.dimension,
        ...     data_paths=frozenset({"dimension"}),
        ... )
        >>> comparing.population(SimpleNamespace(dimension=10), "loss")
        10
    """

    population: Callable[[Any, str], Hashable] = lambda config, metric: None
    """Returns a value that is equal for runs that may be compared by the named metric, such as
    their test images. A search refuses to vary a field that changes it.
    """
    data_paths: frozenset[str] = frozenset()
    """Dotted names of the fields that select the dataset."""
    dataset: Callable[[Any], str] = lambda config: ""
    """Returns the name of the dataset, by which MLflow can group runs."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Presentation:
    """Additional columns, curves and captions with which reports show the runs of a problem.

    Example:
        >>> from mixsweep.plugins import Presentation
        >>> presentation = Presentation(curves=(("train/loss",), ("test/error", "val/error")))
        >>> len(presentation.curves)  # panels
        2
    """

    beside: tuple[str, ...] = ()
    """Names of further metrics in the printed table. In `*/exact`, `*` stands for the part of the
    headline metric's name before the slash.
    """
    curves: tuple[tuple[str, ...], ...] = ()
    """Further panels of the figure of learning curves: each lists metric names, of which it shows
    the first one that was measured.
    """
    series: tuple[Series, ...] = ()
    """Groups of metrics of one kind, such as one per layer, each with a figure of its own."""
    setting: Callable[[Any, str], str] = lambda config, metric: ""
    """Describes in a caption the data on which the named metric is measured: `Fashion-MNIST, 10 000
    test images`.
    """
    classes: Callable[[Any], Sequence[str]] = lambda config: ()
    """Returns the names of the classes in the order of the logits; empty if they are numbers."""
    examples: Callable[[Any, str], Sequence[str]] = lambda config, split: ()
    """Takes also a split (`val` or `test`); returns the names of its examples in the order of the
    predictions; empty if they have no names.
    """
    remarks: Callable[[Any, Sequence[int]], Iterator[str]] = lambda config, seeds: iter(())
    """Takes also seeds; yields phrases on the data that plans and captions must show, such as a
    class without images.
    """
    tags: Callable[[Any], tuple[str, ...]] = lambda config: ()
    """Returns short remarks that every table, figure and MLflow record must show, such as `oracle`
    for runs trained on test data. Such a run is never selected as the best.
    """
    method: Callable[[Any], str | None] = lambda config: getattr(
        getattr(config, "law", None), "method", None
    )
    """Returns the name of the method (`erm`, `midpoint`, `uniform`), which has the same colour in
    all figures, or None. The default reads the field `law`.
    """
    law_at: Callable[[Any, int], Law] | None = None
    """Takes also a 0-based epoch; returns the law in that epoch. None: the law never changes."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Cost:
    """Functions that estimate a run's work, from which follows its time, its memory and its disk.

    Example:
        >>> from types import SimpleNamespace
        >>> from mixsweep.plugins import Cost
        >>> cost = Cost(work=lambda config: config.steps, work_unit="steps")
        >>> cost.work(SimpleNamespace(steps=500))
        500
    """

    work: Callable[[Any], int] = lambda config: 1
    """Returns the number of work units in one epoch, such as images."""
    work_unit: str = "epochs"
    """Name of the work units in messages, in the plural."""
    memory: Callable[[Any], Mapping[str, int]] = lambda config: {}
    """Returns the memory of each dataset in bytes, by name. All runs on a machine share it."""
    most_bytes: Callable[[Any], int] = lambda config: 0
    """Returns an upper bound of a run's memory without its data, in bytes; builds no network.
    0: runs are small.
    """
    evaluations: Callable[[Any], int] = lambda config: int(config.epochs)
    """Returns how many records contain the headline metric."""
    prediction_bytes: Callable[[Any], int] = lambda config: 0
    """Returns the approximate size of a run's predictions, in bytes. 0: it stores none. Otherwise
    its process must implement `Predicting`.
    """


@dataclass(frozen=True, kw_only=True, slots=True)
class Teacher:
    """A finished run from whose network another run learns.

    Example:
        >>> from mixup_core.problem import problem_named
        >>> from mixup_core.theory.entropy_floor import EntropyFloorConfig
        >>> from mixsweep.plugins import Teacher
        >>> config = EntropyFloorConfig()
        >>> process = problem_named("entropy-floor").start(config, None, "cpu")
        >>> teacher = Teacher(config=config, state=process.to_bytes())
    """

    config: Any
    state: bytes
    """The result of `Process.to_bytes` after the last epoch."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Teaching:
    """Rules by which a run learns from a run of another arm, its teacher.

    Example:
        >>> from dataclasses import replace
        >>> from mixsweep.plugins import Teaching
        >>> teaching = Teaching(
        ...     arm=lambda config: config.teacher,
        ...     taught=lambda config, key: replace(config, teacher_key=key),
        ... )
    """

    arm: Callable[[Any], str | None]
    """Returns the arm that a configuration names as its teacher, or None."""
    taught: Callable[[Any, str], Any]
    """Takes also the last stage key of the teacher's run; returns the configuration with this key
    filled in, so that the keys of the run depend on the teacher.
    """
    apart: Callable[[Any, Any], Any] = lambda teacher, student: teacher
    """Takes the configurations of the teacher's arm and of the student, both at the student's seed;
    returns that of the run that teaches. It should draw other initial weights and batches than the
    student, which otherwise is a copy of it while both train in the same way.
    """
    unfit: Callable[[Any, Any], Iterator[RuleError]] = lambda config, teacher: iter(())
    """Takes also the teacher's configuration; yields the reasons why it cannot teach this run."""
