"""Facets of a problem: what runs measure, how studies are read, searched, compared and shown."""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from mixup_core.laws import Law
from mixup_core.problem.metric import Metric
from mixup_core.rules import RuleError


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
    """Name of the metric whose value is a record's position on the axis. None: the position is the
    number of finished epochs.
    """


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
    """The common `HEAD` of the metrics' names. A metric that `Problem.metrics` declares does not
    belong to the series, even if its name begins with `HEAD/`.
    """
    metric: Metric
    """Label and unit shared by all metrics of the series."""
    along: str | None = None
    """Label of the x-axis if each `PART` is a number: the figure then shows the values of the last
    record over these numbers. None: the figure has one panel per arm, in which each `PART` is a
    row of cells over `Problem.axis`, coloured by value.
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
    """Metrics that `reports.numbers.predicted` computes from the predictions of the last epoch, by
    name. Claims can use them; records do not contain them.
    """
    observed: Callable[[Any, str], Any] = lambda config, metric: config
    """Takes a configuration and the name of a metric; returns a copy in which fields that only
    decide which other metrics are measured, and when, are set to fixed values. If the copies of two
    runs are equal, both runs end with the same value of the metric.
    """
    lacks: Callable[[Any, str, int], str | None] = lambda config, metric, records: None
    """Takes a configuration, the name of a metric that a claim or headline needs, and a number n.
    Returns None if the last n records that can contain the metric contain it. Otherwise returns a
    phrase that says what to set: `set quantity to gap`.
    """
    sample_size: Callable[[Any, str], int | None] = lambda config, metric: None
    """Takes a configuration and the name of a metric. Returns N if the metric is a fraction p of N
    independent examples, with the sampling error sqrt(p (1 - p) / N); otherwise returns None.
    """
    guessing: Callable[[Any, str], float | None] = lambda config, metric: None
    """Takes a configuration and the name of a metric. Returns the value that guessing reaches, such
    as the error 1 - 1 / k with k classes; None if it is unknown. Lower values must be better.
    """


@dataclass(frozen=True, kw_only=True, slots=True)
class HeldOut:
    """Rules that hide test results from a search; only the confirmation of its winner sees them."""

    hidden: Callable[[Any], Any]
    """Takes a configuration; returns the one that a search trains, without test results. Raises
    RuleError if a search cannot use the configuration.
    """
    revealed: Callable[[Any], Any]
    """Takes a configuration that a search trained; returns the one with which its confirmation
    trains, with test results.
    """


@dataclass(frozen=True, kw_only=True, slots=True)
class Searching:
    """Rules of a search: metrics it can minimise, fields it must not vary, results it must not see.

    Example:
        >>> from mixsweep.plugins import Searching
        >>> Searching(objectives=("loss",), unsearchable=("dimension",)).objectives
        ('loss',)
    """

    objectives: tuple[str, ...] = ()
    """Names of the metrics that a search can minimise."""
    unsearchable: tuple[str, ...] = ()
    """Paths of fields that a search must not vary, because results would not be comparable."""
    held_out: HeldOut | None = None
    """Rules that hide test results from a search; None: a search may use every metric."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Reading:
    """Rules for reading study files: fields they must not set, further checks.

    `other_names` maps the names of settings in other programs to this problem's, for hints in
    error messages.

    Example:
        >>> from mixsweep.plugins import Reading
        >>> reading = Reading(other_names={"learning_rate": "rate"})
        >>> reading.other_names["learning_rate"]
        'rate'
    """

    reserved: Mapping[str, str] = field(default_factory=dict)
    """Paths that a study file must not set, because the program fills them in. Each path has the
    message for a user who sets it.
    """
    other_names: Mapping[str, str] = field(default_factory=dict)
    """Names of settings in other programs, each with the path of the same setting in this problem.
    An error message about an unknown name suggests the path.
    """
    feasibility: Callable[[Any], Iterator[RuleError]] = lambda config: iter(())
    """Takes a configuration returned by `DataNeeds.prepare`; yields the reasons why its run would
    fail on the data.
    """
    infeasible_at: Callable[[Any, Sequence[int]], Iterator[RuleError]] = lambda config, seeds: iter(
        ()
    )
    """Takes a configuration returned by `DataNeeds.prepare`, and seeds; yields the reasons why the
    run of one of the seeds would fail on its random draws.
    """


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
    """Takes the configuration of an arm and a seed; returns the configuration of the run."""
    source: Callable[[Any], tuple[str, Any]] = lambda config: ("all", config)
    """Takes a configuration; returns two values. The first is the name of the only source of
    randomness that differs between its seeds, or `all`. The second is a copy of the configuration
    in which all sources differ between seeds. Reports compare configurations with equal copies, to
    show the spread of results that each source causes.
    """
    redrawn: Callable[[Any], tuple[str, Any]] = lambda config: ("nothing", config)
    """Takes a configuration; returns two values. The first is the name of the source of randomness
    that a run draws with a second seed instead of its own seed, or `nothing`, or `all`. The second
    is a copy of the configuration without a second seed. Reports compare configurations with equal
    copies: they form a crossed design.
    """


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparing:
    """Functions that say which runs may be compared: those for which `population` is equal.

    The population is what the results are measured on, such as the test images; other settings may
    differ. In a table of several studies, arms of one name may differ only in the fields that
    `data_paths` names.

    Example:
        >>> from types import SimpleNamespace
        >>> from mixsweep.plugins import Comparing
        >>> comparing = Comparing(
        ...     population=lambda config: config.dimension, data_paths=frozenset({"dimension"})
        ... )
        >>> comparing.population(SimpleNamespace(dimension=10))
        10
    """

    population: Callable[[Any], Hashable] = lambda config: None
    """Takes a configuration. The results of two runs may be compared only if this function returns
    equal values for both, such as the names of their test images.
    """
    data_paths: frozenset[str] = frozenset()
    """Dotted names of the fields that select the dataset. A table that shows several studies side
    by side allows different values of these fields.
    """
    dataset: Callable[[Any], str] = lambda config: ""
    """Takes a configuration; returns the name of its dataset, by which MLflow can group runs."""


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
    """Further panels of the figure of learning curves. Each panel is a list of metric names; it
    shows the first metric that was measured.
    """
    series: tuple[Series, ...] = ()
    """Groups of metrics of one kind, such as one metric per layer (see `Series`). Each group has a
    figure of its own.
    """
    setting: Callable[[Any, str], str] = lambda config, metric: ""
    """Takes a configuration and the name of a metric; describes in a caption the data on which the
    metric is measured: `Fashion-MNIST, 10 000 test images`.
    """
    classes: Callable[[Any], Sequence[str]] = lambda config: ()
    """Takes a configuration; returns the names of its classes in the order of the logits; empty if
    the classes have only numbers.
    """
    examples: Callable[[Any, str], Sequence[str]] = lambda config, split: ()
    """Takes a configuration and a split (`val` or `test`); returns the names of the examples in the
    order of the predictions; empty if the examples have no names.
    """
    remarks: Callable[[Any, Sequence[int]], Iterator[str]] = lambda config, seeds: iter(())
    """Takes a configuration and seeds; yields phrases on the data that plans and captions must
    show, such as test images that are also training images, or a class without images.
    """
    tags: Callable[[Any], tuple[str, ...]] = lambda config: ()
    """Takes a configuration; returns short remarks that every table, figure and MLflow record of
    its runs must show, such as `oracle` for runs trained on test data. A run with such a remark is
    never selected as the best.
    """
    method: Callable[[Any], str | None] = lambda config: getattr(
        getattr(config, "law", None), "method", None
    )
    """Takes a configuration; returns the name of its method (`erm`, `midpoint`, `uniform`), or
    None. A method has the same colour in all figures. The default reads the field `law` of the
    configuration.
    """
    law_at: Callable[[Any, int], Law] | None = None
    """Takes a configuration and a 0-based epoch; returns the mixing law in that epoch. None: the
    law never changes.
    """


