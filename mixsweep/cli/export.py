"""export: write all epochs or all predictions of a study to one file."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mixsweep.cli.options import LocalPath, force_option
from mixsweep.cli.request import DONE, SOME_FAILED, RefusedError, Request, on_study
from mixup_core.outputs import output_file
from mixup_core.store.local_files import read_regular
from mixup_core.temporary import temporary_folder
from sweeps.state.results import read_predictions

if TYPE_CHECKING:
    import pandas as pd

_KINDS = {".csv", ".parquet"}


@click.command()
@on_study
@click.option(
    "--out",
    type=LocalPath(),
    help="File to write, .parquet or .csv. Default: exports/STUDY.parquet in the home; with "
    "--predictions, exports/STUDY-predictions.parquet.",
)
@click.option(
    "--predictions",
    is_flag=True,
    help="Write the predictions of finished runs, one row per image: split, index, label, logits.",
)
@click.option(
    "--to",
    "program",
    type=click.Choice(["tensorboard", "wandb"]),
    help="Write files for this program into the folder --out; default: exports/STUDY-PROGRAM.",
)
@force_option
def export(
    request: Request, out: Path | None, predictions: bool, program: str | None, force: bool
) -> int:
    """Write one row per run and epoch to a file: arm, seed, varying fields, and all metrics.

    Errors are fractions in [0, 1]. Of unfinished runs, the stored epochs are written. Exit code 1
    if no epoch is stored. With `--predictions`: one row per finished run and image of its
    validation and test splits; CSV files contain the logits as a JSON list.
    """
    if program is not None:
        return _write_curves(request, out, program, predictions=predictions)
    name = f"{request.study.name}-predictions" if predictions else request.study.name
    path = out or request.home.folder / "exports" / f"{name}.parquet"
    if path.suffix not in _KINDS:
        raise RefusedError(f"--out must end in .parquet or .csv, got (out='{path}')")
    frames = _predictions(request) if predictions else _epochs(request)
    runs, rows, columns = _write(frames, path, force=force, makes_folder=out is None)
    if not rows:
        what = "prediction" if predictions else "epoch"
        click.echo(f"{request.study.name}: no {what} is stored yet", err=True)
        request.say_elsewhere()
        return SOME_FAILED
    click.echo(f"{path}: {rows} rows of {runs} runs, {columns} columns")
    return DONE


def _write_curves(request: Request, out: Path | None, program: str, *, predictions: bool) -> int:
    """Write the epochs of all runs for TensorBoard or Weights & Biases, into a new folder.

    Raises:
        RefusedError: If the folder exists, or the program is not installed.
    """
    from mixsweep.cli.curves import CURVES

    folder = out or request.home.folder / "exports" / f"{request.study.name}-{program}"
    if predictions:
        raise RefusedError(f"--to {program} writes epochs; remove --predictions")
    if folder.exists():
        raise RefusedError(
            f"{folder} exists and is not replaced; remove it, or give another folder by --out"
        )
    results = [result for result in request.results() if result.records]
    if not results:
        click.echo(f"{request.study.name}: no epoch is stored yet", err=True)
        request.say_elsewhere()
        return SOME_FAILED
    if out is None:
        folder.parent.mkdir(parents=True, exist_ok=True)
    with temporary_folder(folder.parent, f".{folder.name}.") as place:
        unfinished = place / folder.name
        unfinished.mkdir()
        try:
            CURVES[program](request.grown, results, unfinished)
        except ImportError as error:
            raise RefusedError(
                f"{program} is not installed here: pip install 'mixsweep[{program}]' ({error})"
            ) from error
        unfinished.replace(folder)
    click.echo(f"{folder}: {sum(len(r.records) for r in results)} epochs of {len(results)} runs")
    return DONE


def _epochs(request: Request) -> "Iterator[pd.DataFrame]":
    from reports.tables.frames import epochs_frame

    yield epochs_frame(request.grown, request.results())


def _predictions(request: Request) -> "Iterator[pd.DataFrame]":
    from reports.tables.frames import prediction_frames

    yield from prediction_frames(
        request.grown, request.results(), partial(read_predictions, store=request.store)
    )


def _write(
    frames: "Iterator[pd.DataFrame]", path: Path, *, force: bool, makes_folder: bool
) -> tuple[int, int, int]:
    """Write frames with equal columns to one file; return the number of runs, rows and columns.

    The file appears only when it is complete. If there are no rows, no file is written.
    """
    filled = (frame for frame in frames if not frame.empty)
    first = next(filled, None)
    if first is None:
        return 0, 0, 0
    runs: set[str] = set()
    rows = 0
    with (
        output_file(
            path, "an export of mixsweep", _is_export, force=force, makes_folder=makes_folder
        ) as unfinished,
        _writing(unfinished, first) as write,
    ):
        for frame in chain([first], filled):
            write(frame)
            runs |= set(frame["run_key"])
            rows += len(frame)
    return len(runs), rows, len(first.columns)


def _is_export(path: Path) -> bool:
    """Return whether a regular file is a CSV or Parquet file with the columns of an export."""
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
    """Yield a function that appends a frame to a new file.

    Args:
        path: The file; its ending chooses the format.
        first: A frame with the columns that every appended frame must have.
    """
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
    """Return a copy of a frame for a CSV file: a spreadsheet reads no text as a formula.

    Logits are JSON lists, in the shortest exact digits.
    """
    from reports.numbers.spelling import csv_cell

    texts: dict[str, Any] = {
        str(name): [csv_cell(value) if isinstance(value, str) else value for value in frame[name]]
        for name in frame.select_dtypes(exclude="number")
    }
    if "logits" in frame:
        texts["logits"] = [f"[{', '.join(map(str, row))}]" for row in frame["logits"]]
    return frame.assign(**texts).rename(columns=csv_cell)
