"""Frames: results of a study as pandas DataFrames; errors as fractions, NaN if missing."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from reports.numbers.predicted import ReadPredictions
from reports.numbers.runs import arrange, run_records, settings_of
from reports.tables.listings import Listing, tagged
from reports.tables.table import Table
from sweeps.state.results import RunResult
from sweeps.study.study import Study

_OF_EPOCHS = (
    "study", "arm", "seed", "run_key", "outcome", "epoch", "seconds", "stored_at_ms",
)  # fmt: skip
"""Columns that `epochs_frame` has even for a study without results."""


def arms_frame(table: Table) -> pd.DataFrame:
    """Return the main table of a report as a DataFrame: the rows and columns of `table.csv`."""
    return _frame(table.listing.records)


def runs_frame(study: Study, results: Iterable[RunResult]) -> pd.DataFrame:
    """Return the runs of a study as a DataFrame: one row per run, the columns of `runs.csv`."""
    return _frame(run_records(study, results))


def classes_frame(table: Listing | None) -> pd.DataFrame:
    """Return the error of each class as a DataFrame: the rows and columns of `classes.csv`.

    The frame is empty if there is no such table, because no predictions are stored.
    """
    return pd.DataFrame() if table is None else _frame(table.records)


def epochs_frame(study: Study, results: Iterable[RunResult]) -> pd.DataFrame:
    """Return the records of a study as a DataFrame: one row per epoch of each run, by arm and seed.

    Columns: `study`, `arm`, `seed`, `run_key`; `outcome` of the run (`complete`, `partial`,
    `diverged` or `failed`); `epoch` (1 for the first, as in figures); `seconds` (wall time of the
    epoch); `stored_at_ms` (Unix time); `config.PATH` for every setting that differs between arms (a
    list as JSON); each metric that at least one epoch has; and `tags`, such as `oracle`, if an arm
    has any.
    """
    varying = study.varying()
    rows = []
    for arm, by_seed in arrange(study, results).items():
        flat = settings_of(study.arms[arm])
        settings = {f"config.{path}": flat.get(path) for path in varying}
        for seed, result in by_seed.items():
            run = {"study": study.name, "arm": arm, "seed": seed, "run_key": result.run.key}
            # Frozen: columns of `report --epochs FILE` and of `Results.epochs`;
            # tests/reports/tables/test_frames.py fails.
            rows += [
                {
                    **run,
                    "outcome": result.outcome,
                    "epoch": record.epoch + 1,
                    "seconds": facts.seconds,
                    "stored_at_ms": facts.stored_at_ms,
                    **settings,
                    **record.metrics,
                }
                for record, facts in zip(result.records, result.facts, strict=True)
            ]
    return pd.DataFrame(list(tagged(rows, study)), columns=None if rows else _OF_EPOCHS)


def prediction_frames(
    study: Study, results: Iterable[RunResult], read: ReadPredictions
) -> Iterator[pd.DataFrame]:
    """Yield the stored predictions of runs as DataFrames with one row per image, by arm and seed.

    There is one frame for each run, split and kind of weights.

    Columns: `study`, `arm`, `seed`, `run_key`; `split` (`val` or `test`); `weights` (`last`; also
    `averaged` if the run averaged its weights); `images` (a hash: equal hashes mean the same
    images); `index` (position of the image in its split, from 0); `file` (CLASS/FILE in an image
    folder, else empty); `label`; `class` (its name, empty if unnamed); and `logits`, one float32
    per class. `np.stack(frame["logits"])` has shape (rows, classes) if all rows have the same
    number of classes. If an arm has tags, such as `oracle`, `tags` follows `run_key`. Runs without
    predictions are left out.
    """
    for arm, by_seed in arrange(study, results).items():
        for seed, result in by_seed.items():
            (predictions,) = read([result])
            if predictions is None:
                continue
            of_run = {"study": study.name, "arm": arm, "seed": seed, "run_key": result.run.key}
            (run,) = tagged([of_run], study)
            config, problem = result.run.config, study.problem
            classes = dict(enumerate(problem.presentation.classes(config)))
            for name, split in predictions.splits.items():
                found_files = list(problem.presentation.examples(config, name))
                is_known = len(found_files) == len(split.labels)
                files = found_files if is_known else [""] * len(split.labels)
                for suffix, logits in split.logits.items():
                    kind = {"split": name, "weights": suffix.removeprefix("_") or "last"}
                    yield pd.DataFrame(
                        {
                            **run,
                            **kind,
                            "images": split.images,
                            "index": range(len(split.labels)),
                            "file": files,
                            "label": split.labels,
                            "class": [classes.get(label, "") for label in split.labels.tolist()],
                            "logits": list(logits),
                        }
                    )


def _frame(records: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    return pd.DataFrame(records).map(lambda value: math.nan if value is None else value)
