"""Presentation: how reports show a problem, with additional columns, curves and captions."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from mixup_core.laws import Law
from mixup_core.problem.axis import Series


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
