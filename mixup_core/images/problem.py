"""IMAGES: image training as a problem, with its keys, metrics and captions."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import replace

from mixup_core.images.choices.models import corrections_of_model
from mixup_core.images.config import MixConfig, TrainConfig
from mixup_core.images.data.data_config import DataConfig
from mixup_core.images.data.draws import split_off
from mixup_core.images.data.sets.corrupted import CORRUPTED_SPLITS, NUM_SEVERITIES
from mixup_core.images.feasibility import (
    apart,
    at_seed,
    infeasible,
    infeasible_at,
    lacking_classes,
    oracles,
    tags,
    taught,
    teacher_arm,
    unfit,
)
from mixup_core.images.image_data import ImageData, data_remarks, described, facts_of, memory
from mixup_core.images.losses import CrossEntropy
from mixup_core.images.memory import most_bytes
from mixup_core.images.metrics import METRICS, PREDICTED, lacks, lacks_at, observed
from mixup_core.images.objectives.objective import Plain
from mixup_core.images.probes.norms import corrections_of_probes
from mixup_core.laws import Erm
from mixup_core.mixing.partners import FromDataset
from mixup_core.problem import (
    Comparing,
    Cost,
    HeldOut,
    Keying,
    Measuring,
    Presentation,
    Problem,
    Randomness,
    Reading,
    Searching,
    Teaching,
)
from mixup_core.records import AVERAGED
from mixup_core.rules import RuleError

_CALLED = {
    "batch_size": "batch batchsize bs minibatch_size train_batch_size",
    "epochs": "max_epochs n_epochs num_epochs num_train_epochs",
    "optimizer.lr": "base_lr eta initial_lr learning_rate",
    "optimizer.clip_norm": "clip_grad clip_grad_norm grad_clip gradient_clip gradient_clip_val "
    "gradient_clipping max_grad_norm max_norm",
    "optimizer.weight_decay": "l2 wd",
    "lr_schedule": "lr_scheduler scheduler",
    "lr_schedule.warm_up": "warmup warmup_epochs",
    "loss": "criterion",
    "loss.smoothing": "label_smoothing smoothing",
    "averaging": "ema swa",
    "precision": "amp bf16 fp16 half mixed_precision",
    "model.name": "arch architecture backbone net network",
    "model.weights": "checkpoint pretrained",
    "mix.law.alpha": "alpha beta mixup_alpha",
    "mix.operation": "cutmix mixup mode",
    "mix.probability": "cutmix_prob mix_prob mixup_prob",
    "mix.switch_epoch": "mixup_off_epoch",
    "readout": "early_stopping patience",
    "data.name": "dataset dataset_name",
    "data.folder": "data_dir data_path dir directory path root",
    "data.image_size": "image_size img_size input_size resize resolution size",
    "data.augment": "augmentation augmentations transform transforms",
    "data.skip": "exclude ignore",
    "data.train_fraction": "fraction subset",
    "data.val_size": "val_fraction val_split validation_split",
    "data.folds": "cross_validation cv k_fold k_folds kfold num_folds",
    "data.test_fraction": "holdout split test_size test_split",
    "data.pixel_mean": "mean",
    "data.pixel_std": "std",
    "data.normalise": "normalisation normalization normalize",
}  # fmt: skip

OTHER_NAMES: Mapping[str, str] = {
    name: path for path, names in _CALLED.items() for name in names.split()
}
"""Dotted path of a setting, by the name that other programs use for it, such as `label_smoothing`.

The path starts at a run's configuration, except `readout`, which is a key of the study file.
"""

_VIEWS = {
    "concat": " (two views by channel concatenation)",
    "added": " (two views, added)",
    "orthogonal": " (beside one image of noise for each class)",
}
LAW_IN_FORCE = "The law of each epoch enters instead, with all of its fields."
RATE_IN_FORCE = "The settings that determine the learning rates of each epoch enter instead."


_LAW = (
    "mix.law", "mix.law_after", "mix.switch_epoch", "mix.switch_fraction", "mix.schedule",
    "mix.schedule.phases", "mix.schedule.phases.law", "mix.schedule.phases.until",
    "mix.schedule.base", "mix.schedule.low", "mix.schedule.high", "mix.schedule.start",
    "mix.schedule.end",
)  # fmt: skip
_MIXING = (
    "mix.lam_scope", "mix.partner", "mix.operation", "mix.probability", "mix.second",
    "mix.second_law", "mix.second_probability", "mix.label_law",
)  # fmt: skip
_RATE = (
    "lr_schedule", "lr_schedule.warm_up", "lr_schedule.end", "lr_schedule.at", "lr_schedule.gamma",
)  # fmt: skip

_OF_TRAINING = {
    "train/error", "train/multi_view_error", "train/spurious_error", "train/true_error",
    "filter/low_fraction",
}  # fmt: skip
"""Shares of all training images."""
_OF_IMAGES = {"val", "test", "predicted", *CORRUPTED_SPLITS}
"""Names of metrics of held-out images, before the slash; a plugin can measure other images."""


def hidden(config: TrainConfig) -> TrainConfig:
    """Return a configuration without test images, as a search trains it; validation images stay."""
    if tags(config):
        raise RuleError("a run of a search must not train on test images", oracles(config))
    if not config.data.holds_out:
        raise RuleError(
            "a search needs held-out images: set data.val_size or data.folds",
            {"data.val_size": 0},
        )
    return replace(config, data=replace(config.data, test=False))


def revealed(config: TrainConfig) -> TrainConfig:
    """Return the configuration for the confirmation of a search's winner."""
    return replace(config, data=replace(config.data, val_size=0, folds=None, test=True))


