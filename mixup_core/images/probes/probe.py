"""Probe: what a run measures of itself beside its errors; an open choice, one member per file."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from mixup_core.problem import Metric
from mixup_core.tree.catalogue import Catalogue
from mixup_core.tree.checked import Checked
from mixup_core.tree.limits import Count

if TYPE_CHECKING:
    from mixup_core.images.probes.subject import Subject


@dataclass(frozen=True, kw_only=True, slots=True)
class Probe(Checked, ABC):
    """Measures the network in evaluation mode after some epochs; changes nothing in training.

    What a probe draws comes from streams of its own, and training images are seen unmixed (but for
    `MixupLoss`, `GradientNorm` and `MeanGradientNorm`) and not augmented. The file of a probe is
    read when a study is: it imports torch where it computes.
    """

    catalogue: ClassVar[Catalogue["Probe"]] = Catalogue("probe")

    tag: ClassVar[str]
    """Name of the probe in study files."""
    metrics: ClassVar[Mapping[str, Metric]]
    """Metrics that it records, in the order of columns."""
    views: ClassVar[Literal["single", "concat"] | None] = None
    """The only views that it is defined for; None: both."""

    is_of_evaluation: ClassVar[bool] = False
    """True if it reads the logits of an evaluation, and so has no `every` of its own."""

    every: Count | None = None
    """Epochs from one measurement to the next; it divides `epochs`. None: `eval_every`."""

    @abstractmethod
    def measure(self, subject: "Subject") -> dict[str, float]:
        """Return the values of some or all of `metrics`, measured after an epoch."""
