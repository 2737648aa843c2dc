"""mixsweep: run studies and read their results from Python, in notebooks and scripts.

A study is an experiment: arms (configurations to compare), each trained at several seeds. A run is
one arm at one seed. In Python, a study is an immutable object (`sweeps.study.study.Study`) with
`arms`, `seeds` and `runs()`. In place of a name or path, every function that reads a study also
accepts a mapping with the keys of a study file. `run` does the same as `mixsweep run`; no other
function of this module starts Ray or stores results.

Example:
    >>> import mixsweep
    >>> overrides = "seeds=1", "base.epochs=1"
    >>> study = mixsweep.read_study("digits", *overrides)  # a bundled name or a path
    >>> for record in mixsweep.train(study.runs()[0]):  # one run, in this process, not stored
    ...     print(record.epoch, record.metrics["test/error"] < 0.5)
    0 True
    >>> results = mixsweep.run("digits", *overrides, home="runs")  # trains what is missing
    >>> results = mixsweep.load("digits", *overrides, home="runs")  # what is stored there
    >>> table = repr(results)  # the main table; a notebook shows it for `results`
    >>> frames = results.arms, results.runs, results.epochs  # DataFrames; errors as fractions
    >>> len(results.classes)  # test error of each class and arm
    30
    >>> logits = results.predictions["logits"]  # of validation and test images
    >>> list(results.figures)  # the numbers of a figure are in its `frame`
    ['final_values']
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mixsweep.api import Results, load, read_study, run, train

__all__ = ["Results", "load", "read_study", "run", "train"]


def __getattr__(name: str) -> Any:
    """Import the functions of `mixsweep.api` at their first use: commands start without them."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from mixsweep import api

    return getattr(api, name)


def __dir__() -> list[str]:
    """Return the public names."""
    return __all__
