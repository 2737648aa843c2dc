"""TrainConfig: everything that decides the numbers of one run, and the keys derived from it."""

import dataclasses
import functools
import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from mixup_core.laws import Constant, Erm, Law, Schedule, Switch, parse_law, spell_law

NUMERICS_VERSION = 1
"""Raised whenever the golden losses move; part of every key, so old results are not mixed in."""

DatasetName = Literal["fashion-mnist", "cifar10", "cifar100", "digits", "image-folder"]
ModelName = Literal["resnet18", "narrow-resnet", "mlp"]

MAX_SEED = 2**63 - 1


@dataclass(frozen=True, kw_only=True, slots=True)
class DataConfig:
    """Which images a run sees, and how they are presented."""

    name: DatasetName = "fashion-mnist"
    """A key of `mixup_core.images.data.datasets.DATASETS`."""
    views: Literal["single", "concat"] = "single"
    """`concat` is the channel-concatenated multi-view benchmark (see `mixup_core.images.views`)."""
    num_train: int | None = None
    """Size of a random training subset, drawn per seed; None takes all images."""
    val_size: int = 0
    """Training images held out for `val/*`, the same ones at every seed; 0 trains on all."""
    test: bool = True
    """Whether test images are loaded and `test/*` is recorded. A search sets it to false."""
    pool: int = 1
    """Side of the square of pixels averaged into one, after normalising; 1 keeps the image."""
    folder: str | None = None
    """`image-folder` only: directory that holds `train/<class>/*` and `test/<class>/*`."""
    image_size: int | None = None
    """`image-folder` only: images are resized and centre-cropped to this side, in pixels."""
    digest: str | None = None
    """`image-folder` only: sha256 over names and contents, filled in when a study is read. It
    stands for `folder` in the keys."""

    def __post_init__(self) -> None:
        """Check ranges and combinations.

        Raises:
            ValueError: If a value is out of range or belongs to another data set.
        """
        _require(self.num_train is None or self.num_train >= 1, "num_train >= 1", self, "num_train")
        _require(self.val_size >= 0, "val_size >= 0", self, "val_size")
        _require(self.pool >= 1, "pool >= 1", self, "pool")
        _require(
            self.image_size is None or self.image_size >= 4, "image_size >= 4", self, "image_size"
        )
        if self.name == "image-folder":
            _require(self.folder is not None, "an image-folder names its folder", self, "folder")
            _require(
                self.image_size is not None, "an image-folder has an image_size", self, "image_size"
            )
        else:
            for name in ("folder", "image_size", "digest"):
                _require(
                    getattr(self, name) is None,
                    f"{name} belongs to image-folder",
                    self,
                    "name",
                    name,
                )


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelConfig:
    """The network."""

    name: ModelName = "resnet18"
    """A key of `mixup_core.images.models.MODELS`."""
    width: int | None = None
    """Channels of the first stage of a ResNet; None: 64 for resnet18, 12 for narrow-resnet."""
    hidden: tuple[int, ...] | None = None
    """Hidden layer sizes of an MLP; None: 300, 100."""

    def __post_init__(self) -> None:
        """Check ranges and combinations.

        Raises:
            ValueError: If a size is not positive or belongs to another network.
        """
        _require(self.width is None or self.width >= 1, "width >= 1", self, "width")
        _require(
            self.hidden is None or all(size >= 1 for size in self.hidden),
            "each hidden size >= 1",
            self,
            "hidden",
        )
        if self.name == "mlp":
            _require(self.width is None, "width belongs to the ResNets", self, "name", "width")
        else:
            _require(self.hidden is None, "hidden belongs to mlp", self, "name", "hidden")

    @property
    def has_batch_norm(self) -> bool:
        """Whether a training batch of one image is impossible."""
        return self.name != "mlp"


@dataclass(frozen=True, kw_only=True, slots=True)
class OptimizerConfig:
    """The optimizer; a new one per run, with a constant learning rate."""

    name: Literal["adam", "sgd"] = "adam"
    lr: float = 1e-3
    """Learning rate, positive and finite."""
    momentum: float = 0.0
    """SGD only, in [0, 1)."""
    weight_decay: float = 0.0
    """L2 penalty added to the gradient, at least 0 and finite."""

    def __post_init__(self) -> None:
        """Check ranges and combinations.

        Raises:
            ValueError: If a value is out of range or belongs to another optimizer.
        """
        _require(0 < self.lr < math.inf, "0 < lr < inf", self, "lr")
        _require(0 <= self.momentum < 1, "0 <= momentum < 1", self, "momentum")
        _require(0 <= self.weight_decay < math.inf, "0 <= weight_decay < inf", self, "weight_decay")
        if self.name == "adam":
            _require(self.momentum == 0, "momentum belongs to sgd", self, "name", "momentum")


