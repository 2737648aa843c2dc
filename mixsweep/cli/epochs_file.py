"""Epochs file: all epochs or all predictions of a study in one file."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mixsweep.request import DONE, SOME_FAILED, RefusedError, Request
from mixup_core.store.local_files import read_regular
from mixup_core.temporary import output_file
from sweeps.state.results import read_predictions

if TYPE_CHECKING:
    import pandas as pd

_KINDS = {".csv", ".parquet"}


def write_rows(request: Request, path: Path, *, predictions: bool) -> int:
    """Write one row per run and epoch, or per run and image, to a file; return the exit code.

    Errors are fractions in [0, 1]. Of an unfinished run, its stored epochs are written. Predictions
    are those of finished runs; CSV files contain the logits as a JSON list.
    """
    if path.suffix not in _KINDS:
        option = "--predictions" if predictions else "--epochs"
        raise RefusedError(f"{option} must end in .parquet or .csv, got ({str(path)!r})")
    from reports.tables.frames import epochs_frame, prediction_frames

    study, results = request.grown, request.results()
    read = partial(read_predictions, store=request.store)
    epochs = () if predictions else (epochs_frame(study, results),)
    frames = prediction_frames(study, results, read) if predictions else iter(epochs)
    runs, rows, columns = _write(frames, path)
    if not rows:
        noun = "prediction" if predictions else "epoch"
        click.echo(f"{request.study.name}: no {noun} is stored yet", err=True)
        request.say_elsewhere()
        return SOME_FAILED
    click.echo(f"{path}: {rows} rows of {runs} runs, {columns} columns")
    return DONE


def _write(frames: "Iterator[pd.DataFrame]", path: Path) -> tuple[int, int, int]:
    """Write frames with equal columns to one file; return the number of runs, rows and columns."""
    filled = (frame for frame in frames if not frame.empty)
    first = next(filled, None)
    if first is None:
        return 0, 0, 0
    runs: set[str] = set()
    rows = 0
    with (
        output_file(path, "an export of mixsweep", _is_export) as unfinished,
        _writing(unfinished, first) as write,
    ):
        for frame in chain([first], filled):
            write(frame)
            runs |= set(frame["run_key"])
            rows += len(frame)
    return len(runs), rows, len(first.columns)


def _is_export(path: Path) -> bool:
    """Return whether a regular file is a CSV or Parquet file with the columns of an export."""
    # Frozen: the first columns. An export of an earlier version would not be replaced;
    # tests/mixsweep/cli/test_epochs_file.py fails.
    if path.suffix == ".csv":
        return read_regular(path, 64).startswith(b"study,arm,seed,run_key,")
    import pyarrow as pa
    from pyarrow import parquet

    try:
        return bool(parquet.read_schema(path).names[:4] == ["study", "arm", "seed", "run_key"])
    except (pa.ArrowException, OSError):
        return False


@contextmanager
def _writing(path: Path, first: "pd.DataFrame") -> "Iterator[Callable[[pd.DataFrame], object]]":
    """Yield a function that appends a frame to a new file."""
    if path.suffix == ".csv":
        with path.open("w", newline="", encoding="utf-8") as file:
            _with_texts(first.head(0)).to_csv(file, index=False)
            yield lambda frame: _with_texts(frame).to_csv(file, index=False, header=False)
        return
    import pyarrow as pa
    from pyarrow import parquet

    schema = pa.Table.from_pandas(first, preserve_index=False).schema
    with parquet.ParquetWriter(path, schema) as writer:
        yield lambda frame: writer.write_table(
            pa.Table.from_pandas(frame, schema=schema, preserve_index=False)
        )


def _with_texts(frame: "pd.DataFrame") -> "pd.DataFrame":
    """Return a copy of a frame for a CSV file: a spreadsheet reads no text as a formula."""
    from reports.numbers.spelling import csv_cell

    texts: dict[str, Any] = {
        str(name): [csv_cell(value) if isinstance(value, str) else value for value in frame[name]]
        for name in frame.select_dtypes(exclude="number")
    }
    if "logits" in frame:
        texts["logits"] = [f"[{', '.join(map(str, row))}]" for row in frame["logits"]]
    return frame.assign(**texts).rename(columns=csv_cell)
