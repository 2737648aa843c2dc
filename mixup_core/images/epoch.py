"""Epoch: the settings of training that can differ between epochs, and those that runs share."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal, Protocol

from mixup_core.arrays import Ints, Tensor
from mixup_core.config.catalogue import cached_until_growth
from mixup_core.config.written_forms import spelled
from mixup_core.images.data.data_config import DataConfig
from mixup_core.images.data.facts import DatasetInfo
from mixup_core.images.losses import Loss
from mixup_core.images.objectives.objective import Objective, Plain
from mixup_core.laws import Erm, Law
from mixup_core.mixing.linear import Linear
from mixup_core.mixing.operation import Operation
from mixup_core.mixing.partners import FromDataset, Partner
from mixup_core.seeding import Purpose, Seeds

# Frozen: these purposes, because draws depend on them. After a change, new runs differ from stored
# runs of the same key; tests/golden/test_draws.py fails.
MIXING_STREAMS: Mapping[str, Purpose] = {
    "mixing": "mixing", "choice": "mixing choice", "operation": "mixing operation",
    "second": "second mixing", "label": "label mixing",
}  # fmt: skip
"""Random streams of an epoch's mixing, by kind of draw. Probes use others."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Epoch:
    """All settings that decide one epoch of training.

    They enter the stage key, the hash that names the stored state after a run's first epochs.

    Training and probes read this object instead of `config.mix` and `config.objective`, so that
    nothing can change an epoch without changing its key. A field enters the key only if it differs
    from its default. The default of a new field must therefore keep the old behaviour.
    """

    # Frozen: each field name and default in this file. After a change, stored results are not found
    # or get another meaning; tests/golden/test_keys.py fails.
    law: Law = field(default_factory=Erm)
    """Law of the mixing weight in this epoch."""
    lam_scope: Literal["batch", "sample"] = "batch"
    """Value of `mix.lam_scope`; the default if nothing is mixed."""
    partner: Partner = field(default_factory=FromDataset)
    """Value of `mix.partner`; the default if nothing is mixed, as for the fields below."""
    operation: Operation = field(default_factory=Linear)
    """Value of `mix.operation`."""
    probability: float = 1.0
    """Value of `mix.probability`."""
    second: Operation | None = None
    """Value of `mix.second`."""
    second_law: Law | None = None
    """Value of `mix.second_law`."""
    second_probability: float = 0.5
    """Value of `mix.second_probability`."""
    label_law: Law | None = None
    """Value of `mix.label_law`."""
    objective: Objective = field(default_factory=Plain)
    """Objective in this epoch."""
    rate: Any = None
    """Settings that determine the factors of the learning rate, as JSON; None if all factors are 1.
    """

    @property
    def is_mixed(self) -> bool:
        """True if images of this epoch are mixed with partners."""
        return self.law.mixes

    def lacks_floor(self, loss: Loss) -> str | None:
        """Return why the infimum of the mean loss on mixed images is unknown; None if it is known.

        The text says what to set. It is asked when a study is read, and again after each epoch.
        """
        known = "no lower bound of the mixed loss is known"
        if not self.operation.has_linear_floor:
            return f"{known} for the operation {self.operation.tag}; set mix.operation: linear"
        if self.second is not None:
            return f"{known} for two operations; leave mix.second out"
        if self.label_law is not None:
            return f"{known} for labels with a law of their own; leave mix.label_law out"
        if self.partner.pairing is None:
            return f"{known} for partners drawn as `{self.partner.tag}`; set mix.partner: dataset"
        return None if loss.lacks_floor is None else f"{known} {loss.lacks_floor}"

    def lacks_excess(self, loss: Loss) -> str | None:
        """Return why the infimum of the mean objective is unknown; None if it is known."""
        if (reason := self.lacks_floor(loss)) is not None:
            return reason
        if self.objective.floor(0.0) is not None:
            return None
        return f"no lower bound of the objective {self.objective.tag} is known"

    def floor(self, loss: Loss, labels: "Tensor", batch_size: int) -> float | None:
        """Return the infimum over all classifiers of the mean loss on mixed images."""
        pairing = self.partner.pairing
        if pairing is None or self.lacks_floor(loss) is not None:
            return None
        return self.probability * loss.floor(self.law, labels, pairing, batch_size)

    def objective_floor(self, loss: Loss, labels: "Tensor", batch_size: int) -> float | None:
        """Return the infimum over all classifiers of the mean objective; None if it is unknown."""
        if self.lacks_excess(loss) is not None:
            return None
        return self.objective.floor(self.floor(loss, labels, batch_size) or 0.0)

    @property
    def key(self) -> Any:
        """The epoch's settings as JSON; they enter stage keys (hashes that name stored states)."""
        return _key(self)


@cached_until_growth
def _key(epoch: Epoch) -> Any:
    """Return `Epoch.key`, cached because most epochs of a run are equal."""
    law = spelled(epoch.law, brief=True)
    partner = spelled(epoch.partner, brief=True)
    mixing = [law, epoch.lam_scope, partner] if epoch.is_mixed else law
    usual = Epoch()
    beyond = {
        part.name: spelled(getattr(epoch, part.name), brief=True)
        for part in fields(epoch)
        if part.name not in {"law", "lam_scope", "partner"}
        and getattr(epoch, part.name) != getattr(usual, part.name)
    }
    return {"mixing": mixing, **beyond} if beyond else mixing


class RunSettings(Protocol):
    """Interface of the settings of a run that its batches and probes use."""

    @property
    def data(self) -> DataConfig:
        """Settings of the dataset, its validation images and its augmentation."""

    @property
    def objective(self) -> Objective:
        """Objective that the study file names; that of an epoch is `in_epoch(epoch).objective`."""

    @property
    def loss(self) -> Loss:
        """Loss of an image with a mixed label."""

    @property
    def batch_size(self) -> int:
        """Number of images per training step."""

    @property
    def precision(self) -> Literal["float32", "tf32", "bfloat16"]:
        """Number format in which the network computes."""

    @property
    def seeds(self) -> int | Seeds:
        """Seed of the run's random streams; `Seeds` if one of them has a seed of its own."""

    def in_epoch(self, epoch: int) -> Epoch:
        """Return the settings of a 0-based epoch, such as its mixing law and its objective."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Planned:
    """An epoch of a run as it is known before training, from the settings and the dataset."""

    config: RunSettings
    epoch: int
    """The epoch, 0-based."""
    info: DatasetInfo
    """Sizes and classes of the dataset."""
    labels: "Callable[[str], Ints | None]" = lambda _: None
    """Function that returns the labels of the images of a split, `val` or `test`; None if they are
    unknown. They are known only when a study is read, and only if they can be read quickly.
    """

    @property
    def how(self) -> Epoch:
        """Training settings of the epoch: mixing law, operation, objective."""
        return self.config.in_epoch(self.epoch)

    @property
    def num_images(self) -> int:
        """Number of training images in one epoch."""
        return self.config.data.num_images(self.info)
