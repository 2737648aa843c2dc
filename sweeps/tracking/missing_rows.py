"""Missing rows: metric values of a run or an arm that are to be sent to MLflow."""

from collections.abc import Sequence

from sweeps.tracking.progress import Row


def missing_rows(rows: Sequence[Row], is_live: bool, known: Sequence[Row]) -> list[Row] | None:
    """Return the rows (metric values) of a run to send to MLflow; None if MLflow has wrong ones.

    A row in MLflow is wrong if it is not in `rows`.

    Rows that MLflow has are not sent again, because this would be slow. A row includes its time: if
    a damaged epoch is trained again, its values are the same but the old rows are wrong. For a run
    in training no row counts as wrong, because the run may not have reported yet the epochs that it
    shares with other runs.

    Args:
        rows: All known rows of the run: from the store, or reported so far if it is in training.
        is_live: True if the run is in training.
        known: Rows of the run in MLflow.
    """
    if not is_live and not set(known) <= set(rows):
        return None
    present = {(row.name, row.step) for row in known}
    return [row for row in rows if (row.name, row.step) not in present]


def superseding_rows(rows: Sequence[Row], known: Sequence[Row]) -> list[Row] | None:
    """Return the rows (mean, sd and interval values) of an arm that MLflow lacks.

    The result is None if new rows cannot correct the values that MLflow shows.

    MLflow shows the latest row of each metric. If it already has a later row with another value,
    new rows do not change the shown value, and the MLflow run must be created again.

    Args:
        rows: Rows of the summary: mean, sd and interval of each metric.
        known: Rows of the arm in MLflow.
    """
    said = {(row.name, row.step, row.value) for row in known}
    new = [row for row in rows if (row.name, row.step, row.value) not in said]
    shown = {row.name: row for row in sorted((*known, *new))}
    wanted = {row.name: row for row in sorted(rows)}
    if any(shown[name].value != row.value for name, row in wanted.items()):
        return None
    return new
