"""Search points: colours and CSV rows of points, shared by all figures of a search."""

from collections.abc import Mapping
from typing import Any

from reports.tables.searched import Searched
from sweeps.study.search import Point

POINTS = "#555555"

WINNER = "#D55E00"


def numbers_of(searched: Searched, point: Point) -> dict[str, Any]:
    """Return a search point as a CSV row, by column: its parameters and results.

    The metric that selects the winner has its mean, sd and interval, and its value at each seed.
    """
    summary = searched.summary(point.arm)
    values: Mapping[int, float] = searched.values[searched.objective][point.arm]
    return (
        {"point": point.number, "state": point.state}
        | {p.path: point.values.get(p.path) for p in searched.search.space.parameters}
        | {name: getattr(summary, name, None) for name in ("n", "mean", "sd", "ci_low", "ci_high")}
        | {f"seed_{seed}": values.get(seed) for seed in searched.study.seeds}
        | {"selected": point == searched.winner}
    )


def spell_seeds(searched: Searched) -> str:
    """Return the number of seeds of a complete search point, as text: `5 seeds`."""
    return f"{len(searched.study.seeds)} seeds"
