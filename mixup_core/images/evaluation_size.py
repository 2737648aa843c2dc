"""images_per_batch: how many images are evaluated together."""

_PIXELS_PER_BATCH = 1000 * 96 * 96
"""Pixels that are evaluated together: those of 1,000 images of STL-10, or of 183 of side 224."""


def images_per_batch(pixels: int) -> int:
    """Return how many images are evaluated together: 1,000, and fewer of large ones.

    Args:
        pixels: Of one image.
    """
    return max(1, min(1000, _PIXELS_PER_BATCH // pixels))
