"""TrainConfig: the configuration of one run of image training, with MixConfig, that of mixing."""

from dataclasses import dataclass, field, fields
from typing import ClassVar, Literal

from mixup_core.config.checked import Checked
from mixup_core.config.limits import Count, Share, Whole
from mixup_core.images.choices.models import Model, ResNet18
from mixup_core.images.choices.optimizers import Adam, Averaging, Constant, LrSchedule, Optimizer
from mixup_core.images.data.data_config import DataConfig
from mixup_core.images.epoch import MIXING_STREAMS, Epoch
from mixup_core.images.losses import CrossEntropy, Loss
from mixup_core.images.objectives.objective import Objective, Plain
from mixup_core.images.probes.probe import Probe
from mixup_core.laws import Erm, Law
from mixup_core.laws.schedules import Schedule, epoch_after
from mixup_core.mixing.linear import Linear
from mixup_core.mixing.operation import Operation
from mixup_core.mixing.partners import FromDataset, Partner
from mixup_core.problem import Seed
from mixup_core.rules import RuleError, require, require_one
from mixup_core.seeding import Purpose, Seeds


@dataclass(frozen=True, kw_only=True, slots=True)
class MixConfig(Checked):
    """Settings for mixing images and labels in each epoch."""

    law: Law = field(default_factory=Erm)
    """Law of lam in the first epochs."""
    schedule: Schedule | None = None
    """Schedule that changes the law from epoch to epoch, instead of `law`. None: no schedule."""
    switch_epoch: Whole | None = None
    """First epoch (0-based) trained under `law_after`. None: never."""
    switch_fraction: Share | None = None
    """Fraction of the epochs before the switch, rounded to a whole epoch; instead of
    `switch_epoch`.
    """
    law_after: Law = field(default_factory=Erm)
    """Law from the switch on. It has no effect without a switch."""
    lam_scope: Literal["batch", "sample"] = "batch"
    """`batch`: one weight for all images of a batch. `sample`: one weight per image."""
    partner: Partner = field(default_factory=FromDataset)
    """Rule that chooses the partner of each image."""
    operation: Operation = field(default_factory=Linear)
    """Operation that mixes an image with its partner."""
    probability: Share = 1.0
    """Probability that a batch is mixed; other batches are used as they are."""
    second: Operation | None = None
    """Another operation that replaces `operation` in some batches."""
    second_law: Law | None = None
    """Law of lam in the batches of the second operation. None: the same law as for the first."""
    second_probability: Share = 0.5
    """Probability that a mixed batch uses the second operation, if there is one."""
    label_law: Law | None = None
    """Law of the label's weight, drawn independently of the image's weight. None: the operation
    determines the label's weight.
    """

    def check(self) -> None:
        require_one(self, "switch_fraction", "switch_epoch")
        is_reached = (self.switch_epoch, self.switch_fraction) != (None, None)
        rule = "law_after needs switch_epoch or switch_fraction, which say when it begins"
        require(is_reached or not self.law_after.mixes, rule, self, "switch_epoch", "law_after")
        rule = "mix.law must be left out if mix.schedule is given, which sets the law of each epoch"
        require(self.schedule is None or not self.law.mixes, rule, self, "schedule", "law")
        has_second = self.second is not None or self.second_law is None
        rule = "second_law needs `second`, a second operation"
        require(has_second, rule, self, "second_law", "second")

    def law_at(self, epoch: int, epochs: int) -> Law:
        """Return the law of lam in a 0-based epoch of a run with `epochs` epochs."""
        switch_epoch = self.switch_epoch
        if self.switch_fraction is not None:
            switch_epoch = epoch_after(self.switch_fraction, epochs)
        if switch_epoch is not None and epoch >= switch_epoch:
            return self.law_after
        return self.law if self.schedule is None else self.schedule.law_at(epoch, epochs)


VariationSource = Literal[
    "subset", "label-noise", "pairing", "initial-weights", "order", "augmentation",
    "view-scaling", "mixing", "rounding",
]  # fmt: skip
"""Name of a source of randomness that a study can vary alone."""

