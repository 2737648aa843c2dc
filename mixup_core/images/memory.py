"""Memory of a run: upper bound computed without torch, and measured peak of two training steps."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from mixup_core.arrays import torch
from mixup_core.images.config import TrainConfig
from mixup_core.images.data.facts import images_per_batch
from mixup_core.images.feasibility import teacher_arm
from mixup_core.images.image_data import described
from mixup_core.images.objectives.objective import Plain

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
_HELD = 2
"""Number of copies of a serialised state that may be in memory while the next epochs train."""
_CONTEXT = 6 * 10**8
"""Bytes of GPU memory that libraries use besides tensors."""


def most_bytes(config: TrainConfig) -> int:
    """Return an upper bound of a run's memory, in bytes, without building its network."""
    info, model = described(config.data), config.model
    pixels = (info.image_size // config.data.pool) ** 2
    kept = config.batch_size * _TRAINED + images_per_batch(pixels) * _MEASURED
    scale = max(1.0, model.scale)
    weights = model.num_wide_weights(info.channels * pixels) + _USUAL_WEIGHTS * (scale**2 - 1)
    return _PROCESS + int(4 * (pixels * kept * scale + _COPIES * weights))


def peak_bytes(config: TrainConfig, device: str) -> int:
    """Train a run for two steps and evaluate it; return this process's peak memory, in bytes."""
    from mixup_core.images.data.datasets import Images, Splits
    from mixup_core.images.training import TrainingState, fit

    info = described(config.data)

    def made_up(count: int) -> Images:
        side = info.image_size
        pixels = torch.randint(256, (count, info.channels, side, side), dtype=torch.uint8)
        labels = torch.arange(count) % info.num_classes
        return Images(pixels=pixels, labels=labels).pooled(config.data.pool)

    given: dict[str, Any] = {"probes": (), "eval_every": 1}
    if teacher_arm(config) is not None:
        given["objective"] = Plain()
    # The images are random, so no subset or label noise is drawn.
    drawn = {"num_train": None, "train_fraction": None, "balanced": False, "label_noise": 0.0}
    data = replace(config.data, **drawn, oracle=False, corruptions=(), normalise="given")  # type: ignore[arg-type]
    short = replace(config, data=data, **given)
    at_once = images_per_batch((info.image_size // config.data.pool) ** 2)
    shown = min(max(info.num_test, config.data.num_held_out(info.num_train)), at_once)
    splits = Splits(
        info=info,
        train=made_up(max(min(info.num_train, 2 * config.batch_size), info.num_classes)),
        val=None,
        test=made_up(max(1, shown)),
    )
    state = TrainingState.initial(short, info, torch.device(device))
    next(iter(fit(short, splits, state, device=device)))
    held = _HELD * len(state.to_bytes())
    if device == "cuda":
        return torch.cuda.max_memory_reserved() + info.num_bytes + _CONTEXT
    status = Path("/proc/self/status")
    if status.exists():  # `ru_maxrss` also counts the memory that the parent had at the start
        lines = status.read_text().splitlines()
        return held + next(int(x.split()[1]) * 1024 for x in lines if x.startswith("VmHWM"))
    import resource

    unit = 1 if sys.platform == "darwin" else 1024
    return held + resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
