import pytest

from mixup_core.images.evaluation_size import images_per_batch


@pytest.mark.parametrize(
    ("side", "count"), [(8, 1000), (32, 1000), (96, 1000), (97, 979), (224, 183), (4000, 1)]
)
def test_images_larger_than_those_of_stl10_are_evaluated_fewer_at_a_time(
    side: int, count: int
) -> None:
    assert images_per_batch(side**2) == count