@dataclass(frozen=True, kw_only=True, slots=True)
class MixConfig:
    """How images and labels are mixed, epoch by epoch."""

    law: Law = field(default_factory=Erm)
    """Law of the first epochs."""
    switch_epoch: int | None = None
    """First epoch (0-based) trained under `law_after`; None never switches."""
    law_after: Law = field(default_factory=Erm)
    """Law from the switch epoch on; without a switch epoch it has no meaning."""
    lam_scope: Literal["batch", "sample"] = "batch"
    """Whether one weight serves a batch or each image has its own."""
    partner: Literal["dataset", "permutation"] = "dataset"
    """Where partners come from: uniform over the training set with replacement (an image may be
    its own partner), or a random permutation of the batch."""

    def __post_init__(self) -> None:
        """Check ranges and combinations.

        Raises:
            ValueError: If the switch epoch is negative, or a second law has no switch epoch.
        """
        _require(
            self.switch_epoch is None or self.switch_epoch >= 0,
            "mix.switch_epoch >= 0",
            self,
            "switch_epoch",
        )
        _require(
            self.switch_epoch is not None or self.law_after == Erm(),
            "a law_after has a switch_epoch",
            self,
            "switch_epoch",
            "law_after",
        )

    @property
    def schedule(self) -> Schedule:
        """The law of each epoch."""
        if self.switch_epoch is None:
            return Constant(law=self.law)
        return Switch(law=self.law, switch_epoch=self.switch_epoch, law_after=self.law_after)


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainConfig:
    """One run: one configuration trained once, so one seed."""

    data: DataConfig = field(default_factory=DataConfig)
    model: ModelConfig = field(default_factory=ModelConfig)
    optimizer: OptimizerConfig = field(default_factory=OptimizerConfig)
    mix: MixConfig = field(default_factory=MixConfig)
    epochs: int
    """Passes over the training images."""
    batch_size: int
    """Images per step. The last batch of an epoch holds what is left; it is never dropped."""
    eval_every: int = 1
    """`val/*` and `test/*` are measured after every `eval_every`-th epoch; it divides `epochs`, so
    the last epoch is always measured and a shorter run is a prefix of a longer one."""
    precision: Literal["float32", "bfloat16"] = "float32"
    """Arithmetic of the network's forward pass (autocast); weights and loss stay float32."""
    seed: int = 0
    """Names all random draws of the run, in 0..2^63-1."""

    def __post_init__(self) -> None:
        """Check ranges and combinations.

        Raises:
            ValueError: If a value is out of range, or the parts contradict each other.
        """
        _require(self.epochs >= 1, "epochs >= 1", self, "epochs")
        _require(self.batch_size >= 1, "batch_size >= 1", self, "batch_size")
        _require(self.eval_every >= 1, "eval_every >= 1", self, "eval_every")
        _require(
            self.epochs % self.eval_every == 0,
            "eval_every divides epochs",
            self,
            "eval_every",
            "epochs",
        )
        _require(0 <= self.seed <= MAX_SEED, "0 <= seed <= 2^63-1", self, "seed")
        switch_epoch = self.mix.switch_epoch
        if switch_epoch is not None and switch_epoch > self.epochs:
            raise ValueError(
                "`mix.switch_epoch <= epochs` must hold, "
                f"got (mix.switch_epoch={switch_epoch}, epochs={self.epochs})."
            )


def flatten(config: TrainConfig) -> dict[str, Any]:
    """Return the configuration under its dotted paths, values as a study file writes them.

    A law takes two paths: `mix.law` is its name and `mix.law.alpha` the parameter of a Beta law.
    """
    flat: dict[str, Any] = {}

    def visit(prefix: str, node: Any) -> None:
        for name, is_law in _parts(type(node)):  # type: ignore[arg-type]  # a class is hashable
            value, path = getattr(node, name), f"{prefix}{name}"
            if is_law:
                spelled = spell_law(value)
                if isinstance(spelled, str):
                    flat[path] = spelled
                else:
                    ((flat[path], flat[f"{path}.alpha"]),) = spelled.items()
            elif _parts(type(value)):  # type: ignore[arg-type]  # as above
                visit(f"{path}.", value)
            else:
                flat[path] = value

    visit("", config)
    return flat


@functools.cache
def _parts(kind: type) -> tuple[tuple[str, bool], ...]:
    """Return the fields of a dataclass and whether each is a law; none of any other type.

    Kept, because a study of 10,000 runs asks a million times.
    """
    if not dataclasses.is_dataclass(kind):
        return ()
    return tuple((part.name, part.type in (Law, "Law")) for part in dataclasses.fields(kind))


