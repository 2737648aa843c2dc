"""Memory of a run: an upper bound, computed without torch."""

from mixup_core.images.config import TrainConfig
from mixup_core.images.data.facts import images_per_batch
from mixup_core.images.image_data import described

_PROCESS = 10**9
"""Upper bound, in bytes, of a process that has imported torch."""
_TRAINED, _MEASURED = 8_000, 1_000
"""Upper bounds of the numbers that a network keeps per pixel in training and in evaluation.
ResNet-18 on small images keeps about 2,000 in training.
"""
_USUAL_WEIGHTS = 25 * 10**6
"""Number of weights of the largest bundled network at its usual width. `_PROCESS` includes their
bytes.
"""
_COPIES = 10
"""Number of copies of the weights in memory while a state is stored: weights, gradients, moments of
Adam, serialised bytes of weights and moments, and these bytes as a file.
"""


def most_bytes(config: TrainConfig) -> int:
    """Return an upper bound of a run's memory, in bytes, without building its network."""
    info, model = described(config.data), config.model
    pixels = (info.image_size // config.data.pool) ** 2
    kept = config.batch_size * _TRAINED + images_per_batch(pixels) * _MEASURED
    scale = max(1.0, model.scale)
    weights = model.num_wide_weights(info.channels * pixels) + _USUAL_WEIGHTS * (scale**2 - 1)
    return _PROCESS + int(4 * (pixels * kept * scale + _COPIES * weights))
