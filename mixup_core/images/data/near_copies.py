"""Near copies: test images that look like a training image, though their bytes differ. No torch."""

from collections.abc import Iterator, Sequence
from typing import Any

_SIDE = 16
"""Side in pixels of the grey pictures that are compared."""
_FAR = 3.0
"""Root mean square difference, of values to 255, beyond which two pictures are not the same."""
_PLAIN = 4.0
"""Standard deviation of its values below which a picture shows nothing to compare."""
_AT_ONCE = 1000


def grey_thumbnail(picture: Any) -> Any:
    """Return a picture of Pillow as a grey one of 16 x 16 pixels, a row of float32."""
    import numpy as np

    small = picture.convert("L").resize((_SIDE, _SIDE), resample=4)  # the mean of each box
    return np.asarray(small, dtype=np.float32).reshape(-1)


def near_copies(held_out: Sequence[Any], trained: Sequence[Any]) -> Iterator[tuple[int, int]]:
    """Yield each picture held out that is nearly one trained on, with the nearest of these.

    A copy that was stored with other quality or size is found; one that was cropped, turned or
    mirrored is not.

    Args:
        held_out: Grey thumbnails.
        trained: Likewise.
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
        for place in np.flatnonzero((least < _FAR**2 * _SIDE**2) & (part.std(axis=1) > _PLAIN)):
            yield start + int(place), int(nearest[place])
