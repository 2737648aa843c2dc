import pytest

from sweeps.placement import Placement, PlacementError


@pytest.mark.parametrize("share", [1.5, 2, 0.4, 0.7])
def test_a_share_that_does_not_fill_gpus_evenly_is_refused(share: float) -> None:
    with pytest.raises(PlacementError, match="gpus_per_run is 0, 1 or 1/k"):
        Placement(gpus_per_run=share)


@pytest.mark.parametrize("share", [0, 1, 0.5, 0.25, 0.33])
def test_whole_gpus_and_even_shares_are_taken(share: float) -> None:
    assert Placement(gpus_per_run=share).share_of(4) == share


def test_more_gpus_than_there_are_is_refused_instead_of_waited_for() -> None:
    with pytest.raises(PlacementError, match="GPUs at hand"):
        Placement(gpus_per_run=1).share_of(0)


def test_a_run_takes_a_gpu_where_there_are_some() -> None:
    assert Placement().share_of(2) == 1
    assert Placement().share_of(0) == 0
