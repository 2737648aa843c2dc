"""mixsweep: studies from Python. Four names, for notebooks and scripts.

Example::

    import mixsweep

    study = mixsweep.read_study("digits", "seeds=3")     # a bundled name or a path, and overrides
    for record in mixsweep.train(study.runs()[0]):       # one run, here and now; nothing is stored
        print(record.epoch, record.metrics["test/error"])

    results = mixsweep.load("digits", home="runs")       # what `mixsweep run digits` has stored
    results.arms, results.runs, results.epochs           # DataFrames; errors as fractions
    results.predictions                                  # logits of validation and test images
    results.figures["learning_curves"]                   # shows itself; `.frame` has its numbers

A study is a value (`sweeps.study.study.Study`): `arms`, `seeds`, `runs()`. It is trained with
resume, tracking and reports by `mixsweep run` alone; nothing here starts Ray or writes a file.
"""

from collections.abc import Iterator, Mapping
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

from mixup_core.problem import problem_of
from mixup_core.records import EpochRecord
from sweeps.commands.request import Request
from sweeps.machine.home import Home
from sweeps.reading.study_file import load_study
from sweeps.state.results import RunResult, read_predictions
from sweeps.study.study import Run, Study

if TYPE_CHECKING:
    import pandas as pd

    from reports.figures.canvas import Figure

__all__ = ["Results", "load", "read_study", "train"]


class Results:
    """What a home or store holds of a study, read once; each table is made when it is asked for."""

    study: Study
    """With the points of its search, if it is one."""
    stored: tuple[RunResult, ...]
    """One per run, in the order of the study: records, facts, outcome."""

    def __init__(self, request: Request) -> None:
        """Read it; use `load`."""
        self.study = request.grown
        self.stored = request.results()
        self._request = request
        self._store = request.store

    @cached_property
    def arms(self) -> "pd.DataFrame":
        """The columns of `table.csv`, one row per arm: means, intervals, paired differences."""
        from reports.tables.frames import arms_frame

        return arms_frame(self.study, self.stored)

    @cached_property
    def runs(self) -> "pd.DataFrame":
        """The columns of `runs.csv`, one row per run."""
        from reports.tables.frames import runs_frame

        return runs_frame(self.study, self.stored)

    @cached_property
    def epochs(self) -> "pd.DataFrame":
        """One row per run and stored epoch, with every metric."""
        from reports.tables.frames import epochs_frame

        return epochs_frame(self.study, self.stored)

    @cached_property
    def predictions(self) -> "pd.DataFrame":
        """One row per finished run and validation or test image: split, index, label, logits."""
        import pandas as pd

        from reports.tables.frames import prediction_frames

        read = partial(read_predictions, store=self._store)
        found = list(prediction_frames(self.study, self.stored, read))
        return pd.concat(found, ignore_index=True) if found else pd.DataFrame()

    @cached_property
    def figures(self) -> Mapping[str, "Figure"]:
        """The figures of the report by name."""
        from reports.pages.build import draw_report

        history = self._request.weighed_history
        return {f.name: f for f in draw_report(self.study, self.stored, history)}


def read_study(reference: str | Path, *overrides: str) -> Study:
    """Return a study, checked so that every run of it can start.

    Args:
        reference: Name of a bundled study, or the path of a study file.
        overrides: `PATH=VALUE`, as `--set` takes them.

    Raises:
        StudyError: If the file, an override or the study is not right: every problem at once.
    """
    return load_study(str(reference), overrides)


def load(
    study: str | Path, *overrides: str, home: str | Path = "runs", store: str | None = None
) -> Results:
    """Return what is stored of a study, finished or not.

    Args:
        study: Name of a bundled study, the path of a study file, or the name of a study that was
            launched there, with the settings of its newest launch.
        overrides: `PATH=VALUE`, as it was run with.
        home: Folder of results.
        store: Checkpoint store elsewhere, a path or an fsspec URL; None: the one in `home`.

    Raises:
        StudyError: If the study is not right.
        StoreError: If the store cannot be read.
        RefusedError: If nothing of the study is stored there.
    """
    place = Home(folder=Path(home), store_url=store)
    request = Request(
        reference=str(study),
        overrides=overrides,
        study=load_study(str(study), overrides, place.store),
        home=place,
    )
    request.require_stored()
    return Results(request)


def train(
    run: Run, *, data: str | Path | None = None, device: str = "cpu"
) -> Iterator[EpochRecord]:
    """Train one run in this process and yield what each epoch measured; nothing is stored.

    On a CPU with one thread (`torch.set_num_threads(1)`) the numbers are those of `mixsweep run`.

    Args:
        run: One of `Study.runs()`.
        data: Folder of the data sets; None: `MIXSWEEP_DATA`, or its default.
        device: `cpu`, `cuda` or `cuda:NUMBER`.

    Raises:
        ValueError: If the run learns from another one, which only a launch trains before it, or the
            device is of another kind.
        DataError: If its data set is not here.
    """
    if run.teacher is not None:
        raise ValueError(f"`a run without a teacher` must hold, got ({run.arm=}, {run.seed=}).")
    if device.partition(":")[0] not in {"cpu", "cuda"}:
        raise ValueError(f"`device is cpu, cuda or cuda:NUMBER` must hold, got ({device=}).")
    root = None if data is None else Path(data)
    return iter(problem_of(run.config).start(run.config, root, device))
