"""Feasibility: the rules that join a configuration with the data set it trains on."""

from collections.abc import Iterator

from mixup_core.images.config import TrainConfig
from mixup_core.images.data.catalog import DatasetInfo
from sweeps.reading.config_paths import Fault

MAX_EPOCHS = 10_000
"""Every epoch of a run has a stage key, and planning computes all of them."""


def infeasible(config: TrainConfig, info: DatasetInfo) -> Iterator[Fault]:
    """Yield each reason why a run of this configuration would fail on its data.

    Args:
        config: A configuration whose own rules hold.
        info: What is known of `config.data`.
    """
    data, batch_size = config.data, config.batch_size
    if config.epochs > MAX_EPOCHS:
        text = f"`epochs <= {MAX_EPOCHS}` must hold, got (epochs={config.epochs})."
        yield Fault(paths=("epochs",), text=text)
    if info.image_size % data.pool:
        yield Fault(
            paths=("data.pool", "data.image_size", "data.name"),
            text="`pool divides the image size` must hold, "
            f"got (pool={data.pool}, image_size={info.image_size}).",
        )
    if data.views == "concat" and info.num_classes % 2:
        yield Fault(
            paths=("data.views", "data.folder", "data.name"),
            text=f"class pairing needs an even number of classes, got {info.num_classes}.",
        )
    split = ("data.num_train", "data.val_size", "data.folder", "data.name")
    available = info.num_train - data.val_size
    if available < 1:
        yield Fault(
            paths=("data.val_size", "data.folder", "data.name"),
            text="`val_size < training images` must hold, "
            f"got (val_size={data.val_size}, training images={info.num_train}).",
        )
        return
    num_train = available if data.num_train is None else data.num_train
    if num_train > available:
        yield Fault(
            paths=split,
            text="`num_train <= training images without val_size` must hold, "
            f"got (num_train={num_train}, images={available}).",
        )
        return
    if batch_size > num_train:
        yield Fault(
            paths=("batch_size", *split),
            text="`batch_size <= training images` must hold, "
            f"got (batch_size={batch_size}, training images={num_train}).",
        )
    elif config.model.has_batch_norm and (batch_size == 1 or num_train % batch_size == 1):
        yield Fault(
            paths=("batch_size", *split, "model.name"),
            text=f"batch_size {batch_size} leaves a last batch of 1 of {num_train} images, "
            "which BatchNorm cannot train on.",
        )
