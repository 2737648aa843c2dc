from pathlib import Path

import pytest
import scipy.stats
from searching import read

from sweeps.search import Point, Search
from sweeps.searching.selection import has_settled, is_clearly_worse, pareto_front, select_point


def search(tmp_path: Path, rule: str) -> Search:
    found = read(tmp_path, overrides(rule)).search
    assert found is not None
    return found


def overrides(rule: str) -> str:
    from searching import STUDY

    return STUDY + f"  select: {rule}\n"


def point(number: int, *objectives: float, switch: int = 2, alpha: float = 1.0) -> Point:
    values = {"mix.law.alpha": alpha, "mix.switch_epoch": switch}
    state = "complete" if objectives else "failed"
    return Point(number=number, values=values, state=state, objectives=objectives)  # type: ignore[arg-type]


def test_val_mean_takes_the_lowest_mean_and_the_earlier_in_a_tie(tmp_path: Path) -> None:
    points = [point(0), point(1, 0.2), point(2, 0.1), point(3, 0.1)]
    assert select_point(search(tmp_path, "val-mean"), points, {}) == points[2]
    assert select_point(search(tmp_path, "val-mean"), points[:1], {}) is None


def test_val_1se_takes_the_simplest_within_one_standard_error(tmp_path: Path) -> None:
    points = [
        point(0, 0.112, alpha=0.5),
        point(1, 0.108, alpha=2.0, switch=4),
        point(2, 0.1, alpha=8.0),
        point(3, 0.109, alpha=2.0, switch=2),
    ]
    errors = dict.fromkeys(("point 0", "point 1", "point 3"), 9.0) | {"point 2": 0.01}
    assert select_point(search(tmp_path, "val-1se"), points, errors) == points[3]


def test_a_point_is_clearly_worse_where_scipy_says_so() -> None:
    for ours in ([0.3, 0.31], [0.11, 0.3], [0.2, 0.1], [0.1, 0.1, 0.13, 0.12]):
        theirs = [0.1, 0.1, 0.1, 0.1][: len(ours)]
        p = scipy.stats.ttest_rel(ours, theirs, alternative="greater").pvalue
        assert is_clearly_worse(ours, theirs) == bool(p < 0.05)
    assert not is_clearly_worse([0.1, 0.2], [0.1, 0.2])
    assert is_clearly_worse([0.2, 0.3], [0.1, 0.2])


def test_the_front_holds_every_point_that_no_other_beats() -> None:
    points = [
        point(0, 1.0, 4.0),
        point(1, 2.0, 2.0),
        point(2, 2.0, 3.0),
        point(3),
        point(4, 1.0, 4.0),
    ]
    assert [p.number for p in pareto_front(points)] == [0, 1, 4]


@pytest.mark.parametrize("count", [0, 1])
def test_the_front_of_few_points_is_all_of_them(count: int) -> None:
    assert len(pareto_front([point(i, 1.0, 1.0) for i in range(count)])) == count


def _told(*means: float | None) -> list[Point]:
    return [
        Point(number=i, values={}, state="complete", objectives=(mean,))
        if mean is not None
        else Point(number=i, values={}, state="pruned", num_seeds=2)
        for i, mean in enumerate(means)
    ]


@pytest.mark.parametrize(
    ("means", "after", "settled"),
    [
        ((0.30, 0.20, 0.20), 1, True),
        ((0.30, 0.20, 0.195), 1, True),  # half of the noise
        ((0.30, 0.20, 0.185), 1, False),
        ((0.20, None, None), 2, True),
        ((0.30, 0.20, 0.195, 0.191), 2, True),
        ((0.30, 0.20, 0.195, 0.185), 2, False),
        ((0.30, 0.20), 2, False),  # nothing came before
        ((None, 0.30, 0.20), 2, False),
    ],
)
def test_a_search_has_settled_once_its_last_points_gain_less_than_the_noise(
    means: tuple[float | None, ...], after: int, settled: bool
) -> None:
    points = _told(*means)
    spread = (0.5e-4, 1.5e-4, 1e-4, 1e-4)  # a standard error of 0.01, or a little less
    variances = {p.arm: v for p, v in zip(points, spread, strict=False) if p.objectives}
    assert has_settled(points, variances, after) is settled


def test_open_points_are_waited_for() -> None:
    waiting = Point(number=3, values={}, state="open")
    variances = {point.arm: 1e-4 for point in _told(0.3, 0.2, 0.1)}
    assert not has_settled([*_told(0.3, 0.2, 0.1), waiting], variances, 1)
