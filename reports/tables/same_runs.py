"""Equal runs: table of the runs that two studies have in common.

It is part of a table that shows several studies side by side; each column is one study with its
results in one home. Two columns have a run in common if the run keys are equal. Usually each home
has trained the run itself, on another machine, and the table shows how much this changes results.
Studies in the same home share the stored run, so their difference is 0.
"""

from collections.abc import Sequence

from reports.numbers.comparison import compare
from reports.numbers.runs import arrange, values_of
from reports.numbers.spelling import DASH, spell_amount, spell_heading, spell_number
from reports.tables.joined_columns import JoinedColumn
from reports.tables.listings import Listing, spell_difference
from reports.tables.table import Table


def same_runs(
    heads: Sequence[str], columns: Sequence[JoinedColumn], table: Table
) -> Listing | None:
    """Return the table of differences between runs of equal run key in several studies.

    The studies are the columns of one table. Usually they are in several homes that trained these
    runs on different machines, so results should be nearly identical. The table is None if no run
    is in two studies.
    """
    shown = table.shown
    first, *others = zip(heads, columns, strict=True)
    cells, records = [], []
    for head, other in others:
        for arm, pairs in _paired_runs(first[1], other, table).items():
            seeds = sorted(pairs)
            theirs, ours = ({s: pairs[s][side] for s in seeds} for side in (0, 1))
            comparison = compare(ours, theirs)
            equal = sum(ours[seed] == theirs[seed] for seed in seeds)
            sd = comparison.sd
            cells.append(
                (
                    arm,
                    f"{head} minus {first[0]}",
                    spell_difference(comparison, shown),
                    DASH if sd is None else spell_number(sd * shown.scale, shown.digits),
                    spell_amount(max(abs(ours[s] - theirs[s]) for s in seeds), shown),
                    f"{equal} of {len(seeds)}",
                )
            )
            records.append(
                {"arm": arm, "column": head, "against": first[0], "n": comparison.n}
                | {"difference": comparison.difference, "difference_sd": sd}
                | {
                    "difference_ci_low_unadjusted": comparison.ci_low,
                    "difference_ci_high_unadjusted": comparison.ci_high,
                    "equal": equal,
                }
            )
    if not cells:
        return None
    return Listing(
        name="same_runs",
        title="Runs that two columns have in common",
        header=(
            "arm",
            "columns",
            spell_heading(shown.label, shown),
            "sd over seeds",
            "largest difference",
            "identical runs",
        ),
        cells=tuple(cells),
        caption="Runs with the same configuration and seed compute the same results except for "
        "rounding. The columns are: mean difference with its 95 % t interval (not adjusted for "
        "multiple comparisons), standard deviation of the differences over seeds, largest "
        "absolute difference, and number of runs that are identical to the last digit.",
        records=tuple(records),
    )


def _paired_runs(
    first: JoinedColumn, other: JoinedColumn, table: Table
) -> dict[str, dict[int, tuple[float, float]]]:
    """Return the values of the runs that both columns have, by arm and seed."""
    found: dict[str, dict[int, tuple[float, float]]] = {}
    arranged = [arrange(column.study, column.results) for column in (first, other)]
    ours, theirs = (values_of(of, table.metric, table.readout) for of in arranged)
    for arm, by_seed in ours.items():
        for seed in by_seed.keys() & theirs.get(arm, {}).keys():
            keys = {of[arm][seed].run.key for of in arranged}
            if len(keys) == 1:
                found.setdefault(arm, {})[seed] = (by_seed[seed], theirs[arm][seed])
    return found
