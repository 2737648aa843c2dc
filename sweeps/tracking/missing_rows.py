"""Missing rows: the rows of a run or of an arm that MLflow lacks."""

from collections.abc import Sequence

from sweeps.tracking.progress import Row


def missing_rows(rows: Sequence[Row], is_live: bool, known: Sequence[Row]) -> list[Row] | None:
    """Return the rows that MLflow lacks; sending existing ones again would be slow.

    None if MLflow has a value or a time that the store does not have. Damaged epochs that were
    trained again have the same values with new times. For a run in training, extra rows are
    allowed, because it may not have reported the epochs that it shares with other runs.
    """
    if not is_live and not set(known) <= set(rows):
        return None
    present = {(row.name, row.step) for row in known}
    return [row for row in rows if (row.name, row.step) not in present]


def superseding_rows(rows: Sequence[Row], known: Sequence[Row]) -> list[Row] | None:
    """Return the rows of a summary that MLflow lacks.

    The result is None if MLflow would show a wrong value even with these rows, because it holds a
    later row of a metric that the summary does not have.
    """
    said = {(row.name, row.step, row.value) for row in known}
    new = [row for row in rows if (row.name, row.step, row.value) not in said]
    shown = {row.name: row for row in sorted((*known, *new))}
    wanted = {row.name: row for row in sorted(rows)}
    if any(shown[name].value != row.value for name, row in wanted.items()):
        return None
    return new