def setting(config: TrainConfig, metric: str) -> str:
    """Describe the dataset and split of a metric for captions: `Fashion-MNIST, 10 000 test images`.

    The split is the validation images for `val/*`, and the test images for every other metric.
    """
    data, info = config.data, described(config.data)
    title = info.title + (f" at {info.image_size} pixels" if data.image_size is not None else "")
    title += _VIEWS.get(data.views, "")
    split = metric.partition("/")[0]
    if split == "val" and data.folds is not None:
        return (
            f"{title}, validation images: one of {data.folds} folds of {info.num_train} images at "
            "each seed, so that the training images of two seeds overlap and intervals are "
            "approximate"
        )
    if split in {"train", "filter"}:
        count, kind = data.num_images(info), "training"
    elif split == "val":
        count, kind = data.val_size, "validation"
    else:
        count, kind = info.num_test, "test"
    spelled = f"{count:,}".replace(",", " ")
    return f"{title}, {spelled} {kind} images{_corrupted(data, split)}"


def _corrupted(data: DataConfig, split: str) -> str:
    """Return how many times a metric of corrupted test images sees each image; empty for others."""
    if split not in CORRUPTED_SPLITS:
        return ""
    severity = data.severity
    which = f"all {NUM_SEVERITIES} severities" if severity is None else f"severity {severity}"
    if split == "test_corrupted":
        return f" at {which}, mean of {len(data.corruptions)} corruptions"
    return f" under {split.removeprefix('test_').replace('_', ' ')} at {which}"


def sample_size(config: TrainConfig, metric: str) -> int | None:
    """Return the number of images of which a metric, such as an error, is a share."""
    split, _, name = metric.partition("/")
    if metric in _OF_TRAINING:
        return config.data.num_images(described(config.data))
    if split not in _OF_IMAGES or name.removesuffix(AVERAGED) not in {"error", "accuracy"}:
        return None
    if split in CORRUPTED_SPLITS and (split == "test_corrupted" or config.data.severity is None):
        return None  # an image counts once for each corruption and severity
    info = described(config.data)
    if split != "val":
        return info.num_test
    if config.data.folds is not None and info.num_train % config.data.folds:
        return None  # the folds differ in size
    return config.data.num_held_out(info.num_train) or None


def guessing(config: TrainConfig, metric: str) -> float | None:
    """Return the error of a guessed class, 1 - 1 / k for k classes; None for other metrics."""
    split, _, name = metric.partition("/")
    is_error = split in {"train", *_OF_IMAGES} and name.removesuffix(AVERAGED) == "error"
    return 1 - 1 / described(config.data).num_classes if is_error else None


def population(config: TrainConfig, metric: str) -> Hashable:
    """Return what a metric is measured on: images, their labels and their corruptions."""
    data, split = config.data, metric.partition("/")[0]
    noise = (data.label_noise, data.noise_to) if data.label_noise else None
    return (
        data.name,
        data.digest,  # of the test images too, whatever their folder
        data.test_fraction,
        data.image_size,
        data.views,
        data.val_size,
        data.folds,
        data.fold if split == "val" else None,
        noise if data.noise_in_test else None,
        noise if data.noise_in_val and split == "val" else None,
        data.severity if split in CORRUPTED_SPLITS else None,
        frozenset(data.corruptions) if split == "test_corrupted" else None,
    )


def prediction_bytes(config: TrainConfig) -> int:
    """Return the size of a run's stored predictions in bytes: logits and labels of val and test."""
    data, info = config.data, described(config.data)
    num_images = data.num_held_out(info.num_train) + (info.num_test if data.test else 0)
    networks = 1 if config.averaging is None else 2
    return num_images * (4 * info.num_classes * networks + (1 if info.num_classes <= 256 else 2))


def method(config: TrainConfig) -> str | None:
    """Return the name of a run's method (`erm`, `midpoint`, `uniform`); None if it has no name.

    A run can have a name only if one law holds in all epochs, labels are not smoothed, the
    objective is the mean loss of the mixed images, and no test image is used for training. If the
    law mixes, every batch must be mixed linearly, with random partners.
    """
    mix = config.mix
    changes = (mix.schedule, mix.switch_epoch, mix.switch_fraction)
    if changes != (None, None, None) or config.objective != Plain() or config.data.oracle:
        return None
    if isinstance(config.loss, CrossEntropy) and config.loss.smoothing > 0:
        return None
    usual = replace(mix, law=Erm(), lam_scope="batch", partner=FromDataset()) == MixConfig()
    is_plain = usual and mix.partner.pairing is not None
    return mix.law.method if is_plain or not mix.law.mixes else None


