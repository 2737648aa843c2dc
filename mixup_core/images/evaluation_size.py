"""images_per_batch: number of images that are evaluated together."""

_PIXELS_PER_BATCH = 1000 * 96 * 96
"""Number of pixels evaluated together: 1,000 images of STL-10, or 183 of side 224."""


def images_per_batch(pixels: int) -> int:
    """Return the number of images to evaluate together: 1,000, or fewer if they are large."""
    return max(1, min(1000, _PIXELS_PER_BATCH // pixels))
