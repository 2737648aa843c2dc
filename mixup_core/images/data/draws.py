"""Draws: the images that a run trains on, and their noisy labels. Imports no torch."""

from mixup_core.arrays import Ints, np
from mixup_core.images.data.data_config import DataConfig
from mixup_core.seeding import Seeds, stream


def split_off(num_images: int, data: DataConfig) -> tuple[Ints, Ints]:
    """Return the indices of images to train on and of those held out for validation, both sorted.

    Without folds, every seed holds out the same images, and a larger `data.val_size` holds out
    those of a smaller one and more. Fold f (0-based) of k consists of every k-th image of a fixed
    random order, so that the sizes of folds differ by at most 1.
    """
    if data.num_held_out(num_images) >= num_images:
        raise ValueError(
            "`data.val_size < training images` must hold, "
            f"got (data.val_size={data.val_size}, training images={num_images})."
        )
    # Frozen: order, number and shape of this file's draws. After a change, new runs differ from
    # stored runs of the same key; tests/golden/test_draws.py fails.
    order = stream(0, "validation split").permutation(num_images)
    if data.folds is None:
        return np.sort(order[data.val_size :]), np.sort(order[: data.val_size])
    if data.fold is None:
        raise ValueError(
            f"data.folds needs data.fold before images are loaded, got ({data.fold=})."
        )
    is_held_out = np.arange(num_images) % data.folds == data.fold
    return np.sort(order[~is_held_out]), np.sort(order[is_held_out])


def draw_subset(labels: Ints, num_classes: int, data: DataConfig, seed: int | Seeds) -> Ints | None:
    """Draw the training subset of a seed; a smaller subset is part of a larger one."""
    if data.num_train is None and data.train_fraction is None:
        return None
    num_train = data.size_of_subset(len(labels))
    if num_train > len(labels):
        raise ValueError(
            "`data.num_train <= training images` must hold, "
            f"got ({num_train=}, training images={len(labels)})."
        )
    order = stream(seed, "training subset").permutation(len(labels))
    if data.balanced:
        order = _dealt(labels[order], order)
    chosen = order[:num_train]
    counts = np.bincount(labels[chosen], minlength=num_classes)
    if data.balanced and counts.max() - counts.min() > 1:
        raise ValueError(
            f"a balanced subset of {num_train} images needs enough images of each class, got "
            f"between {counts.min()} and {counts.max()} images of a class."
        )
    return chosen


def draw_noise(labels: Ints, num_classes: int, data: DataConfig, seed: int | Seeds) -> Ints:
    """Return labels, each replaced by another class with the probability `data.label_noise`."""
    if data.label_noise == 0:
        return labels
    rng = stream(seed, "label noise")
    is_wrong = rng.random(len(labels)) < data.label_noise
    if data.noise_to == "one":
        fixed = stream(0, "label noise map").integers(1, num_classes, num_classes)
        step = fixed[labels]
    else:
        step = rng.integers(1, num_classes, len(labels))
    return np.where(is_wrong, (labels + step) % num_classes, labels)


def draw_held_out_noise(labels: Ints, num_classes: int, data: DataConfig, split: str) -> Ints:
    """Return the labels of validation or test images, with label noise if `data` asks for it."""
    is_noisy = data.noise_in_val if split == "val" else data.noise_in_test
    seed = {"val": 0, "test": 1}[split]
    return draw_noise(labels, num_classes, data, seed) if is_noisy else labels


def _dealt(labels: Ints, order: Ints) -> Ints:
    """Return image indices in rounds: the first image of each class, then the second, and so on."""
    rank = np.empty(len(labels), dtype=np.int64)
    for label in np.unique(labels):
        is_own = labels == label
        rank[is_own] = np.arange(is_own.sum())
    return order[np.argsort(rank, kind="stable")]
