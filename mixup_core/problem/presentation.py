"""Presentation: how reports show a problem, with additional columns, curves and captions."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from mixup_core.laws import Law
from mixup_core.problem.axis import Series


@dataclass(frozen=True, kw_only=True, slots=True)
class Presentation:
    """Additional columns, curves and captions with which reports show the runs of a problem."""

    beside: tuple[str, ...] = ()
    """Further metrics in the printed table. `*` stands for the prefix of the headline metric."""
    curves: tuple[tuple[str, ...], ...] = ()
    """Further panels of the figure of curves. Each panel lists metrics and shows the first that was
    measured.
    """
    series: tuple[Series, ...] = ()
    """Groups of metrics; each group is drawn in a figure of its own."""
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
    show, such as test images that are also training images, or a class without images.
    """
    tags: Callable[[Any], tuple[str, ...]] = lambda config: ()
    """Returns remarks that every table, figure and record of a run must show, such as `oracle` for
    a run that has seen its test data. A run with such a remark is never selected.
    """
    method: Callable[[Any], str | None] = lambda config: getattr(
        getattr(config, "law", None), "method", None
    )
    """Returns the name of the method (`erm`, `midpoint`, `uniform`) that a configuration uses, or
    None. A method has the same colour in all figures. The default reads the configuration's field
    `law`.
    """
    law_at: Callable[[Any, int], Law] | None = None
    """Takes a configuration and a 0-based epoch; returns the mixing law in that epoch. None: the
    law never changes.
    """
