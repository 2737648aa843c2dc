"""IMAGES: image training as a problem: its metrics, its data, and what it is measured on."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, get_args

from mixup_core.images.config import DataConfig, TrainConfig
from mixup_core.images.data.catalog import DataError, DatasetInfo
from mixup_core.images.data.fetching import checksums, data_root, fetch, is_present, statuses
from mixup_core.images.data.folders import describe, folder_digest
from mixup_core.images.data.sets.corrupted import CORRUPTIONS
from mixup_core.images.objectives.guided import Guided
from mixup_core.images.objectives.objective import Objective
from mixup_core.images.objectives.plain import Plain
from mixup_core.images.probes.probe import Probe
from mixup_core.laws import PLAIN_METHODS, Erm
from mixup_core.problem import DataSet, HeldOut, Keying, Metric, Problem, Teaching
from mixup_core.rules import RuleError
from mixup_core.tree.building import with_values
from mixup_core.tree.written_forms import spelled

MAX_EPOCHS = 10_000
"""Every epoch of a run has a stage key, and planning computes all of them."""

METRICS = {
    **{
        f"{split}/{name}{suffix}": Metric(label=f"{title} {label}{note}", unit=unit)
        for suffix, note in (("", ""), ("_averaged", ", averaged weights"))
        for split, title in (
            ("test", "test"),
            ("val", "validation"),
            ("test_corrupted", "corrupted test"),
            *((f"test_{name}", f"test under {name.replace('_', ' ')}") for name in CORRUPTIONS),
        )
        for name, label, unit in (
            ("error", "error", "%"),
            ("nll", "NLL", "nats"),
            ("calibration_error", "calibration error", "%"),
        )
    },
    "train/loss": Metric(label="training loss", unit="nats"),
    "train/excess_loss": Metric(
        label="excess training loss",
        unit="nats",
        note="Excess: above the entropy of the mixed labels, the least that any network can reach.",
    ),
    **{
        name: metric
        for kind in (*get_args(Objective), *get_args(Probe))
        for name, metric in kind.metrics.items()
    },
}
"""Of training and evaluation; objectives and probes declare what they record beside."""

PREDICTED = {
    f"predicted/{scaled}{name}": Metric(label=f"test {label}{at}", unit=unit)
    for scaled, at in (("", ""), ("scaled_", " at a fitted temperature"))
    for name, label, unit in (
        ("calibration_error", "calibration error", "%"),
        ("brier", "Brier score", ""),
        ("nll", "NLL", "nats"),
    )
    if (scaled, name) != ("", "nll")
} | {"predicted/temperature": Metric(label="fitted temperature")}
"""Of the test images after the last epoch; a temperature is fitted on the validation images."""

_SPLIT = ("data.num_train", "data.train_fraction", "data.val_size", "data.folder", "data.name")


def of_epoch(config: TrainConfig, epoch: int) -> Any:
    """Return what decides an epoch: how it mixes, and what it does beyond the plain method."""
    law, objective = config.in_epoch(epoch)
    mixing: Any = "erm"
    if not isinstance(law, Erm):
        mixing = [spelled(law, brief=True), config.mix.lam_scope, config.mix.partner]
    beyond = {}
    if not isinstance(objective, Plain):
        beyond["objective"] = spelled(objective, brief=True)
    if (rate := config.lr_schedule.in_epoch(epoch, config.epochs)) is not None:
        beyond["rate"] = rate
    return {"mixing": mixing, **beyond} if beyond else mixing


class ImageData:
    """What image training needs of its data sets (`mixup_core.problem.DataNeeds`)."""

    def __init__(self) -> None:
        """Know nothing yet."""
        self._found: dict[DataConfig, DataConfig | str] = {}

    def root(self) -> Path:
        """Return the folder of the data sets on this machine."""
        return data_root()

    def sets(self) -> tuple[DataSet, ...]:
        """Return where each data set of the catalogue is or would be."""
        return statuses(data_root())

    def fetch(self, name: str) -> str:
        """Put a data set under the root as `mixup_core.images.data.fetching.fetch` does."""
        return fetch(name, data_root())

    def prepare(self, config: TrainConfig, folder: Path) -> TrainConfig:
        """Return the configuration with an image-folder found and digested, each folder once.

        Raises:
            DataError: If the folder cannot be read; the same again for the same data.
        """
        data = config.data
        if data.folder is None:
            return config
        if data not in self._found:
            try:
                images = (folder / data.folder).absolute()
                placed = replace(data, folder=str(images))
                describe(placed)
                self._found[data] = replace(placed, digest=folder_digest(images, data_root()))
            except (DataError, OSError, ValueError) as error:
                self._found[data] = str(error)
        found = self._found[data]
        if isinstance(found, str):
            raise DataError(found, fields=("data.folder", "data.name"))
        return replace(config, data=found)

    def missing(self, config: TrainConfig) -> str | None:
        """Return that a data set is not here and how to get it; an image-folder was looked at."""
        root = data_root()
        for name in _needed(config.data):
            if not is_present(name, root):
                return f"{name}: not found in {root}; get it with mixsweep data fetch {name}"
        return None

    def open(self, config: TrainConfig) -> None:
        """Decode an image-folder, once for all runs of this machine: nobody else has looked at it.

        Raises:
            DataError: If a file is no image that can be used; the text names it.
        """
        if config.data.folder is not None:
            from mixup_core.images.data.mapped import load_mapped

            load_mapped(config.data)

    def checksums(self, config: TrainConfig) -> Mapping[str, Mapping[str, str]]:
        """Return data set to file to checksum."""
        data = config.data
        is_here = all(is_present(name, data_root()) for name in _needed(data))
        return {data.name: checksums(data)} if is_here else {}


def _needed(data: DataConfig) -> tuple[str, ...]:
    """Return the names under which what a run loads is fetched."""
    return (data.name, *([f"{data.name}-c"] if data.test and data.corruptions else []))


def described(data: DataConfig) -> DatasetInfo:
    """Return what is known of a data set; a folder with a digest is scanned once."""
    is_fixed = data.folder is None or data.digest is not None
    return _described(data) if is_fixed else describe(data)


_described = lru_cache(maxsize=64)(describe)


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
    if data.views == "concat" and info.num_classes % 2:
        yield RuleError(
            "class pairing has an even number of classes",
            {"classes": info.num_classes},
            fields=("data.views", "data.folder", "data.name"),
        )
    available = info.num_train - data.val_size + (info.num_test if data.oracle else 0)
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


def hidden(config: TrainConfig) -> TrainConfig:
    """Return a configuration blind to test images, to be judged on images held out.

    Raises:
        RuleError: If no images are held out, or training sees test images.
    """
    if tags(config):
        oracle = {"data.oracle": config.data.oracle}
        if isinstance(config.objective, Guided):
            oracle |= {"objective.oracle": config.objective.oracle}
        raise RuleError("a search selects no oracle", oracle)
    if config.data.val_size == 0:
        raise RuleError(
            "val_size >= 1 in a search, which is judged on images held out",
            {"data.val_size": 0},
        )
    return replace(config, data=replace(config.data, test=False))


def revealed(config: TrainConfig) -> TrainConfig:
    """Return a configuration trained on train + val and measured on the test images.

    A random training subset (`data.num_train`) stays as large as it was.
    """
    return replace(config, data=replace(config.data, val_size=0, test=True))


def tags(config: TrainConfig) -> tuple[str, ...]:
    """Return `oracle` for a run that learns from test images, itself or through its teacher."""
    of_teacher = isinstance(config.objective, Guided) and config.objective.oracle
    return ("oracle",) if config.data.oracle or of_teacher else ()


def teacher_arm(config: TrainConfig) -> str | None:
    """Return the arm that a configuration names as its teacher."""
    return config.objective.teacher if isinstance(config.objective, Guided) else None


def taught(config: TrainConfig, key: str) -> TrainConfig:
    """Return the configuration with the final stage key of its teacher filled in."""
    return with_values(config, {"objective.teacher_key": key})


def unfit(config: TrainConfig, teacher: TrainConfig) -> Iterator[RuleError]:
    """Yield each reason why a run cannot learn from a teacher."""
    oracle = isinstance(config.objective, Guided) and config.objective.oracle
    if oracle != ("oracle" in tags(teacher)):
        yield RuleError(
            "objective.oracle says whether the teacher saw test images",
            {"objective.oracle": oracle, "data.oracle of the teacher": not oracle},
            fields=("objective.oracle",),
        )
    for name in ("name", "digest", "image_size", "views", "pool"):
        own, its = getattr(config.data, name), getattr(teacher.data, name)
        if own != its:
            yield RuleError(
                f"the teacher has the same data.{name}",
                {f"data.{name}": own, f"data.{name} of the teacher": its},
                fields=(f"data.{name}", "objective.teacher"),
            )


def measures(config: TrainConfig, metric: str) -> bool:
    """Return whether a run measures a metric: `test/*` needs test images, `val/*` held-out ones."""
    split = metric.partition("/")[0]
    return {"test": config.data.test, "val": config.data.val_size > 0}.get(split, True)


def setting(config: TrainConfig, metric: str) -> str:
    """Return the images a metric is measured on: `Fashion-MNIST, 10 000 test images`."""
    data, info = config.data, described(config.data)
    views = " (two views by channel concatenation)" if data.views == "concat" else ""
    is_val = metric.startswith("val/")
    count = f"{data.val_size if is_val else info.num_test:,}".replace(",", " ")
    size = f" at {info.image_size} pixels" if data.image_size is not None else ""
    return f"{info.title}{size}{views}, {count} {'validation' if is_val else 'test'} images"


def sample_size(config: TrainConfig, metric: str) -> int | None:
    """Return the number of images of which an error is the share that is misclassified."""
    split, _, name = metric.partition("/")
    if name != "error":
        return None
    return config.data.val_size if split == "val" else described(config.data).num_test


def prediction_bytes(config: TrainConfig) -> int:
    """Return the bytes of the logits of validation and test images, of each network measured."""
    data, info = config.data, described(config.data)
    num_images = data.val_size + (info.num_test if data.test else 0)
    networks = 1 if config.averaging is None else 2
    return num_images * (4 * info.num_classes * networks + (1 if info.num_classes <= 256 else 2))


def method(config: TrainConfig) -> str | None:
    """Return the plain method that never changes its law: `erm`, `midpoint` or `uniform`."""
    mix = config.mix
    changes = (mix.schedule, mix.switch_epoch, mix.switch_fraction)
    is_plain = changes == (None, None, None) and isinstance(config.objective, Plain)
    return PLAIN_METHODS.get(mix.law) if is_plain and not config.data.oracle else None


def memory(config: TrainConfig) -> dict[str, int]:
    """Return the images of a data set in bytes, as the processes of a machine map them together."""
    return {config.data.name: described(config.data).num_bytes}


def num_images(config: TrainConfig) -> int:
    """Return the training images of one epoch."""
    data = config.data
    info = described(data)
    available = info.num_train - data.val_size + (info.num_test if data.oracle else 0)
    return data.size_of_subset(available)


IMAGES = Problem(
    name="images",
    title="networks trained on images under mixup",
    config=TrainConfig,
    process="mixup_core.images.training:start",
    network="mixup_core.images.trained:trained_network",
    metrics=METRICS,
    predicted=PREDICTED,
    headline=("test/error", "val/error"),
    beside=("*/nll", "*/calibration_error"),
    curves=(("train/excess_loss", "train/loss"),),
    objectives=("val/error", "val/nll", "val/calibration_error"),
    keying=Keying(
        is_named=False,
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
            "objective.teacher": "objective.teacher_key",
        },
        by_epoch=("mix.", "objective", "objective.", "lr_schedule", "lr_schedule."),
        of_epoch=of_epoch,
    ),
    data=ImageData,
    held_out=HeldOut(hidden=hidden, revealed=revealed),
    teaching=Teaching(arm=teacher_arm, taught=taught, unfit=unfit),
    feasibility=infeasible,
    reserved={
        "seed": "is not set in a study file; give `seeds`",
        "data.digest": "is not set in a study file; it is computed from the folder",
        "objective.teacher_key": "is not set in a study file; name the teacher's arm",
    },
    unsearchable=(
        "data.name",
        "data.folder",
        "data.image_size",
        "data.val_size",
        "data.test",
        "data.oracle",
        "objective.oracle",
    ),
    tags=tags,
    measures=measures,
    setting=setting,
    sample_size=sample_size,
    population=lambda config: (
        config.data.name,
        config.data.digest,
        config.data.image_size,
        config.data.views,
        config.data.val_size,
    ),
    source=lambda config: (config.vary, replace(config, vary="all")),
    evaluations=lambda config: config.epochs // config.eval_every,
    prediction_bytes=prediction_bytes,
    law_at=TrainConfig.law_at,
    method=method,
    data_paths=frozenset({"data.name", "data.folder", "data.digest"}),
    dataset=lambda config: config.data.name,
    memory=memory,
    work=num_images,
    work_unit="images",
)
"""Image training: SCIENCE's sections on images are studies of it."""