# Frozen: these purposes and `SECOND_SEED`, because draws depend on them. After a change, new runs
# differ from stored runs of the same key; tests/golden/test_draws.py fails.
VARIED: dict[VariationSource, tuple[Purpose, ...]] = {
    "subset": ("training subset",),
    "label-noise": ("label noise",),
    "pairing": ("class pairing", "view partners"),
    "initial-weights": ("initial weights",),
    "order": ("batch order",),
    "augmentation": ("augmentation",),
    "view-scaling": ("view scaling",),
    "mixing": tuple(MIXING_STREAMS.values()),
    "rounding": ("rounding",),
}
"""Random streams that belong to each source of randomness."""

OF_DATA: frozenset[VariationSource] = frozenset({"subset", "label-noise", "pairing"})
"""Sources of randomness that choose the training data; a run and its teacher share them."""

_OF_EACH_EPOCH = [
    part.name for part in fields(Epoch) if part.name in MixConfig.__slots__ and part.name != "law"
]
"""Names of the fields of `mix` that an epoch has as they are; its law depends on the epoch."""

SECOND_SEED = 2**63
"""Number that is added to a run's seed to get the second seed of `TrainConfig.redraw`; larger than
any run's seed.
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainConfig(Checked):
    """Configuration of one run of image training, with its seed.

    It determines every number that the run records.

    Example:
        >>> from mixup_core.images.choices.models import Mlp
        >>> from mixup_core.images.config import DataConfig, MixConfig, TrainConfig
        >>> from mixup_core.laws import Beta
        >>> config = TrainConfig(
        ...     data=DataConfig(name="digits"), model=Mlp(), mix=MixConfig(law=Beta(alpha=1.0)),
        ...     epochs=10, batch_size=128,
        ... )
        >>> config.mix.law.caption, config.optimizer.lr
        ('Beta(1, 1)', 0.001)
    """

    # Frozen: each `problem`, field name and default in this file. After a change, stored results
    # are not found or get another meaning; tests/golden/test_keys.py fails.
    problem: ClassVar = "images"

    data: DataConfig = field(default_factory=DataConfig)
    """Dataset, its splits, and changes of its images and labels."""
    model: Model = field(default_factory=ResNet18)
    """Network that is trained."""
    optimizer: Optimizer = field(default_factory=Adam)
    """Optimizer, which computes the change of the weights in each step from the gradient."""
    lr_schedule: LrSchedule = field(default_factory=Constant)
    """Schedule of the learning rate: the factor that multiplies `optimizer.lr` at each step."""
    averaging: Averaging | None = None
    """Moving average of the weights, evaluated in addition to the last weights. None: no average.
    """
    mix: MixConfig = field(default_factory=MixConfig)
    """Mixing of images and labels: the laws of the weight, the operation and the partners."""
    objective: Objective = field(default_factory=Plain)
    """Function that a training step minimises on a mixed batch."""
    loss: Loss = field(default_factory=CrossEntropy)
    """Loss of an image with a mixed label."""
    epochs: Count
    """Number of passes over the training images."""
    batch_size: Count
    """Number of images per step. The last batch of an epoch can be smaller; it is never dropped."""
    eval_every: Count = 1
    """Epochs between measurements of `val/*` and `test/*`. It must divide `epochs`, so that the
    last epoch is measured and a shorter run is a prefix of a longer one.
    """
    probes: tuple[Probe, ...] = ()
    """Additional measurements, each at most once: a name, or a name with the number of epochs
    between measurements, `{el2n: 5}`.
    """
    precision: Literal["float32", "tf32", "bfloat16"] = "float32"
    """Arithmetic of the network; weights and loss are always float32. On a GPU, `float32` means
    IEEE single precision, in convolutions too; `tf32` is faster, with a mantissa of 10 bits. On a
    CPU both are the same. `bfloat16` uses autocast.
    """
    deterministic: bool = False
    """True: use only kernels that give the same bits each time, so that a run repeats and resumes
    bit for bit on one kind of GPU. This is slower, and an operation without such a kernel fails. A
    CPU with one thread is always deterministic; but there, too, the field changes the run's keys.
    """
    vary: Literal["all", VariationSource] = "all"
    """Source of randomness that the seed varies; all others are drawn as at seed 0, so that only
    this source differs between seeds. `rounding` moves one initial weight, chosen by the seed, to
    the next float32 number. `all`: the seed varies everything.
    """
    redraw: Literal["nothing", "all", VariationSource] = "nothing"
    """Source of randomness that is drawn by a second seed, computed from `seed`; all others are
    drawn by `seed` itself. Runs at one seed with `nothing`, `all` and single sources form a crossed
    design. See `vary` for the sources.
    """
    as_teacher: bool = False
    """True: draw initial weights, batches, augmentation and mixing by a third seed, computed from
    `seed`; images, labels and class pairing stay those of `seed`. Teachers train so: otherwise a
    run would be a copy of its teacher until the teacher changes its training.
    """
    seed: Seed = 0
    """Seed of the run's random draws."""

    def check(self) -> None:
        is_divisor = self.epochs % self.eval_every == 0
        rule = "eval_every must divide epochs, so that the last epoch is evaluated"
        require(is_divisor, rule, self, "eval_every", "epochs")
        is_one = self.vary == "all" or self.redraw == "nothing"
        require(is_one, "vary must be `all` if redraw names a source", self, "redraw", "vary")
        if self.data.folds is not None and (self.vary, self.redraw) != ("all", "nothing"):
            rule = (
                "data.folds needs `vary: all` and `redraw: nothing`: the seed also chooses the fold"
            )
            values = {"data.folds": self.data.folds, "vary": self.vary, "redraw": self.redraw}
            raise RuleError(rule, values)
        self._check_probes()
        mix, warm_up = self.mix, self.lr_schedule.warm_up
        last = 0 if mix.schedule is None else mix.schedule.last_change
        for path, epoch, most, rule in (
            ("mix.switch_epoch", mix.switch_epoch, self.epochs, "mix.switch_epoch <= epochs"),
            ("mix.schedule.phases", last, self.epochs - 1,
             "each `until` in mix.schedule.phases must be below epochs"),
            ("lr_schedule.warm_up", warm_up, self.epochs - 1, "lr_schedule.warm_up < epochs"),
        ):  # fmt: skip
            if epoch is not None and epoch > most:
                raise RuleError(rule, {path: epoch, "epochs": self.epochs})
        for path, operation in (("operation", mix.operation), ("second", mix.second)):
            deepest = 0 if operation is None else operation.deepest_layer
            if deepest > self.model.depth:
                rule = (
                    f"mix.{path} must mix hidden layers of the model, which has {self.model.depth}"
                )
                raise RuleError(rule, {f"mix.{path}": deepest, "model.name": self.model.name})
        self._check_objective()

    def _check_objective(self) -> None:
        mix, objective, tag = self.mix, self.objective, self.objective.tag
        mixes = mix.law.mixes or mix.law_after.mixes or mix.schedule is not None
        law = "schedule" if mix.schedule is not None else str(mix.law)
        is_plain = (mix.operation, mix.second, mix.label_law) == (Linear(), None, None)
        for is_broken, needs, path, value in (
            (objective.has_to_mix and not mixes, "a mix.law that mixes", "mix.law", "erm"),
            (objective.must_not_mix and mixes, "`mix.law: erm`", "mix.law", law),
            (objective.has_to_see_test and not self.data.oracle,
             "test images to train on: set `data.oracle: true`", "data.oracle", False),
            (objective.is_linear and not is_plain,
             "`mix.operation: linear`, without mix.second and mix.label_law", "mix.operation",
             mix.operation.tag),
        ):  # fmt: skip
            if is_broken:
                rule = f"the objective {tag} needs {needs}"
                raise RuleError(rule, {"objective": tag, path: value})

    def _check_probes(self) -> None:
        tags = [probe.tag for probe in self.probes]
        for index, probe in enumerate(self.probes):
            at = {f"probes.{index}": probe.tag}
            if tags.index(probe.tag) < index:
                raise RuleError("each probe must be listed only once", at)
            if probe.views not in {None, self.data.views}:
                raise RuleError(
                    f"the probe {probe.tag} needs `data.views: {probe.views}`",
                    at | {"data.views": self.data.views},
                )
            if probe.is_of_evaluation and probe.every is not None:
                rule = f"the probe {probe.tag} must not set `every`: each evaluation measures it"
                raise RuleError(rule, {f"probes.{index}.every": probe.every})
            if probe.every is not None and self.epochs % probe.every:
                every = {f"probes.{index}.every": probe.every, "epochs": self.epochs}
                raise RuleError(
                    "`every` of a probe must divide epochs, so that it is measured at the last one",
                    every,
                )

    def law_at(self, epoch: int) -> Law:
        """Return the law of the mixing weight that `mix` sets for a 0-based epoch.

        Training uses the law of `in_epoch`, where the objective can replace this one.

        Example:
            >>> from mixup_core.images.config import MixConfig, TrainConfig
            >>> from mixup_core.laws import Midpoint
            >>> mix = MixConfig(law=Midpoint(), switch_epoch=5)
            >>> config = TrainConfig(mix=mix, epochs=10, batch_size=8)
            >>> config.law_at(4), config.law_at(5)
            (Midpoint(), Erm())
        """
        return self.mix.law_at(epoch, self.epochs)

    @property
    def seeds(self) -> int | Seeds:
        """Seed of the run's random streams.

        There are two seeds (`Seeds`) if `vary` or `redraw` names a single source of randomness,
        such as `order`. With `vary`, this source uses `seed` and all others 0; with `redraw`, this
        source uses a second seed, computed from `seed`, and all others `seed`. With `as_teacher`,
        every draw but those of the data uses a third seed.

        Example:
            >>> from mixup_core.images.config import TrainConfig
            >>> TrainConfig(epochs=1, batch_size=8, seed=3).seeds
            3
            >>> seeds = TrainConfig(epochs=1, batch_size=8, seed=3, vary="order").seeds
            >>> seeds.of("batch order"), seeds.of("initial weights")
            (3, 0)
        """
        second = self.seed + SECOND_SEED
        purposes: frozenset[Purpose] = frozenset()
        own = others = self.seed
        if self.redraw == "all":
            own = others = second
        elif self.redraw != "nothing":
            own, purposes = second, frozenset(VARIED[self.redraw])
        elif self.vary != "all":
            others, purposes = 0, frozenset(VARIED[self.vary])
        apart = frozenset(
            purpose
            for source, drawn in VARIED.items()
            if self.as_teacher and source not in OF_DATA
            for purpose in drawn
        )
        if own == others and not apart:
            return own
        return Seeds(own=own, purposes=purposes, others=others, apart=apart)

    def in_epoch(self, epoch: int) -> Epoch:
        """Return the settings of a 0-based epoch, such as its mixing law and its objective.

        Example:
            >>> from mixup_core.images.config import MixConfig, TrainConfig
            >>> from mixup_core.laws import Midpoint
            >>> config = TrainConfig(mix=MixConfig(law=Midpoint()), epochs=10, batch_size=8)
            >>> config.in_epoch(0).law, config.in_epoch(0).objective
            (Midpoint(), Plain())
        """
        law, objective = self.objective.in_epoch(self.law_at(epoch), epoch, self.epochs)
        rate = self.lr_schedule.in_epoch(epoch, self.epochs)
        if not law.mixes:
            return Epoch(law=law, objective=objective, rate=rate)
        mixing = {name: getattr(self.mix, name) for name in _OF_EACH_EPOCH}
        return Epoch(law=law, objective=objective, rate=rate, **mixing)
