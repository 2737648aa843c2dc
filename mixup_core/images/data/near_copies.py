"""Near copies: finds test images that look like a training image although their bytes differ."""

from collections.abc import Iterator, Sequence
from typing import Any

_SIDE = 16
"""Side, in pixels, of the grey thumbnails that are compared."""
_NEAR = 3.0
"""Root mean square difference, in grey levels, below which two thumbnails count as equal."""
_PLAIN = 4.0
"""Minimum standard deviation of a thumbnail's grey levels; plainer images are not compared."""
_AT_ONCE = 1000


def grey_thumbnail(picture: Any) -> Any:
    """Return a Pillow image as 16 x 16 grey pixels, flattened, float32."""
    import numpy as np

    small = picture.convert("L").resize((_SIDE, _SIDE), resample=4)  # the mean of each box
    return np.asarray(small, dtype=np.float32).reshape(-1)


def near_copies(held_out: Sequence[Any], trained: Sequence[Any]) -> Iterator[tuple[int, int]]:
    """Yield (index of a test image, index of the training image that it nearly equals).

    Copies saved with another quality or size are found; cropped, rotated or mirrored ones are not.
    """
    import numpy as np

    if not held_out or not trained:
        return
    known = np.stack(trained)
    lengths = (known**2).sum(axis=1)
    for start in range(0, len(held_out), _AT_ONCE):
        part = np.stack(held_out[start : start + _AT_ONCE])
        squares = (part**2).sum(axis=1)[:, None] + lengths - 2 * part @ known.T
        nearest = squares.argmin(axis=1)
        least = squares[np.arange(len(part)), nearest]
        for place in np.flatnonzero((least < _NEAR**2 * _SIDE**2) & (part.std(axis=1) > _PLAIN)):
            yield start + int(place), int(nearest[place])
