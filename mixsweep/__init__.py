"""mixsweep: run studies and read their results from Python, in notebooks and scripts.

Example::

    import mixsweep

    study = mixsweep.read_study("digits", "seeds=3")     # a bundled name or a path, and overrides
    for record in mixsweep.train(study.runs()[0]):       # one run, in this process, not stored
        print(record.epoch, record.metrics["test/error"])

    results = mixsweep.run("digits", home="runs")        # trains what is missing, then reports
    results = mixsweep.load("digits", home="runs")       # what `mixsweep run digits` has stored
    results                                              # shows the main table
    results.arms, results.runs, results.epochs           # DataFrames; errors as fractions
    results.classes                                      # test error of each class, by name
    results.predictions                                  # logits of validation and test images
    results.figures["learning_curves"]                   # a figure; `.frame` has its numbers

A study is an immutable object (`sweeps.study.study.Study`) with `arms`, `seeds` and `runs()`. In
place of a name or path, every function also accepts a mapping with the keys of a study file. `run`
does the same as `mixsweep run`; no other function of this module starts Ray or writes a file.
"""

import inspect
import io
import warnings
from collections.abc import Iterator, Mapping
from contextlib import redirect_stdout
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from mixup_core.addresses import local_path
from mixup_core.problem import problem_of
from mixup_core.records import EpochRecord
from sweeps.commands.request import Request
from sweeps.machine.home import Home
from sweeps.reading.study_file import load_study, study_of
from sweeps.state.results import RunResult, read_predictions
from sweeps.study.study import Run, Study

if TYPE_CHECKING:
    import pandas as pd

    from reports.figures.canvas import Figure

__all__ = ["Results", "load", "read_study", "run", "train"]

Reference = str | Path | Mapping[str, Any]
"""Name of a bundled study, path of a study file, or a mapping with its keys."""


_COLUMNS, _ROWS = 120, 60
"""Largest size of the main table in the text form of results, in characters and lines."""


class Results:
    """The stored results of a study, read once; each table and figure is computed on access."""

    study: Study
    """The study; if it is a search, its proposed points are included as arms."""
    stored: tuple[RunResult, ...]
    """Results of each run, in the order of `study.runs()`: records, environments and outcome."""

    def __init__(self, request: Request) -> None:
        """Read the results of a study; call `load` instead of this constructor."""
        self.study = request.grown
        self.stored = request.results()
        self._request = request
        self._store = request.store

    def __repr__(self) -> str:
        """Return a text with the number of finished runs and the main table."""
        from reports.tables.table import tabulate
        from sweeps.commands.terminal_table import fitted

        done = sum(result.outcome == "complete" for result in self.stored)
        head = f"{self.study.name}: {done} of {len(self.stored)} runs are finished"
        if not done:
            return head
        table = tabulate(self.study, self.stored).markdown()
        return f"{head}\n{fitted(table, _COLUMNS, _ROWS)}"

    @cached_property
    def arms(self) -> "pd.DataFrame":
        """DataFrame of one row per arm, as in `table.csv`: mean, interval, paired difference."""
        from reports.tables.frames import arms_frame

        return arms_frame(self.study, self.stored)

    def to_latex(self) -> str:
        """Return the main table as LaTeX source, equal to `table.tex` of the report."""
        from reports.pages.build import report_table

        read = partial(read_predictions, store=self._store)
        history = self._request.weighed_history
        table = report_table(self.study, self.stored, history=history, predictions=read)
        return table.latex()

    @cached_property
    def runs(self) -> "pd.DataFrame":
        """DataFrame of one row per run, as in `runs.csv`: arm, seed, outcome, metrics."""
        from reports.tables.frames import runs_frame

        return runs_frame(self.study, self.stored)

    @cached_property
    def classes(self) -> "pd.DataFrame":
        """DataFrame of one row per class and arm, as in `classes.csv`: test error, interval."""
        from reports.tables.frames import classes_frame

        read = partial(read_predictions, store=self._store)
        return classes_frame(self.study, self.stored, read)

    @cached_property
    def epochs(self) -> "pd.DataFrame":
        """DataFrame of one row per run and stored epoch, with a column for every metric."""
        from reports.tables.frames import epochs_frame

        return epochs_frame(self.study, self.stored)

    @cached_property
    def predictions(self) -> "pd.DataFrame":
        """DataFrame of one row per finished run and image of the validation or test split.

        Runs that average their weights have a second row per image, for the averaged weights.
        Columns include arm, seed, split, weights, index of the image, label, and logits.
        """
        import pandas as pd

        from reports.tables.frames import prediction_frames

        read = partial(read_predictions, store=self._store)
        found = list(prediction_frames(self.study, self.stored, read))
        return pd.concat(found, ignore_index=True) if found else pd.DataFrame()

    @cached_property
    def figures(self) -> Mapping[str, "Figure"]:
        """The figures of the report by name, except those computed from stored predictions."""
        from reports.pages.build import draw_report

        history = self._request.weighed_history
        return {f.name: f for f in draw_report(self.study, self.stored, history)}


