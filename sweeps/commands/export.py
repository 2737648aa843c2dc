"""export: every epoch of every run in one file."""

from pathlib import Path

import click

from sweeps.commands.request import DONE, SOME_FAILED, RefusedError, Request, on_study

_KINDS = {".csv", ".parquet"}


@click.command()
@on_study
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    help="A .parquet or .csv file; default: exports/STUDY.parquet in the home.",
)
def export(request: Request, out: Path | None) -> int:
    """Write one row per run and epoch: arm, seed, what varies, and every metric as a fraction.

    Unfinished runs are in it with the epochs they have; exit code 1 if there is no epoch at all.
    """  # noqa: DOC501
    from reports.frames import epochs_frame

    path = out or request.home.folder / "exports" / f"{request.study.name}.parquet"
    if path.suffix not in _KINDS:
        raise RefusedError(f"`--out ends in .parquet or .csv` must hold, got (out='{path}')")
    frame = epochs_frame(request.grown, request.results())
    if frame.empty:
        click.echo(f"{request.study.name}: no epoch is stored yet", err=True)
        request.say_elsewhere()
        return SOME_FAILED
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".csv":
        frame.to_csv(path, index=False)
    else:
        frame.to_parquet(path, index=False)
    runs = frame["run_key"].nunique()
    click.echo(f"{path}: {len(frame)} rows of {runs} runs, {len(frame.columns)} columns")
    return DONE
