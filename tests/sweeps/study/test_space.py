import pytest

from sweeps.study.space import Categorical, Integer, Parameter, Real, Space

BRANCHES = Space(
    parameters=(
        Parameter(path="mix.law", distribution=Categorical(choices=("midpoint", "beta"))),
        Parameter(
            path="mix.law.alpha",
            distribution=Categorical(choices=(1.0, 2.0)),
            when={"mix.law": ("beta",)},
        ),
        Parameter(path="mix.switch_epoch", distribution=Integer(low=2, high=6, step=4)),
    )
)


def test_the_grid_of_a_space_has_every_branch_once() -> None:
    points = list(BRANCHES.grid())
    assert len(points) == BRANCHES.size() == (1 + 2) * 2
    assert {"mix.law": "midpoint", "mix.switch_epoch": 2} in points
    assert len({tuple(point.items()) for point in points}) == 6


def test_corners_of_a_space_cover_every_bound_and_every_choice() -> None:
    corners = list(BRANCHES.corners())
    for parameter in BRANCHES.parameters:
        reached = {corner[parameter.path] for corner in corners if parameter.path in corner}
        assert reached >= set(parameter.distribution.extremes)


def test_grid_values_on_a_log_scale_are_evenly_spaced_and_include_the_bounds() -> None:
    values = Real(low=0.5, high=8.0, is_log=True, num_values=5).values()
    assert values == pytest.approx((0.5, 1, 2, 4, 8), rel=1e-12)
    assert (values[0], values[-1]) == (0.5, 8.0)
    assert Real(low=0.0, high=1.0, is_log=False, num_values=3).values() == (0.0, 0.5, 1.0)


def test_points_rank_by_the_order_of_the_file_then_small_numbers_and_early_choices() -> None:
    midpoint = {"mix.law": "midpoint", "mix.switch_epoch": 6}
    beta = {"mix.law": "beta", "mix.law.alpha": 1.0, "mix.switch_epoch": 2}
    wide = {"mix.law": "beta", "mix.law.alpha": 2.0, "mix.switch_epoch": 2}
    assert sorted([wide, beta, midpoint], key=BRANCHES.rank) == [midpoint, beta, wide]


@pytest.mark.parametrize(
    ("distribution", "inside", "outside"),
    [
        (Real(low=0.1, high=4.0, is_log=True), (0.1, 1, 4.0), (0.09, 4.1, True, None, "1")),
        (Real(low=0.0, high=1.0, is_log=False, num_values=3), (0.0, 0.5, 1.0), (0.25,)),
        (Integer(low=0, high=10, step=5), (0, 5, 10), (1, 15, 5.0, False, None)),
        (Categorical(choices=(1, "a", None)), (1, "a", None), (True, 1.0, "b")),
    ],
)
def test_a_distribution_contains_only_values_in_its_range(
    distribution: Real | Integer | Categorical,
    inside: tuple[object, ...],
    outside: tuple[object, ...],
) -> None:
    assert all(distribution.holds(value) for value in inside)
    assert not any(distribution.holds(value) for value in outside)


def test_a_configuration_maps_to_its_point_of_the_space_or_to_none() -> None:
    flat = {"mix.law": "beta", "mix.law.alpha": 2.0, "mix.switch_epoch": 6, "epochs": 9}
    assert BRANCHES.found_in(flat) == {
        "mix.law": "beta", "mix.law.alpha": 2.0, "mix.switch_epoch": 6,
    }  # fmt: skip
    assert BRANCHES.found_in({**flat, "mix.law": "midpoint"}) == {
        "mix.law": "midpoint", "mix.switch_epoch": 6,
    }  # fmt: skip
    assert BRANCHES.found_in({**flat, "mix.law.alpha": 3.0}) is None
    assert BRANCHES.found_in({"mix.law": "midpoint"}) is None
