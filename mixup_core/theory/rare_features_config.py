"""RareFeaturesConfig: configuration of a run of the problem `rare-features`."""

from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Literal

from mixup_core.config.checked import Checked
from mixup_core.config.limits import Count, NonNegative, Positive, Range, Share, Whole
from mixup_core.laws import Erm, Law
from mixup_core.laws.schedules import Easy, EasyHardEasy, Hard, epoch_after
from mixup_core.problem import Seed
from mixup_core.rules import require
from mixup_core.theory.operations import PatchLinear, PatchOperation

NUM_FEATURES = 4
"""Number of features: v, u (common) and v', u' (rare). The first four coordinates of a patch are
its components along them.
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class RareFeaturesConfig(Checked):
    """Configuration of a network trained on points with a common or a rare feature."""

    problem: ClassVar = "rare-features"

    law: Law = field(default_factory=Erm)
    """Law of the weight lam, drawn for each point in each step."""
    switch_epoch: Whole | None = None
    """First record (from 0) trained under `law_after`, at most `epochs`; None: the law never
    switches.
    """
    law_after: Law = field(default_factory=Erm)
    """Law after the switch; unused without a switch."""
    schedule: Easy | Hard | EasyHardEasy | None = None
    """Schedule that changes the law from record to record, instead of `law`; None: no schedule."""
    operation: PatchOperation = field(default_factory=PatchLinear)
    """Operation that mixes two points by the weight lam."""
    keep: Literal["all", "low", "high"] = "all"
    """Mixed points used for training: `low` uses those on which the network's loss is at least the
    teacher's, `high` the others, `all` every point, without a teacher. Gradients are divided by the
    number of all points, used or not.
    """
    warm_up: Share = 0.25
    """Fraction of the records, from the first on, in which all points are used, whatever `keep` is.
    """
    teacher_scale: Positive = 4.0
    """Logit that the teacher gives to the correct class of a point with one feature."""
    points: Annotated[int, Range(2)] = 100
    """Number of points, n in the source."""
    dimension: Annotated[int, Range(NUM_FEATURES, ends="(]")] = 500
    """Number of coordinates of a patch, d in the source."""
    patches: Annotated[int, Range(2)] = 4
    """Number of patches of a point, P in the source."""
    rarity: Share = 0.1
    """Fraction rho of points with a rare feature."""
    noise_sd: Positive = 0.21
    """Standard deviation sigma of the Gaussian noise."""
    noise_features: Whole = 1
    """Number b of patches of feature noise in each point; below `patches`."""
    noise_scale: NonNegative = 0.05
    """Length a of the vector in a patch of feature noise; a feature has the length 1."""
    neurons: Count = 5
    """Number m of neurons of each class."""
    initial_sd: Positive = 0.01
    """Standard deviation of each initial weight."""
    test_points: Count = 1000
    """Number of test points with a common feature, and also of those with a rare feature."""
    lr: Positive = 0.2
    """Step size of gradient descent."""
    steps_per_epoch: Count = 500
    """Number of steps between two records."""
    epochs: Count = 16
    """Number of records of a run."""
    seed: Seed = 0
    """Seed of the points, the initial weights and the mixing."""

    def check(self) -> None:
        switch = self.switch_epoch
        within = switch is None or switch <= self.epochs
        require(within, "switch_epoch <= epochs", self, "switch_epoch", "epochs")
        has_use = switch is not None or not self.law_after.mixes
        require(has_use, "law_after needs a switch_epoch", self, "switch_epoch", "law_after")
        is_one = self.schedule is None or not self.law.mixes
        require(is_one, "law must be left out if schedule is set", self, "schedule", "law")
        fits = self.noise_features < self.patches
        require(fits, "noise_features < patches", self, "noise_features", "patches")

    def law_at(self, epoch: int) -> Law:
        """Return the law of lam in the steps before a record; `epoch` is its number, from 0."""
        if self.switch_epoch is not None and epoch >= self.switch_epoch:
            return self.law_after
        return self.law if self.schedule is None else self.schedule.law_at(epoch, self.epochs)

    def kept_at(self, epoch: int) -> Literal["all", "low", "high"]:
        """Return the mixed points that are trained on before a record: `all`, or `keep`."""
        is_plain = epoch < epoch_after(self.warm_up, self.epochs) or not self.law_at(epoch).mixes
        return "all" if is_plain else self.keep
