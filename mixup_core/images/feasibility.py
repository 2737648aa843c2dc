"""infeasible: why a run of image training would fail on its data."""

from collections.abc import Iterator

from mixup_core.images.config import DataConfig, TrainConfig
from mixup_core.images.data.needs import described, facts_of, num_available
from mixup_core.images.data.pictures import BACKGROUNDS
from mixup_core.rules import RuleError

MAX_EPOCHS = 10_000
"""Every epoch of a run has a stage key, and planning computes all of them."""

_SPLIT = ("data.num_train", "data.train_fraction", "data.val_size", "data.folder", "data.name")


def infeasible(config: TrainConfig) -> Iterator[RuleError]:
    """Yield each reason why a run of this configuration would fail on its data."""
    data, batch_size, info = config.data, config.batch_size, described(config.data)
    if config.epochs > MAX_EPOCHS:
        yield RuleError(f"epochs <= {MAX_EPOCHS}", {"epochs": config.epochs})
    if info.image_size % data.pool:
        yield RuleError(
            "pool divides the image size",
            {"pool": data.pool, "image_size": info.image_size},
            fields=("data.pool", "data.image_size", "data.name"),
        )
    yield from transparent(data)
    if data.views == "concat" and info.num_classes % 2:
        yield RuleError(
            "class pairing has an even number of classes",
            {"classes": info.num_classes},
            fields=("data.views", "data.folder", "data.name"),
        )
    available = num_available(data, info)
    if available < 1:
        yield RuleError(
            "val_size < training images",
            {"val_size": data.val_size, "training images": info.num_train},
            fields=("data.val_size", "data.folder", "data.name"),
        )
        return
    num_train = data.size_of_subset(available)
    if num_train > available:
        yield RuleError(
            "num_train <= training images without val_size",
            {"num_train": num_train, "images": available},
            fields=_SPLIT,
        )
    elif batch_size > num_train:
        yield RuleError(
            "batch_size <= training images",
            {"batch_size": batch_size, "training images": num_train},
            fields=("batch_size", *_SPLIT),
        )
    elif data.balanced and not data.oracle and num_train // info.num_classes > info.smallest_class:
        yield RuleError(
            "every class has the images that a balanced subset asks for",
            {
                "images of each class": num_train // info.num_classes,
                "of the smallest class": info.smallest_class,
            },
            fields=("data.balanced", *_SPLIT),
        )
    elif config.model.has_batch_norm and (batch_size == 1 or num_train % batch_size == 1):
        yield RuleError(
            "no batch is a single image, which BatchNorm cannot train on",
            {"batch_size": batch_size, "training images": num_train},
            fields=("batch_size", *_SPLIT, "model.name"),
        )


def transparent(data: DataConfig) -> Iterator[RuleError]:
    """Yield why an image-folder with transparent images cannot be used, if nothing lies behind."""
    facts = facts_of(data)
    if facts is not None and facts.transparent and data.background is None:
        yield RuleError(
            "a folder with transparent images has a background",
            {"images": len(facts.transparent), "first": facts.transparent[0], "background": None},
            fields=("data.background", "data.folder"),
            hint=f"set data.background to the colour behind them: {', '.join(BACKGROUNDS)}",
        )
