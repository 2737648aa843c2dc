"""Feasibility: finds the reasons why a run would fail on its data or with its teacher."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from operator import attrgetter
from pathlib import Path

from mixup_core.arrays import Ints, np
from mixup_core.config.building import with_values
from mixup_core.images.config import VARIED, TrainConfig, VariationSource
from mixup_core.images.data.data_config import SPLIT, DataConfig
from mixup_core.images.data.draws import (
    draw_held_out_noise,
    draw_noise,
    draw_subset,
    split_off,
)
from mixup_core.images.data.facts import DataError, DatasetInfo, SplitName
from mixup_core.images.data.fetching import data_root, is_present, verify
from mixup_core.images.data.folders import split_classes
from mixup_core.images.data.pictures import BACKGROUNDS
from mixup_core.images.data.sets import DATASETS
from mixup_core.images.image_data import described, facts_of
from mixup_core.images.objectives.objective import Guided
from mixup_core.rules import RuleError, listed
from mixup_core.seeding import Seeds, stream_seed

MAX_EPOCHS = 10_000
"""Maximum number of epochs; planning computes a stage key for each."""


# Frozen: the fold of a seed, and the fields that `taught` and `apart` set; they enter the keys of
# runs. After a change, stored runs are not found; tests/golden/test_keys.py and test_draws.py fail.
def at_seed(config: TrainConfig, seed: int) -> TrainConfig:
    """Return a configuration with a seed, and with the fold that a run at this seed holds out."""
    folds = config.data.folds
    data = config.data if folds is None else replace(config.data, fold=seed % folds)
    return replace(config, seed=seed, data=data)


def infeasible(config: TrainConfig) -> Iterator[RuleError]:
    """Yield each reason why a run would fail on its data, such as too few images for a batch."""
    data, batch_size, info = config.data, config.batch_size, described(config.data)
    if config.epochs > MAX_EPOCHS:
        yield RuleError(f"epochs <= {MAX_EPOCHS}", {"epochs": config.epochs})
    yield from transparent(data)
    faults = list(data.unfit(info))
    yield from faults
    if faults:
        return
    yield from _unfit_operations(config, info.image_size // data.pool)
    num_train = data.num_images(info)
    if batch_size > num_train:
        yield RuleError(
            "batch_size <= training images",
            {"batch_size": batch_size, "training images": num_train},
            fields=("batch_size", *SPLIT),
        )
    elif config.model.has_batch_norm and (batch_size == 1 or num_train % batch_size == 1):
        yield RuleError(
            "BatchNorm needs two images or more in every batch, including the last",
            {"batch_size": batch_size, "training images": num_train},
            fields=("batch_size", *SPLIT, "model.name"),
        )


def _unfit_operations(config: TrainConfig, side: int) -> Iterator[RuleError]:
    """Yield the reasons why operations that the run uses cannot mix images of `side` pixels."""
    for path, operation in (("operation", config.mix.operation), ("second", config.mix.second)):
        reason = None if operation is None else operation.unfit((side, side))
        if reason and any(config.in_epoch(epoch).is_mixed for epoch in range(config.epochs)):
            yield RuleError(
                reason,
                {"image size": side},
                fields=(f"mix.{path}", "data.image_size", "data.pool", "data.name"),
            )


def infeasible_at(config: TrainConfig, seeds: Sequence[int]) -> Iterator[RuleError]:
    """Yield the reason why a run would fail on the images drawn at one of the seeds, if any."""
    data = config.data
    if data.folds is not None and not any(infeasible(config)):
        for seed in {seed % data.folds: seed for seed in seeds}.values():
            if found := next(infeasible(at_seed(config, seed)), None):
                yield found
                return
    try:
        for seed, before, _ in _lacking(config, seeds):
            if data.pairs_classes and before:
                yield RuleError(
                    "two views need a training image of each class",
                    {"seed": seed, "classes without images": _spell_classes(data, before)},
                    fields=("data.views", *SPLIT),
                    hint="no training image of these classes is drawn at that seed",
                )
                return
    except RuleError as error:
        yield error


def lacking_classes(config: TrainConfig, seeds: Sequence[int]) -> Iterator[str]:
    """Yield warnings that name classes without training images, and the seeds where this occurs."""
    found: dict[str, list[int]] = {}
    with suppress(RuleError):  # `infeasible_at` reports a subset that cannot be drawn
        for seed, _, after in _lacking(config, seeds):
            if after:
                found.setdefault(_spell_classes(config.data, after), []).append(seed)
    for names, at in found.items():
        some = f"{'seeds' if len(at) > 1 else 'seed'} {', '.join(map(str, at))}"
        where = "every seed" if len(at) == len(seeds) else some
        yield f"WARNING, no training image is labelled {names} at {where}"


def may_lack_classes(data: DataConfig, info: DatasetInfo) -> bool:
    """Return whether a random subset for training can have no image of some class.

    In a sample of n of N images, a class of m images is missing with probability at most
    (1 - n / N)^m, or (1 - (n / N) (1 - rate))^m with label noise, which changes a label with
    probability `rate`. The result is false if this bound for the smallest class, times the number
    of classes, is below 1e-12. A balanced subset needs equally many images of each class; the
    result is also true if a class can have too few.
    """
    held_out = data.num_held_out(info.num_train)
    drawn = data.size_of_subset(info.num_train - held_out)
    stays = drawn / info.num_train * (1 - data.label_noise)
    is_rare = info.num_classes * max(0.0, 1 - stays) ** info.smallest_class < _NEVER
    fewest = info.smallest_class - held_out
    return not is_rare or (data.balanced and drawn // info.num_classes >= fewest)


_NEVER = 1e-12
MOST_SEEDS = 1000
"""Maximum number of seeds whose draws are checked."""


def _lacking(
    config: TrainConfig, seeds: Sequence[int]
) -> Iterator[tuple[int, list[int], list[int]]]:
    """Yield (seed, classes without images before label noise, and after it) for each seed."""
    if any(infeasible(config)) or not may_lack_classes(config.data, described(config.data)):
        return
    for seed in seeds[:MOST_SEEDS]:
        counts = images_of_classes(at_seed(config, seed))
        if counts is None:
            return
        before, after = ([k for k, num in enumerate(row) if num == 0] for row in counts.tolist())
        yield seed, before, after


def _spell_classes(data: DataConfig, labels: Sequence[int]) -> str:
    """Return the names of the first classes (image-folder), or their numbers, for messages."""
    facts = facts_of(data)
    return listed([str(label) if facts is None else facts.classes[label] for label in labels])


def transparent(data: DataConfig) -> Iterator[RuleError]:
    """Yield an error if an image-folder has transparent images and `data.background` is not set."""
    facts = facts_of(data)
    if facts is not None and facts.transparent and data.background is None:
        yield RuleError(
            "a folder with transparent images needs a background",
            {
                "transparent images": len(facts.transparent),
                "first": facts.transparent[0],
                "background": None,
            },
            fields=("data.background", "data.folder"),
            hint=f"set data.background to the colour behind them: {', '.join(BACKGROUNDS)}",
        )


def oracles(config: TrainConfig) -> dict[str, bool]:
    """Return, by dotted path, the values of the fields that let test images into training."""
    own, objective = {"data.oracle": config.data.oracle}, config.objective
    return own | ({"objective.oracle": objective.oracle} if isinstance(objective, Guided) else {})


def tags(config: TrainConfig) -> tuple[str, ...]:
    """Return the tags of a run: ("oracle",) if it or its teacher trains on test images, else ()."""
    return ("oracle",) if any(oracles(config).values()) else ()


def teacher_arm(config: TrainConfig) -> str | None:
    """Return the name of the arm whose run is the teacher, or None if there is no teacher."""
    return config.objective.teacher if isinstance(config.objective, Guided) else None


def taught(config: TrainConfig, key: str) -> TrainConfig:
    """Return the configuration with `objective.teacher_key` filled in."""
    return with_values(config, {"objective.teacher_key": key})


def apart(teacher: TrainConfig, student: TrainConfig) -> TrainConfig:
    """Return the configuration of the run that teaches: the teacher's, with draws of its own."""
    return replace(teacher, as_teacher=not student.as_teacher)


