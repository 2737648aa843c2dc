import pytest

from mixup_core.images.evaluation_size import images_per_batch


@pytest.mark.parametrize(
    ("side", "count"), [(8, 1000), (32, 1000), (96, 1000), (97, 979), (224, 183), (4000, 1)]
)
def test_images_larger_than_96_pixels_are_evaluated_in_smaller_batches(
    side: int, count: int
) -> None:
    assert images_per_batch(side**2) == count