def read_study(reference: Reference, *overrides: str) -> Study:
    """Read a study and check that every run of it can start.

    Args:
        reference: Name of a bundled study, the path of a study file, or a mapping with its keys.
        overrides: `PATH=VALUE` texts, for example `"seeds=3"`, as for `--set`.

    Raises:
        StudyError: If the file, an override or the study is invalid; the message lists all faults.
    """
    if isinstance(reference, Mapping):
        return study_of(reference, overrides)
    return load_study(str(reference), overrides)


def run(
    study: Reference,
    *overrides: str,
    home: str | Path = "runs",
    store: str | None = None,
    engine: Literal["inline", "ray"] = "inline",
    slots: int | None = None,
) -> Results:
    """Train the missing runs of a study, write its report, and return the stored results.

    If interrupted, call it again to resume. A failed run raises no exception; `Results.runs` has
    its outcome.

    Args:
        study: Name of a bundled study, the path of a study file, or a mapping with its keys.
        overrides: `PATH=VALUE` texts, as for `--set`.
        home: Folder for everything that mixsweep writes.
        store: Path or fsspec URL of the checkpoint store; None for the store in `home`.
        engine: `inline` trains in this process, one run after another; `ray` trains runs in
            parallel.
        slots: Number of parallel runs with Ray; None for as many as CPUs or GPUs allow.

    Raises:
        StudyError: If the study is invalid.
        RefusedError: If the study cannot be launched on this machine.
    """
    from sweeps.commands.ending import Ending
    from sweeps.commands.run import run as command

    request = _request(study, overrides, home, store)
    launch: Any = command.callback
    with command.make_context("run", [request.reference], obj=Ending()) as context:
        names = set(inspect.signature(launch).parameters)
        given = {name: value for name, value in context.params.items() if name in names}
        # The results show the tables themselves, and tqdm warns of its own bars in notebooks.
        with redirect_stdout(io.StringIO()), warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="IProgress not found")
            launch.__wrapped__(request, **given | {"engine": engine, "slots": slots})
    return load(study, *overrides, home=home, store=store)


def load(
    study: Reference, *overrides: str, home: str | Path = "runs", store: str | None = None
) -> Results:
    """Return the stored results of a study, finished or not.

    Args:
        study: Name of a bundled study, the path of a study file, or a mapping with its keys; or the
            name of a study launched in this home, whose newest launch is then read.
        overrides: `PATH=VALUE` texts, the same as in the launch.
        home: Folder that `run` or `mixsweep run` wrote to.
        store: Path or fsspec URL of the checkpoint store; None for the store in `home`.

    Raises:
        StudyError: If the study is invalid.
        StoreError: If the store cannot be read.
        RefusedError: If neither the home nor the store contains results of the study.
    """
    request = _request(study, overrides, home, store)
    request.require_stored()
    return Results(request)


def _request(
    study: Reference, overrides: tuple[str, ...], home: str | Path, store: str | None
) -> Request:
    place = Home(folder=Path(home), store_url=store)
    if isinstance(study, Mapping):
        read = study_of(study, overrides)
    else:
        read = load_study(str(study), overrides, place.store)
    reference = read.name if isinstance(study, Mapping) else str(study)
    return Request(reference=reference, overrides=overrides, study=read, home=place)


def train(
    run: Run, *, data: str | Path | None = None, device: str = "cpu"
) -> Iterator[EpochRecord]:
    """Train one run in this process and yield the record of each epoch; nothing is stored.

    On a CPU with one thread (`torch.set_num_threads(1)`) the values equal those of `mixsweep run`.

    Args:
        run: One of `Study.runs()`.
        data: Folder of the datasets; None for the one in the environment variable `MIXSWEEP_DATA`,
            or the default folder.
        device: `cpu`, `cuda` or `cuda:NUMBER`.

    Raises:
        ValueError: If the run learns from a teacher (only a launch trains teachers), or `device` is
            not of one of the three forms above.
        DataError: If the dataset of the run is not on this machine.
    """
    if run.teacher is not None:
        raise ValueError(
            "a run that learns from a teacher must be trained with its study, by `mixsweep.run`, "
            f"got ({run.arm=}, {run.seed=})."
        )
    if device.partition(":")[0] not in {"cpu", "cuda"}:
        raise ValueError(f"device must be cpu, cuda or cuda:NUMBER, got ({device=}).")
    root = None if data is None else local_path(data)
    return iter(problem_of(run.config).start(run.config, root, device))
