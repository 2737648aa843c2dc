"""Probe: base class of measurements of a network; plugins may subclass it."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from mixup_core.config.catalogue import Catalogue
from mixup_core.config.checked import Checked
from mixup_core.config.limits import Count
from mixup_core.problem import Metric

if TYPE_CHECKING:
    from mixup_core.images.epoch import Planned
    from mixup_core.images.probes.subject import Subject
else:  # at run time, these types stand for `Any`
    Subject = Planned = Any

__all__ = ["Planned", "Probe", "Subject"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Probe(Checked, ABC):
    """Base class of measurements made after some epochs, with the network in evaluation mode.

    A probe does not affect training: it draws from random streams that training does not use. It
    gets training images without augmentation, unmixed, or mixed if it calls `Subject.mixed`. The
    file of a probe is imported whenever a study is read, so import torch inside the methods.

    Example:
        >>> from dataclasses import dataclass
        >>> from mixsweep.plugins import Metric, Probe
        >>> @dataclass(frozen=True, kw_only=True, slots=True)
        ... class LargestLogit(Probe):
        ...     tag = "largest-logit"
        ...     metrics = {"train/largest_logit": Metric(label="largest logit")}
        ...     def measure(self, subject):
        ...         return {"train/largest_logit": float(subject.outputs()[0].max())}
        >>> LargestLogit(every=5)
        LargestLogit(every=5)
    """

    catalogue: ClassVar[Catalogue["Probe"]] = Catalogue("probe")

    tag: ClassVar[str]
    """Name of the probe in study files."""
    metrics: ClassVar[Mapping[str, Metric]]
    """Metrics that the probe records, in the order of table columns."""
    views: ClassVar[Literal["single", "concat"] | None] = None
    """The only kind of `data.views` for which the probe is defined; None: all kinds."""

    is_of_evaluation: ClassVar[bool] = False
    """True if the probe uses `Subject.evaluated`, the logits of validation and test images. These
    exist only after an evaluation, so such a probe cannot have its own `every`. A run can have no
    test or no validation images, so loop over the items of `evaluated`.
    """

    every: Count | None = None
    """Number of epochs between measurements; must divide `epochs`. None: `eval_every`."""

    def lacks(self, planned: "Planned", metric: str) -> str | None:
        """Return a message that says what to set if an epoch does not record a metric; else None.

        This method is called when a study is read, if a claim or headline needs the metric, and
        after each epoch in which the probe is due: `measure` is not called if no metric is
        recorded. Missing images (`test/*`, `val/*`) need no message. By default it returns None.

        Args:
            planned: The epoch as it is known before training: `planned.config`, with this probe;
                `planned.how`, the settings of the epoch; `planned.info`, sizes of the dataset;
                `planned.labels(split)`, labels of `val` or `test` images, or None.
            metric: A name in `metrics`.

        Example:
            >>> from mixup_core.images.config import TrainConfig
            >>> from mixup_core.images.probes.filter_scores import FilterScores
            >>> from mixup_core.images.data.sets.digits import DATASET
            >>> from mixup_core.images.epoch import Planned
            >>> config = TrainConfig(epochs=1, batch_size=8)
            >>> planned = Planned(config=config, epoch=0, info=DATASET.info)
            >>> FilterScores().lacks(planned, "filter/low_fraction")
            'the run has no teacher; set objective to filter'
        """
        return None

    @abstractmethod
    def measure(self, subject: "Subject") -> dict[str, float]:
        """Measure the network after an epoch; return values of some or all `metrics`, by name.

        Training calls this method after every epoch in which the probe is due (see `every`).

        Args:
            subject: The network and the images. `subject.outputs()` returns logits and labels of
                the training images. `subject.evaluated` contains the logits of validation and test
                images, whose labels are `subject.held_out[split].labels`.

        Example:
            >>> from types import SimpleNamespace
            >>> import torch
            >>> from mixup_core.images.probes.norms import WeightNorm
            >>> network = torch.nn.Linear(2, 1, bias=False)
            >>> network.weight.data = torch.tensor([[3.0, 4.0]])
            >>> WeightNorm().measure(SimpleNamespace(network=network))
            {'train/weight_norm': 5.0}
        """