def with_values(config: TrainConfig, values: Mapping[str, Any]) -> TrainConfig:
    """Return the configuration with the values at some dotted paths replaced, checked again.

    Args:
        config: The configuration to start from; it is not changed.
        values: Dotted path to value. A law is given whole under its path (`mix.law: {beta: 0.5}`)
            or its alpha alone (`mix.law.alpha: 0.5`). All values are set before anything is
            checked, so their order does not matter.

    Raises:
        KeyError: If a path names no field.
        ValueError: If a value is out of range or the parts contradict each other.
    """
    tree = _Paths()
    for path, value in values.items():
        *parents, leaf = path.split(".")
        node = tree
        for name in parents:
            node = node.setdefault(name, _Paths())
            if not isinstance(node, _Paths):
                raise KeyError(f"`paths do not overlap` must hold, got ({path=}).")
        node[leaf] = value
    rebuilt: TrainConfig = _replaced(config, tree, "")
    return rebuilt


class _Paths(dict[str, Any]):
    """Values by the first part of their path; told apart from a value that is itself a mapping."""


def _replaced(node: Any, tree: _Paths, prefix: str) -> Any:
    names = [part.name for part in dataclasses.fields(node)]
    changes = {}
    for name, value in tree.items():
        if name not in names:
            raise KeyError(
                f"`path names a field` must hold, got (path={prefix + name!r}); "
                f"{type(node).__name__} has {', '.join(names) or 'no fields'}."
            )
        old = getattr(node, name)
        if isinstance(value, _Paths) and dataclasses.is_dataclass(old):
            changes[name] = _replaced(old, value, f"{prefix}{name}.")
        elif isinstance(value, _Paths):
            raise KeyError(
                f"`path names a field` must hold, got (path={prefix + name!r}); it has no parts."
            )
        elif isinstance(old, Law):
            changes[name] = parse_law(value)
        else:
            changes[name] = value
    return dataclasses.replace(node, **changes)


def run_key(config: TrainConfig) -> str:
    """Return the name of a run: a hash of everything in its configuration that changes numbers.

    Returns:
        32 hexadecimal digits. Where images lie on disk, the device, threads and the study's name
        are not part of it; `NUMERICS_VERSION` is.
    """
    return _hashed({"config": _keyed(config)})


def stage_key(config: TrainConfig, epoch: int) -> str:
    """Return the name of a run's first `epoch` epochs: runs with equal keys share them bit for bit.

    The schedule enters as the list of laws of those epochs, so a run that mixes for 10 epochs and
    one that mixes for 20 have the same key up to 10; the total number of epochs does not enter.

    Args:
        config: The run.
        epoch: Number of epochs trained, in 1..config.epochs.
    """
    return stage_keys(config)[epoch - 1]


def stage_keys(config: TrainConfig) -> tuple[str, ...]:
    """Return `stage_key(config, epoch)` for epoch 1 to `config.epochs`; the last is a whole run."""
    fixed = {
        path: value
        for path, value in _keyed(config).items()
        if path != "epochs" and not path.startswith("mix.")
    }
    key, schedule, law, mixing = _hashed({"config": fixed}), config.mix.schedule, None, ""
    keys = []
    for epoch in range(config.epochs):
        if (now := schedule.law_at(epoch)) is not law:
            law, mixing = now, json.dumps(_with_one_spelling(_mixing_of(config.mix, now)))
        key = hashlib.sha256(f"{key} {mixing}".encode()).hexdigest()[:32]
        keys.append(key)
    return tuple(keys)


def _mixing_of(mix: MixConfig, law: Law) -> Any:
    return "erm" if law == Erm() else [spell_law(law), mix.lam_scope, mix.partner]


def _keyed(config: TrainConfig) -> dict[str, Any]:
    if config.data.name == "image-folder" and config.data.digest is None:
        raise ValueError(
            "`an image-folder has a digest before it has a key` must hold, "
            f"got (data.folder={config.data.folder!r}); see folders.folder_digest."
        )
    flat = flatten(config)
    del flat["data.folder"]
    return flat


def _hashed(content: Mapping[str, Any]) -> str:
    content = _with_one_spelling({"numerics": NUMERICS_VERSION, **content})
    canonical = json.dumps(content, sort_keys=True, allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()[:32]


def _with_one_spelling(value: Any) -> Any:
    """Return the value with 1.0 as 1, so that an integer given for a float makes no new key."""
    match value:
        case str():
            return value
        case float() if value.is_integer():
            return int(value)
        case dict():
            return {key: _with_one_spelling(part) for key, part in value.items()}
        case list() | tuple():
            return [_with_one_spelling(part) for part in value]
        case _:
            return value


def _require(holds: bool, rule: str, node: Any, *names: str) -> None:
    if not holds:
        values = ", ".join(f"{name}={getattr(node, name)!r}" for name in names)
        raise ValueError(f"`{rule}` must hold, got ({values}).")
