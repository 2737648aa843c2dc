"""Missing rows: metric values of a run or an arm that are to be sent to MLflow."""

from collections.abc import Sequence

from sweeps.tracking.progress import Row


def missing_rows(rows: Sequence[Row], is_live: bool, known: Sequence[Row]) -> list[Row] | None:
    """Return the rows (metric values) that MLflow lacks of a run; None if MLflow has wrong ones.

    A row is wrong if the store lacks it.

    Rows that MLflow has are not returned, because sending them again would be slow. Epochs that
    were damaged and trained again have the same values at new times, so their old rows are not in
    the store. For a run in training, additional rows in MLflow are allowed, because the run may not
    have reported yet the epochs that it shares with other runs.

    Args:
        rows: Rows of the run in the store.
        is_live: True if the run is in training.
        known: Rows of the run in MLflow.
    """
    if not is_live and not set(known) <= set(rows):
        return None
    present = {(row.name, row.step) for row in known}
    return [row for row in rows if (row.name, row.step) not in present]


def superseding_rows(rows: Sequence[Row], known: Sequence[Row]) -> list[Row] | None:
    """Return the mean, sd and interval values of an arm that MLflow lacks, as rows.

    None if new rows cannot correct MLflow.

    MLflow shows the latest row of each metric. If MLflow has a later row with another value than
    the summary, the new rows do not change the shown value, and the run must be created again.

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
