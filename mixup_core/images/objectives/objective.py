"""Objective: base class of functions that a training step minimises; and the default, Plain."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from mixup_core.arrays import Tensor
from mixup_core.config.catalogue import Catalogue
from mixup_core.config.checked import Checked
from mixup_core.laws import Law
from mixup_core.problem import Metric


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Minimised:
    """The result of evaluating an objective on a batch: the loss and other measurements.

    Example:
        >>> import torch
        >>> from mixsweep.plugins import Minimised
        >>> kept = {"kept_fraction": torch.tensor(0.75)}
        >>> result = Minimised(loss=torch.tensor(0.5), measured=kept)
        >>> list(result.measured)  # recorded as train/kept_fraction
        ['kept_fraction']
    """

    loss: "Tensor"
    """The value to minimise, (), float32."""
    measured: "Mapping[str, Tensor]" = field(default_factory=dict)
    """Other means over the batch, each (), by name; recorded as `train/NAME`."""


if TYPE_CHECKING:
    from mixup_core.images.forward import Batch, Forward
    from mixup_core.images.losses import Loss
else:  # at run time, these types stand for `Any`
    Batch = Forward = Loss = Any

__all__ = ["Batch", "Forward", "Loss", "Objective"]


class Objective(Checked, ABC):
    """Base class of objectives: compute the value that a training step minimises on a mixed batch.

    The file of an objective is imported whenever a study is read, so import torch inside the
    methods.

    Example:
        >>> from dataclasses import dataclass
        >>> from mixsweep.plugins import Metric, Minimised, Objective
        >>> @dataclass(frozen=True, kw_only=True, slots=True)
        ... class Largest(Objective):
        ...     tag = "largest"
        ...     metrics = {"train/mean_loss": Metric(label="mean loss", unit="nats")}
        ...     def on(self, batch, student, loss, teacher):
        ...         losses = batch.losses(batch.logits(student), loss)
        ...         mean = losses.mean().detach()
        ...         return Minimised(loss=losses.max(), measured={"mean_loss": mean})
        >>> Largest().floor(0.5) is None  # the infimum is not known
        True
    """

    __slots__ = ()

    catalogue: ClassVar[Catalogue["Objective"]] = Catalogue(
        "objective", meant={"erm": "plain", "mixup": "plain"}
    )

    tag: ClassVar[str]
    """Name of the objective in study files."""
    metrics: ClassVar[Mapping[str, Metric]] = {}
    """Metrics that the objective records besides the loss, in the order of table columns."""
    has_to_mix: ClassVar[bool] = False
    """True if the objective needs a law that mixes (not ERM)."""
    must_not_mix: ClassVar[bool] = False
    """True if the objective needs the law `erm` in all epochs."""
    has_to_see_test: ClassVar[bool] = False
    """True if the objective needs test images among the training images (`data.oracle`)."""
    is_linear: ClassVar[bool] = False
    """True if the objective mixes by itself, linearly, so that `mix.operation` has no effect."""

    def in_epoch(self, law: Law, epoch: int, epochs: int) -> "tuple[Law, Objective]":
        """Return the mixing law and the objective that a run uses in a 0-based epoch.

        Training, probes and stage keys use the result. By default nothing is changed.

        Args:
            law: Law that `mix` sets for the epoch.
            epoch: The epoch, 0-based.
            epochs: Number of epochs of the run.

        Example:
            >>> from mixup_core.images.objectives.objective import Plain
            >>> from mixup_core.laws import Midpoint
            >>> Plain().in_epoch(Midpoint(), epoch=3, epochs=10)
            (Midpoint(), Plain())
        """
        return law, self

    @abstractmethod
    def on(
        self, batch: "Batch", student: "Forward", loss: "Loss", teacher: "Forward | None"
    ) -> Minimised:
        """Return the value to minimise on a batch, and further measurements.

        Each training step calls this method, and so do probes that measure gradients.

        Args:
            batch: Mixed images with labels and weights.
            student: The network in training.
            loss: Loss function of single images, such as cross entropy.
            teacher: The teacher's network, for objectives that have one.

        Example:
            >>> import torch
            >>> from mixup_core.images.forward import Batch
            >>> from mixup_core.images.losses import CrossEntropy
            >>> from mixup_core.images.objectives.objective import Plain
            >>> labels = torch.tensor([0, 1])
            >>> batch = Batch(
            ...     mixed=torch.zeros(2, 10), unmixed=None, lam=torch.ones(2),
            ...     labels=labels, partner_labels=labels,
            ... )
            >>> Plain().on(batch, torch.nn.Identity(), CrossEntropy(), None).loss  # ln 10
            tensor(2.3026)
        """

    def floor(self, mixed_floor: float) -> float | None:
        """Return the infimum over all classifiers of the mean objective; None if it is unknown.

        Training subtracts it from the mean loss of an epoch to record `train/excess_loss`.

        Args:
            mixed_floor: Infimum of the mean loss of the mixed images.

        Example:
            >>> from mixup_core.images.objectives.objective import Plain
            >>> Plain().floor(0.45)
            0.45
        """
        return None


@dataclass(frozen=True, kw_only=True, slots=True)
class Guided(Objective):
    """Base class of objectives with a teacher: a run of another arm's configuration.

    Example:
        >>> from dataclasses import dataclass
        >>> from mixsweep.plugins import Guided, Minimised
        >>> @dataclass(frozen=True, kw_only=True, slots=True)
        ... class Imitation(Guided):
        ...     tag = "imitation"
        ...     def on(self, batch, student, loss, teacher):
        ...         difference = batch.logits(student) - batch.logits(teacher).detach()
        ...         return Minimised(loss=difference.square().mean())
        >>> Imitation(teacher="erm").teacher
        'erm'
    """

    teacher: str
    """Name of the arm whose configuration the teacher has. The teacher is trained first, at the
    same seed and on the same images, but with `as_teacher: true`: with a start, batches and mixing
    of its own. The name does not enter keys.
    """
    teacher_key: str | None = None
    """Final stage key of the teacher, filled in when a study is read. It replaces `teacher` in
    keys.
    """
    oracle: bool = False
    """True if the teacher was trained on test images (`data.oracle`). The field is checked against
    the teacher. Tables and figures mark such runs, and searches refuse them.
    """


@dataclass(frozen=True, kw_only=True, slots=True)
class Plain(Objective):
    """Objective: mean loss of the mixed images. It is mixup, or ERM if the law does not mix.

    Example:
        In a study file: `objective: plain`.

        >>> from mixup_core.images.objectives.objective import Plain
        >>> Plain().floor(0.45)  # the infimum of the mixed loss is that of the objective
        0.45
    """

    # Frozen: each `tag`, field name, default and metric name in this file. After a change, stored
    # results are not found or get another meaning; tests/golden/test_keys.py fails.
    tag: ClassVar = "plain"

    def on(self, batch: Batch, student: Forward, loss: Loss, teacher: Forward | None) -> Minimised:
        return Minimised(loss=batch.losses(batch.logits(student), loss).mean())

    def floor(self, mixed_floor: float) -> float | None:
        return mixed_floor
