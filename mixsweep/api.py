"""Functions of `mixsweep` for notebooks and scripts: read, train, run and load studies."""

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from mixsweep.request import Request
from mixup_core.addresses import local_path
from mixup_core.problem import problem_of
from mixup_core.records import EpochRecord
from sweeps.machine.home import Home
from sweeps.reading.study_file import load_study, study_of
from sweeps.running.attempt import prepare_process
from sweeps.state.results import RunResult, read_predictions
from sweeps.study.study import Run, Study

if TYPE_CHECKING:
    import pandas as pd

    from reports.figures.canvas import Figure

Reference = str | Path | Mapping[str, Any]
"""Name of a bundled study, path of a study file, or a mapping with its keys."""


class Results:
    """The stored results of a study, read once; each table and figure is computed on access.

    The examples of its members read the results that the example of `run` has stored.

    Example:
        >>> import mixsweep
        >>> results = mixsweep.load("digits", "seeds=1", "base.epochs=1", home="runs")
        >>> results.study.name, [result.outcome for result in results.stored]
        ('digits', ['complete', 'complete', 'complete'])
    """

    study: Study
    """The study. If it searches for settings, its arms include each point (set of values) that the
    search has proposed, and the arms that confirm the best point at new seeds.
    """
    stored: tuple[RunResult, ...]
    """Results of each run, in the order of `study.runs()`: records, environments and outcome."""

    def __init__(self, request: Request) -> None:
        """Read the results of a study; call `load` instead of this constructor."""
        self.study = request.grown
        self.stored = request.results()
        self._request = request
        self._read = partial(read_predictions, store=request.store)

    def __repr__(self) -> str:
        """Return the number of finished runs and the main table.

        Verdicts are left out, because a report counts each time that it shows them.
        """
        from reports.pages.build import report_table

        done = sum(result.outcome == "complete" for result in self.stored)
        head = f"{self.study.name}: {done} of {len(self.stored)} runs are finished"
        if not done:
            return head
        table = report_table(self.study, self.stored, history=self._request.history)
        return f"{head}\n\n{table.listing.markdown()}"

    @cached_property
    def arms(self) -> "pd.DataFrame":
        """DataFrame of one row per arm, as in `table.csv`: means, differences from the baseline.

        Errors and their intervals are fractions in [0, 1]. NaN stands for a missing value, such as
        the interval of a single seed.

        Example:
            >>> import mixsweep
            >>> results = mixsweep.load("digits", "seeds=1", "base.epochs=1", home="runs")
            >>> results.arms[["arm", "n"]]
                    arm  n
            0       erm  1
            1  midpoint  1
            2   uniform  1
        """
        from reports.pages.build import report_table
        from reports.tables.frames import arms_frame

        return arms_frame(report_table(self.study, self.stored, history=self._request.history))

    def to_latex(self) -> str:
        """Return the main table as LaTeX source, equal to `table.tex` of the report.

        Raises:
            StoreError: If the server of the store cannot be reached.

        Example:
            >>> import mixsweep
            >>> results = mixsweep.load("digits", "seeds=1", "base.epochs=1", home="runs")
            >>> results.to_latex().count("begin{tabular}")  # further columns are in a second table
            2
        """
        from reports.pages.build import report_table

        history = self._request.history
        table = report_table(self.study, self.stored, history=history, predictions=self._read)
        return table.latex()

    @cached_property
    def runs(self) -> "pd.DataFrame":
        """DataFrame of one row per run, as in `runs.csv`: arm, seed, outcome, metrics.

        Errors are fractions in [0, 1]; NaN stands for a missing value.

        Example:
            >>> import mixsweep
            >>> results = mixsweep.load("digits", "seeds=1", "base.epochs=1", home="runs")
            >>> results.runs[["arm", "seed", "epochs", "outcome"]]
                    arm  seed  epochs   outcome
            0       erm     0       1  complete
            1  midpoint     0       1  complete
            2   uniform     0       1  complete
        """
        from reports.tables.frames import runs_frame

        return runs_frame(self.study, self.stored)

    @cached_property
    def classes(self) -> "pd.DataFrame":
        """DataFrame of one row per class and arm, as in `tables/classes.csv`: test error, interval.

        Errors are fractions in [0, 1]. The frame is empty if no predictions are stored.

        Raises:
            StoreError: If the server of the store cannot be reached.

        Example:
            >>> import mixsweep
            >>> results = mixsweep.load("digits", "seeds=1", "base.epochs=1", home="runs")
            >>> list(results.classes.columns)
            ['class', 'name', 'arm', 'n', 'error_mean', 'error_sd', 'error_ci_low', 'error_ci_high']
            >>> len(results.classes)  # 10 classes, 3 arms
            30
        """
        from reports.pages.build import report_classes
        from reports.tables.frames import classes_frame

        history = self._request.history
        table = report_classes(self.study, self.stored, history=history, predictions=self._read)
        return classes_frame(table)

    @cached_property
    def epochs(self) -> "pd.DataFrame":
        """DataFrame of one row per run and stored epoch, with a column for every metric.

        The column `epoch` counts from 1, `seconds` is the wall time of the epoch, and
        `stored_at_ms` the time of storing, in milliseconds since 1970. Errors are fractions.

        Example:
            >>> import mixsweep
            >>> results = mixsweep.load("digits", "seeds=1", "base.epochs=1", home="runs")
            >>> results.epochs[["arm", "seed", "epoch"]]
                    arm  seed  epoch
            0       erm     0      1
            1  midpoint     0      1
            2   uniform     0      1
        """
        from reports.tables.frames import epochs_frame

        return epochs_frame(self.study, self.stored)

    @cached_property
    def predictions(self) -> "pd.DataFrame":
        """DataFrame of one row per finished run and image of the validation or test split.

        Runs that average their weights have a second row per image, for the averaged weights.
        Columns include arm, seed, split, weights, index of the image, label, and logits.

        Raises:
            StoreError: If the server of the store cannot be reached.

        Example:
            >>> import mixsweep
            >>> import numpy as np
            >>> results = mixsweep.load("digits", "seeds=1", "base.epochs=1", home="runs")
            >>> np.stack(results.predictions["logits"]).shape  # 3 runs, 360 test images, 10 classes
            (1080, 10)
        """
        import pandas as pd

        from reports.tables.frames import prediction_frames

        frames = list(prediction_frames(self.study, self.stored, self._read))
        return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()

    @cached_property
    def figures(self) -> Mapping[str, "Figure"]:
        """The figures of the report by name, except those computed from stored predictions.

        Example:
            >>> import mixsweep
            >>> results = mixsweep.load("digits", "seeds=1", "base.epochs=1", home="runs")
            >>> results.figures["final_values"]
            <Figure final_values: Final test error>
        """
        from reports.pages.build import draw_report

        history = self._request.history
        return {f.name: f for f in draw_report(self.study, self.stored, history)}