def examples(config: TrainConfig, split: str) -> Sequence[str]:
    """Return the file names, as CLASS/FILE, of the images of a split whose logits a run stores."""
    facts = facts_of(config.data)
    if facts is None:
        return ()
    if split == "test":
        return facts.names(config.data, "test")
    names = facts.names(config.data, "train")
    return [names[index] for index in split_off(len(names), config.data)[1]]


def remarks(config: TrainConfig, seeds: Sequence[int]) -> Iterator[str]:
    """Yield remarks on runs' images, for plans and captions of tables."""
    yield from data_remarks(config.data)
    yield from lacking_classes(config, seeds)


IMAGES = Problem(
    name="images",
    title="image classification with mixup",
    config=TrainConfig,
    process="mixup_core.images.training:start",
    network="mixup_core.images.training:trained_network",
    packages=("torchvision", "pillow"),
    metrics=METRICS,
    headline=("test/error", "val/error"),
    measuring=Measuring(
        predicted=PREDICTED,
        observed=observed,
        lacks=lacks,
        lacks_at=lacks_at,
        sample_size=sample_size,
        guessing=guessing,
    ),
    searching=Searching(
        objectives=("val/error", "val/nll", "val/calibration_error"),
        held_out=HeldOut(hidden=hidden, revealed=revealed),
        unsearchable=("data.folder", "data.test", "data.oracle", "objective.oracle"),
    ),
    reading=Reading(
        feasibility=infeasible,
        infeasible_at=infeasible_at,
        other_names=OTHER_NAMES,
        reserved={
            "seed": "cannot be set in a study file; give `seeds`",
            "data.fold": "cannot be set in a study file; each seed holds out another fold",
            "data.digest": "cannot be set in a study file; it is computed from the folder",
            "model.weights_digest": "cannot be set in a study file; it is computed from the file",
            "objective.teacher_key": "cannot be set in a study file; name the teacher's arm",
        },
    ),
    # Frozen: these rules for old configurations, because keys depend on them. After a change,
    # stored results are not found; tests/golden/test_keys.py fails.
    keying=Keying(
        is_named=False,
        corrected=lambda config: corrections_of_model(config.model) + corrections_of_probes(config),
        first={
            "data.name": "fashion-mnist",
            "data.views": "single",
            "data.num_train": None,
            "data.val_size": 0,
            "data.test": True,
            "data.pool": 1,
            "data.image_size": None,
            "data.digest": None,
            "model.name": "resnet18",
            "model.width": None,
            "model.hidden": None,
            "optimizer.name": "adam",
            "optimizer.lr": 0.001,
            "optimizer.momentum": 0.0,
            "optimizer.weight_decay": 0.0,
            "mix.law": "erm",
            "mix.switch_epoch": None,
            "mix.law_after": "erm",
            "mix.lam_scope": "batch",
            "mix.partner": "dataset",
            "epochs": None,
            "batch_size": None,
            "eval_every": 1,
            "precision": "float32",
            "seed": 0,
        },
        stands_for={
            "data.folder": "data.digest",
            "model.weights": "model.weights_digest",
            "data.skip": "data.digest",
            "objective.teacher": "objective.teacher_key",
        },
        by_epoch={
            **dict.fromkeys(_LAW, LAW_IN_FORCE),
            **dict.fromkeys(_MIXING, "The field enters with the law of each epoch that mixes."),
            "objective": "The objective of each epoch enters with all of its fields, unless plain.",
            **dict.fromkeys(_RATE, RATE_IN_FORCE),
        },
        of_epoch=lambda config, epoch: config.in_epoch(epoch).key,
    ),
    data=ImageData,
    teaching=Teaching(arm=teacher_arm, taught=taught, apart=apart, unfit=unfit),
    randomness=Randomness(
        at_seed=at_seed,
        source=lambda config: (config.vary, replace(config, vary="all")),
        redrawn=lambda config: (config.redraw, replace(config, redraw="nothing")),
    ),
    comparing=Comparing(
        population=population,
        data_paths=frozenset({"data.name", "data.folder", "data.digest"}),
        dataset=lambda config: config.data.name,
    ),
    presentation=Presentation(
        beside=("*/error", "*/nll", "*/calibration_error"),
        curves=(("train/excess_loss", "train/loss"),),
        tags=tags,
        setting=setting,
        classes=lambda config: described(config.data).classes,
        examples=examples,
        remarks=remarks,
        law_at=TrainConfig.law_at,
        method=method,
    ),
    cost=Cost(
        work=lambda config: config.data.num_images(described(config.data)),
        work_unit="images",
        memory=memory,
        most_bytes=most_bytes,
        evaluations=lambda config: config.epochs // config.eval_every,
        prediction_bytes=prediction_bytes,
    ),
)
"""The problem of training image classifiers under mixup."""