_OF_INPUT = (
    "data.name", "data.digest", "data.image_size", "data.views", "data.pool", "data.normalise",
    "data.pixel_mean", "data.pixel_std", "data.background", "data.test_fraction",
)  # fmt: skip
"""Fields that decide the numbers in a network's input, or which images are for tests."""


def unfit(config: TrainConfig, teacher: TrainConfig) -> Iterator[RuleError]:
    """Yield the reasons why a run cannot learn from a given teacher, such as another dataset."""
    oracle = oracles(config).get("objective.oracle", False)
    if oracle != ("oracle" in tags(teacher)):
        yield RuleError(
            "objective.oracle must be true if the teacher saw test images, else false",
            {"objective.oracle": oracle, "data.oracle of the teacher": not oracle},
            fields=("objective.oracle",),
        )
    measured = ("data.val_size", "data.folds") if config.data.normalise == "measured" else ()
    for path in (*_OF_INPUT, *measured):
        if attrgetter(path)(config) != attrgetter(path)(teacher):
            rule = f"a run and its teacher must have the same {path}"
            yield _unlike(rule, config, teacher, path)
    data, held_out = config.data, teacher.data
    if data.holds_out and (data.folds != held_out.folds or data.val_size > held_out.val_size):
        yield _unlike("a teacher must hold out the validation images of its run", config, teacher,
                      "data.val_size", "data.folds")  # fmt: skip
    try:
        replace(config, model=teacher.model)  # it mixes the same hidden layers
    except RuleError as error:
        yield error
    its_seeds = _data_seeds(teacher)
    for source, seed in _data_seeds(config).items():
        if its_seeds.get(source, seed) != seed:
            rule = f"a run and its teacher must draw the source `{source}` by the same seed"
            yield _unlike(rule, config, teacher, "vary", "redraw")