def read_study(reference: Reference, *overrides: str) -> Study:
    """Read a study and check that every run of it can start.

    Args:
        reference: Name of a bundled study, the path of a study file, or a mapping with its keys.
        overrides: `PATH=VALUE` texts, for example `"seeds=3"`, as for `--set`.

    Raises:
        StudyError: If the file, an override or the study is invalid; the message lists all faults.
        PluginError: If an installed plugin that the study names cannot be loaded.

    Example:
        >>> import mixsweep
        >>> study = mixsweep.read_study("digits", "seeds=2")
        >>> list(study.arms), study.seeds, len(study.runs())
        (['erm', 'midpoint', 'uniform'], (0, 1), 6)
    """
    if isinstance(reference, Mapping):
        return study_of(reference, overrides)
    return load_study(str(reference), overrides)


def run(  # noqa: PLR0913  the options of a launch
    study: Reference,
    *overrides: str,
    home: str | Path = "runs",
    store: str | None = None,
    engine: Literal["inline", "ray"] = "inline",
    slots: int | None = None,
    address: str | None = None,
    on_epoch: Callable[[str, int, int, Mapping[str, float]], object] | None = None,
) -> Results:
    """Train the missing runs of a study, write its report, and return the stored results.

    To resume after an interrupt, call it again. A failed run raises no exception; `Results.runs`
    has its outcome.

    Args:
        study: Name of a bundled study, the path of a study file, or a mapping with its keys. Load
            the plugins of a mapping with `mixsweep.plugins.use`, and again after you edit them.
        overrides: `PATH=VALUE` texts, as for `--set`.
        home: Folder for everything that mixsweep writes.
        store: Path or fsspec URL of the store of results; None for the store in `home`.
        engine: `inline` trains in this process, one run after another. `ray` trains runs in
            parallel. Another process uses Ray, so that this process, its children, its signal
            handlers and its connection to Ray do not change.
        slots: Number of parallel runs with Ray; None for as many as CPUs or GPUs allow.
        address: HOST:PORT of the Ray cluster to train on; None for the one in RAY_ADDRESS, or else
            for a cluster on this machine that ends with the call.
        on_epoch: Function that is called in this process once for each epoch that is stored, with
            the arm, the seed, the epoch (counted from 1) and its metrics, for example to draw or to
            log them. The metrics cannot be changed. Epochs of less than half a second arrive
            several at once, and training waits for the function. If it raises an exception, the
            launch ends as after Ctrl-C, and the call raises the same exception.

    Raises:
        StudyError: If the study is invalid.
        ValueError: If there is no such engine.
        RefusedError: If the study cannot be launched on this machine.
        StudyBusyError: If another process trains the study.
        HeadLostError: If Ray did not start, or its cluster died; call again to continue.
        KeyboardInterrupt: If interrupted, also by `mixsweep stop --now`.

    Example:
        >>> import mixsweep
        >>> results = mixsweep.run("digits", "seeds=1", "base.epochs=1", home="runs")
        >>> results.runs[["arm", "seed", "outcome"]]
                arm  seed   outcome
        0       erm     0  complete
        1  midpoint     0  complete
        2   uniform     0  complete
        >>> def show(arm, seed, epoch, metrics):
        ...     print(arm, seed, epoch, metrics["test/error"])
        >>> small = "seeds=1", "base.epochs=1"
        >>> results = mixsweep.run("digits", *small, home="runs", on_epoch=show)  # all are stored
    """
    from mixsweep.apart import Order, launch_apart
    from mixsweep.launching.launch import LaunchOptions, launch
    from mixup_core.plugins.loading import loaded_paths

    if engine not in {"inline", "ray"}:
        raise ValueError(f"engine must be 'inline' or 'ray', got {engine!r}")
    request = Request.read(study, overrides, home=Home(folder=Path(home), store_url=store))
    options = LaunchOptions(engine=engine, slots=slots, address=address)
    if options.is_inline:
        launch(request, options, on_epoch=on_epoch)
    else:
        reference = dict(study) if isinstance(study, Mapping) else str(study)
        order = Order(
            study=reference, overrides=overrides, plugins=loaded_paths(), home=request.home,
            options=options,
        )  # fmt: skip
        launch_apart(order, on_epoch)
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
        store: Path or fsspec URL of the store of results; None for the store in `home`.

    Raises:
        StudyError: If the study is invalid.
        StoreError: If the store cannot be read.
        RefusedError: If neither the home nor the store contains results of the study.

    Example:
        >>> import mixsweep
        >>> results = mixsweep.load("digits", "seeds=1", "base.epochs=1", home="runs")  # see `run`
        >>> len(results.stored)
        3
    """
    place = Home(folder=Path(home), store_url=store)
    request = Request.read(study, overrides, home=place, reads_only=True)
    request.require_stored()
    return Results(request)


def train(
    run: Run, *, data: str | Path | None = None, device: str = "cpu"
) -> Iterator[EpochRecord]:
    """Train one run in this process and yield the record of each epoch; no result is stored.

    On a CPU the values equal those of `mixsweep run`. For this, the call sets the numeric libraries
    of this process to one thread and to the floating-point precision that `mixsweep run` uses; they
    keep these settings. A dataset that is not on this machine is downloaded.
    The example is arm `uniform` of a bundled study that computes a lower bound of the mixup loss.

    Args:
        run: One of `Study.runs()`.
        data: Folder of the datasets; None for the one in the environment variable `MIXSWEEP_DATA`,
            or the default folder.
        device: `cpu`, `cuda` or `cuda:NUMBER`.

    Raises:
        ValueError: If the run learns from a teacher (only a launch trains teachers), or `device` is
            not of one of the three forms above.
        DataError: If the dataset of the run cannot be downloaded, or its files are damaged.
        DivergedError: If a value of an epoch, such as its loss, is not finite.

    Example:
        >>> import mixsweep
        >>> run = mixsweep.read_study("entropy-floor").runs()[3]
        >>> for record in mixsweep.train(run):  # uniform mixup of 10 classes: 0.45 nats
        ...     print(run.arm, record.epoch, round(record.metrics["floor/exact"], 4))
        uniform 0 0.45
    """
    if run.teacher is not None:
        raise ValueError(
            "a run that learns from a teacher must be trained with its study, by `mixsweep.run`, "
            f"got ({run.arm=}, {run.seed=})."
        )
    if device.partition(":")[0] not in {"cpu", "cuda"}:
        raise ValueError(f"device must be cpu, cuda or cuda:NUMBER, got ({device=}).")
    root = None if data is None else local_path(data)
    prepare_process()
    return iter(problem_of(run.config).start(run.config, root, device))