@dataclass(frozen=True, kw_only=True, slots=True)
class Cost:
    """Functions that estimate the work, the memory and the disk space of a run.

    The work is a count, such as of images. The time of a run is estimated from it.

    Example:
        >>> from types import SimpleNamespace
        >>> from mixsweep.plugins import Cost
        >>> cost = Cost(work=lambda config: config.steps, work_unit="steps")
        >>> cost.work(SimpleNamespace(steps=500))
        500
    """

    work: Callable[[Any], int] = lambda config: 1
    """Takes a configuration; returns the number of work units in one epoch, such as images. Speed
    and remaining time are computed from it.
    """
    work_unit: str = "epochs"
    """Name of the work units in messages, in the plural."""
    memory: Callable[[Any], Mapping[str, int]] = lambda config: {}
    """Takes a configuration; returns the memory of each dataset in bytes, by name. All runs on a
    machine share this memory.
    """
    most_bytes: Callable[[Any], int] = lambda config: 0
    """Takes a configuration; returns an upper bound of a run's memory without its data, in bytes.

    The function must not build the network.
    """
    peak_bytes: Callable[[Any, str], int] | None = None
    """Takes a configuration and a device, runs one training step, and returns the peak memory of
    this process without the data, in bytes. None: runs are small and need no measurement.
    """
    evaluations: Callable[[Any], int] = lambda config: int(config.epochs)
    """Takes a configuration; returns how many of its records contain the headline metric."""
    prediction_bytes: Callable[[Any], int] = lambda config: 0
    """Takes a configuration; returns the approximate size of a run's predictions, in bytes.

    0: the run stores no predictions. Otherwise its process must implement `Predicting`. A run whose
    predictions are missing counts as finished, since its keys do not depend on them.
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
    """State of the finished run: the result of `Process.to_bytes` after its last epoch."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Teaching:
    """Rules by which a run learns from a run of another arm.

    `arm` returns the arm that a configuration names as teacher. `apart` gives the teacher random
    draws of its own. `taught` fills in the stage key of the teacher's run, so that the keys of the
    run depend on it.

    Example:
        >>> from dataclasses import replace
        >>> from mixsweep.plugins import Teaching
        >>> teaching = Teaching(
        ...     arm=lambda config: config.teacher,
        ...     taught=lambda config, key: replace(config, teacher_key=key),
        ... )
    """

    arm: Callable[[Any], str | None]
    """Takes a configuration; returns the arm that it names as its teacher, or None."""
    taught: Callable[[Any, str], Any]
    """Takes a configuration and the last stage key of its teacher's run; returns the configuration
    with this key filled in, so that the keys of the run depend on the teacher.
    """
    apart: Callable[[Any, Any], Any] = lambda teacher, student: teacher
    """Takes the configuration of the teacher's arm and that of the student, both at the student's
    seed; returns the configuration of the run that teaches. It should draw other initial weights
    and batches than the student, which is otherwise a copy of its teacher while both train in the
    same way. The default is the run of the teacher's arm itself.
    """
    unfit: Callable[[Any, Any], Iterator[RuleError]] = lambda config, teacher: iter(())
    """Takes a configuration and the teacher's configuration; yields the reasons why a run cannot
    learn from this teacher.
    """