def _unlike(rule: str, config: TrainConfig, teacher: TrainConfig, *paths: str) -> RuleError:
    """Return the reason why a run cannot learn from a teacher, with both values of some paths."""
    values = {
        f"{path}{of}": attrgetter(path)(each)
        for path in paths
        for of, each in (("", config), (" of the teacher", teacher))
    }
    return RuleError(rule, values, fields=(*paths, "objective.teacher"))


def _data_seeds(config: TrainConfig) -> dict[VariationSource, int]:
    """Return the seeds of the draws that choose the training data of a run, at the seed 1."""
    data, seeds = config.data, replace(config, seed=1, as_teacher=False).seeds
    used: dict[VariationSource, bool] = {
        "label-noise": data.label_noise > 0,
        "pairing": data.views != "single",
        "subset": (data.num_train, data.train_fraction) != (None, None),
    }
    return {of: stream_seed(seeds, VARIED[of][0]) for of, is_used in used.items() if is_used}


def images_of_classes(config: TrainConfig) -> Ints | None:
    """Count the training images of each class, before and after label noise: (2, classes).

    The result is None if the labels are not on this machine, or cannot be read without decoding
    images.
    """
    return counted(config.data, config.seeds)


def counted(data: DataConfig, seeds: int | Seeds) -> Ints | None:
    """Count as `images_of_classes` does, given the settings of the data and the seeds of a run.

    Raises:
        RuleError: If a balanced subset cannot be drawn.
    """
    num_classes, root = described(data).num_classes, data_root()
    of_train = _labels(data, "train", root)
    of_test = _labels(data, "test", root) if data.oracle else np.empty(0, np.int64)
    if of_train is None or of_test is None:
        return None
    labels = np.concatenate([of_train[split_off(len(of_train), data)[0]], of_test])
    try:
        chosen = draw_subset(labels, num_classes, data, seeds)
    except ValueError as error:
        raise RuleError(
            "a balanced subset needs enough images of each class",
            {"num_train": data.num_train, "val_size": data.val_size},
            fields=("data.balanced", *SPLIT),
            hint=str(error).removesuffix("."),
        ) from error
    own = labels if chosen is None else labels[chosen]
    noisy = draw_noise(own, num_classes, data, seeds)
    return np.stack([np.bincount(part, minlength=num_classes) for part in (own, noisy)])


def held_out_labels(config: TrainConfig, split: str) -> Ints | None:
    """Return the labels of a run's `val` or `test` images; None if this would decode images."""
    data = config.data
    if facts_of(data) is None and (data.name not in DATASETS or DATASETS[data.name].labels is None):
        return None
    if (labels := _labels(data, "train" if split == "val" else "test", data_root())) is None:
        return None
    own = labels[split_off(len(labels), data)[1]] if split == "val" else labels
    return draw_held_out_noise(own, described(data).num_classes, data, split)


_PICTURES = {"caltech101", "dtd", "fgvc-aircraft", "tiny-imagenet"}
"""Datasets whose labels can only be read together with their images, which takes minutes."""


def _labels(data: DataConfig, split: SplitName, root: Path) -> Ints | None:
    """Return the labels of all images of a split, before images are held out, or None."""
    if (facts := facts_of(data)) is not None:
        train, test = split_classes(data, facts.train, facts.test)
        counts = [len(files) for files in (train if split == "train" else test).values()]
        return np.repeat(np.arange(len(counts)), counts)
    if data.name in _PICTURES or data.name == "image-folder" or not is_present(data.name, root):
        return None
    try:
        return _published_labels(data.name, split, root)
    except (DataError, OSError):
        return None  # loading the images raises the same error


@lru_cache(maxsize=8)
def _published_labels(name: str, split: SplitName, root: Path) -> Ints:
    if (read := DATASETS[name].labels) is not None:
        if DATASETS[name].files:
            verify(name, root, split)
        return read(root, split)
    from mixup_core.images.data.datasets import read_split  # loads torch

    labels: Ints = read_split(DataConfig(name=name), root, split).labels.numpy()
    return labels
