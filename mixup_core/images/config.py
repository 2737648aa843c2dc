"""TrainConfig: everything that decides the numbers of one run of image training."""

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from mixup_core.images.augmentations.augmentation import Augmentation
from mixup_core.images.augmentations.unchanged import Unchanged
from mixup_core.images.choices.averaging import Averaging
from mixup_core.images.choices.models import Model, ResNet18
from mixup_core.images.choices.optimizers import Adam, Optimizer
from mixup_core.images.choices.rates import Constant, LrSchedule
from mixup_core.images.data.catalog import DATA_NAMES
from mixup_core.images.data.sets.corrupted import CORRUPTED, CORRUPTIONS, NUM_SEVERITIES
from mixup_core.images.epoch import Epoch
from mixup_core.images.losses.class_weights import ClassWeights
from mixup_core.images.losses.cross_entropy import CrossEntropy
from mixup_core.images.losses.loss import Loss, LossChoice
from mixup_core.images.objectives.objective import Objective
from mixup_core.images.objectives.plain import Plain
from mixup_core.images.probes.probe import Probe
from mixup_core.laws import Erm, Law
from mixup_core.laws.schedules import Schedule, epoch_after
from mixup_core.mixing.linear import Linear
from mixup_core.mixing.operation import Operation
from mixup_core.mixing.partners import FromDataset, Partner
from mixup_core.problem import Seed
from mixup_core.rules import RuleError, require
from mixup_core.seeding import Purpose, Seeds
from mixup_core.tree.checked import Checked
from mixup_core.tree.limits import Among, Count, Distinct, Range, Share, Whole

if TYPE_CHECKING:
    from torch import Tensor

VARIED: dict[str, tuple[Purpose, ...]] = {
    "subset": ("training subset",),
    "label-noise": ("label noise",),
    "pairing": ("class pairing", "view partners"),
    "initial-weights": ("initial weights",),
    "order": ("batch order",),
    "augmentation": ("augmentation",),
    "view-scaling": ("view scaling",),
    "mixing": (
        "mixing",
        "mixing choice",
        "mixing operation",
        "second mixing",
        "label mixing",
    ),
    "rounding": ("rounding",),
}
"""Each source of variation that a seed may vary alone, to the purposes whose draws it names."""

SECOND_SEED = 2**63
"""Added to the seed of a run, it names the draws of `redraw`; no run has so large a seed."""


@dataclass(frozen=True, kw_only=True, slots=True)
class DataConfig(Checked):
    """The images of a run, and how they are presented."""

    name: Annotated[str, Among(DATA_NAMES)] = "fashion-mnist"
    """A data set of the catalogue, or `image-folder`."""
    views: Literal["single", "concat", "added", "orthogonal"] = "single"
    """`concat` is the channel-concatenated multi-view benchmark (see `mixup_core.images.views`).
    `added` adds both views in place of that, and in `orthogonal` the second view is one random
    image for each class, orthogonal to those of the others."""
    num_train: Count | None = None
    """Size of a random training subset, drawn per seed; None takes all images."""
    train_fraction: Annotated[float, Range(0, 1, "(]")] | None = None
    """In the place of `num_train`: the subset as a fraction of the images at hand, to the nearest
    image."""
    balanced: bool = False
    """True if a subset holds as many images of each class, but for a remainder."""
    label_noise: Share = 0.0
    """Probability that a training label is replaced by another class, each as likely; drawn per
    seed. Test labels stay unless `noise_in_test`, and those held out for `val/*` unless
    `noise_in_val`."""
    noise_to: Literal["any", "one"] = "any"
    """Class that a wrong label names: any other, each as likely, or one other class for each
    class, the same at every seed. `one` is the noise of arXiv:2306.00740's code."""
    noise_in_val: bool = False
    """True if labels held out for `val/*` are replaced as well, the same ones at every seed, as
    where the noise belongs to the distribution; test labels stay unless `noise_in_test`."""
    noise_in_test: bool = False
    """True if test labels are replaced as well, the same ones at every seed: classes that overlap
    do so in the test images too. Test error then has a floor, about `label_noise`."""
    augment: Augmentation = field(default_factory=Unchanged)
    """Augmentation of each training image at each access."""
    corruptions: Annotated[tuple[Annotated[str, Among(CORRUPTIONS)], ...], Distinct()] = ()
    """Corrupted test images that are measured beside `test/*`, each as `test_<corruption>/*` and
    their mean as `test_corrupted/*`; cifar10 and cifar100 only, none without `test`."""
    severity: Annotated[int, Range(1, NUM_SEVERITIES)] | None = None
    """Severity of the corruptions; None: all five together."""
    val_size: Whole = 0
    """Training images held out for `val/*`, the same ones at every seed; 0 trains on all. Runs that
    hold out another number draw other training images at a seed, so nothing pairs them."""
    test: bool = True
    """True if test images are loaded and `test/*` is recorded. A search sets it to false."""
    oracle: bool = False
    """True if the run trains on the test images too: an upper bound and a teacher that leaks by
    design, never a result. Tables and figures say so, and a search refuses it."""
    pool: Count = 1
    """Side of the square of pixels averaged into one, after normalising; 1 keeps the image."""
    folder: str | None = None
    """`image-folder` only: directory that holds `train/<class>/*` and `test/<class>/*`."""
    image_size: Annotated[int, Range(4)] | None = None
    """Side in pixels to which images are resized (and centre-cropped if they are no squares);
    None: that of the catalogue. An `image-folder` needs one."""
    skip: Annotated[tuple[str, ...], Distinct()] | None = None
    """`image-folder` only: files that are left out, as `train/cat/3.jpg` or with `*` and `?`."""
    test_folder: Literal["test", "val", "valid", "validation"] | None = None
    """`image-folder` only: folder of the test images; None: `test`, or where there is none and the
    run is tested, `val`, `valid` or `validation`."""
    test_fraction: Annotated[float, Range(0, 1, "()")] | None = None
    """`image-folder` only: the fraction of each class in `train/` that is held out for `test/*`, at
    least one image, the same ones at every seed; for a folder without test images."""
    pixel_mean: tuple[Share, ...] | None = None
    """Mean of each channel that is subtracted, of pixels in [0, 1]; None: that of the catalogue,
    and 0.5 of an `image-folder`."""
    pixel_std: tuple[Annotated[float, Range(0, 1, "(]")], ...] | None = None
    """Standard deviation of each channel that divides; None: as `pixel_mean`."""
    normalise: Literal["given", "measured"] = "given"
    """`measured`: by mean and standard deviation of each channel of the training images as they are
    pooled, without those held out."""
    background: Literal["white", "black", "grey"] | None = None
    """`image-folder` only: the colour behind transparent pixels; None refuses a folder that has
    any. Of a folder without, it is None whatever a study file says."""
    digest: str | None = None
    """`image-folder` only: sha256 over names and contents, filled in when a study is read. It
    stands for `folder` in the keys."""

    def check(self) -> None:
        """Check the rules that join several fields.

        Raises:
            RuleError: If a value contradicts another or belongs to another data set.
        """
        require(
            self.test or not self.oracle,
            "an oracle needs test images (data.test: true)",
            self,
            "oracle",
            "test",
        )
        self._check_subset()
        is_one = self.test_folder is None or self.test_fraction is None
        require(
            is_one,
            "test_folder and test_fraction must not both be given",
            self,
            "test_fraction",
            "test_folder",
        )
        is_given = self.normalise == "given" or (self.pixel_mean, self.pixel_std) == (None, None)
        require(
            is_given,
            "pixel_mean and pixel_std need `normalise: given`",
            self,
            "normalise",
            "pixel_mean",
            "pixel_std",
        )
        has_bytes = self.pool == 1 or not self.augment.needs_bytes
        require(has_bytes, f"{self.augment.tag} needs `pool: 1`", self, "pool", "augment")
        has_any = not self.corruptions or self.name in CORRUPTED
        require(
            has_any,
            f"corruptions need name to be {' or '.join(CORRUPTED)}",
            self,
            "corruptions",
            "name",
        )
        is_apart = not (self.noise_in_test and self.corruptions)
        require(
            is_apart,
            "noise_in_test must be false beside corruptions, whose labels have no noise",
            self,
            "noise_in_test",
            "corruptions",
        )
        if self.name == "image-folder":
            require(self.folder is not None, "an image-folder needs a folder", self, "folder")
            has_size = self.image_size is not None
            require(has_size, "an image-folder needs an image_size", self, "image_size")
        else:
            for part in (
                "folder", "skip", "test_folder", "test_fraction", "background", "digest",
            ):  # fmt: skip
                belongs = f"{part} needs name to be image-folder"
                require(getattr(self, part) is None, belongs, self, part, "name")

    def _check_subset(self) -> None:
        fraction = self.train_fraction
        is_one = fraction is None or self.num_train is None
        require(
            is_one,
            "num_train and train_fraction must not both be given",
            self,
            "train_fraction",
            "num_train",
        )
        is_cut = not self.balanced or self.num_train is not None or fraction is not None
        require(
            is_cut,
            "balanced needs num_train or train_fraction",
            self,
            "balanced",
            "num_train",
            "train_fraction",
        )

    @property
    def num_stacked(self) -> int:
        """The number of views that stand along the channels."""
        return 2 if self.views in {"concat", "orthogonal"} else 1

    @property
    def pairs_classes(self) -> bool:
        """True if each training image has an image of a paired class as its second view."""
        return self.views in {"concat", "added"}

    def size_of_subset(self, available: int) -> int:
        """Return the number of training images of a run, of those at hand."""
        if self.train_fraction is not None:
            return max(1, math.floor(self.train_fraction * available + 0.5))
        return available if self.num_train is None else self.num_train

    def as_loaded(self) -> "DataConfig":
        """Return the configuration without what has an effect only after images are loaded."""
        return replace(
            self,
            num_train=None,
            train_fraction=None,
            balanced=False,
            label_noise=0.0,
            noise_to="any",
            noise_in_val=False,
            noise_in_test=False,
            augment=Unchanged(),
            views="single",
            oracle=False,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class MixConfig(Checked):
    """Mixing of images and labels, epoch by epoch."""

    law: Law = field(default_factory=Erm)
    """Law of the first epochs."""
    schedule: Schedule | None = None
    """Laws that change from epoch to epoch, in place of `law`; None: one law throughout."""
    switch_epoch: Whole | None = None
    """First epoch (0-based) trained under `law_after`; None never switches."""
    switch_fraction: Share | None = None
    """In the place of `switch_epoch`: the fraction of the epochs that comes before it, to the
    nearest epoch."""
    law_after: Law = field(default_factory=Erm)
    """Law from the switch epoch on; without one it has no meaning."""
    lam_scope: Literal["batch", "sample"] = "batch"
    """`batch`: one weight for all images of a batch; `sample`: one weight for each image."""
    partner: Partner = field(default_factory=FromDataset)
    """Source of the partners."""
    operation: Operation = field(default_factory=Linear)
    """Operation that mixes an image with its partner by their weight."""
    probability: Share = 1.0
    """With which a batch is mixed; the others are trained on as they are."""
    second: Operation | None = None
    """Another operation that takes the place of `operation` in some batches."""
    second_law: Law | None = None
    """Law of lam in the batches of the second operation; None: the law in force."""
    second_probability: Share = 0.5
    """With which a batch that is mixed has the second operation, if there is one."""
    label_law: Law | None = None
    """Law of the weight of the label, drawn apart from that of the image; None: the operation says
    what the label keeps."""

    def check(self) -> None:
        """Check the rules that join several fields.

        Raises:
            RuleError: If a switch is given twice, a second law has no switch, or both a law and a
                schedule are given.
        """
        epoch, fraction = self.switch_epoch, self.switch_fraction
        require(
            epoch is None or fraction is None,
            "switch_epoch and switch_fraction must not both be given",
            self,
            "switch_fraction",
            "switch_epoch",
        )
        require(
            epoch is not None or fraction is not None or not self.law_after.mixes,
            "law_after needs a switch_epoch",
            self,
            "switch_epoch",
            "law_after",
        )
        require(
            self.schedule is None or not self.law.mixes,
            "mix.law must be left out beside a schedule",
            self,
            "schedule",
            "law",
        )
        has_second = self.second is not None or self.second_law is None
        require(has_second, "second_law needs a second operation", self, "second_law", "second")

    def law_at(self, epoch: int, epochs: int) -> Law:
        """Return the law of a 0-based epoch of `epochs`."""
        switch_epoch = self.switch_epoch
        if self.switch_fraction is not None:
            switch_epoch = epoch_after(self.switch_fraction, epochs)
        if switch_epoch is not None and epoch >= switch_epoch:
            return self.law_after
        return self.law if self.schedule is None else self.schedule.law_at(epoch, epochs)


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainConfig(Checked):
    """One run: one configuration trained once, so one seed."""

    problem: ClassVar = "images"

    data: DataConfig = field(default_factory=DataConfig)
    model: Model = field(default_factory=ResNet18)
    optimizer: Optimizer = field(default_factory=Adam)
    lr_schedule: LrSchedule = field(default_factory=Constant)
    averaging: Averaging | None = None
    """Average of the weights that is measured beside them; None: there is none."""
    mix: MixConfig = field(default_factory=MixConfig)
    objective: Objective = field(default_factory=Plain)
    loss: LossChoice = field(default_factory=CrossEntropy)
    """Loss of an image under its mixed label."""
    class_weights: ClassWeights | None = None
    """Weight of each class in the cross entropy: each part of a mixed label has
    the weight of its class. Metrics have no weights. None: all classes count alike."""
    epochs: Count
    """Passes over the training images."""
    batch_size: Count
    """Images per step. The last batch of an epoch holds what is left; it is never dropped."""
    eval_every: Count = 1
    """`val/*` and `test/*` are measured after every `eval_every`-th epoch; it divides `epochs`, so
    the last epoch is always measured and a shorter run is a prefix of a longer one."""
    probes: tuple[Probe, ...] = ()
    """Further measurements, each at most once: a name, or a name with the number of epochs from one
    measurement to the next, `{el2n: 5}`."""
    precision: Literal["float32", "tf32", "bfloat16"] = "float32"
    """Arithmetic of the network's passes; weights and loss stay float32. On a GPU `float32` is IEEE
    in convolutions, too, and `tf32` faster, with 10 bits of mantissa; on a CPU both are the same
    computation. `bfloat16` is autocast."""
    deterministic: bool = False
    """True: only kernels that give the same bits each time, so that a run repeats and resumes bit
    for bit on one kind of GPU; slower there, and an operation without such a kernel fails. On a CPU
    with one thread every run does that, but a run with this field has another key."""
    vary: Literal[
        "all",
        "subset",
        "label-noise",
        "pairing",
        "initial-weights",
        "order",
        "augmentation",
        "view-scaling",
        "mixing",
        "rounding",
    ] = "all"
    """The one source of randomness that the seed varies, all else being drawn as at seed 0: what
    differs between seeds is then of that source alone. `rounding` moves one initial weight, which
    the seed chooses, to the next float32 number. `all`: the seed names every draw."""
    redraw: Literal[
        "nothing",
        "all",
        "subset",
        "label-noise",
        "pairing",
        "initial-weights",
        "order",
        "augmentation",
        "view-scaling",
        "mixing",
        "rounding",
    ] = "nothing"
    """The source of randomness that is drawn by a second seed, which belongs to the run's seed; all
    other sources are drawn by the run's seed. The values `nothing`, `all` and single sources at
    equal seeds make a crossed design: see `vary` for the values."""
    seed: Seed = 0
    """Names the random draws of the run."""

    def check(self) -> None:
        """Check the rules that join several fields.

        Raises:
            RuleError: If the parts contradict each other.
        """
        require(
            self.epochs % self.eval_every == 0,
            "eval_every must divide epochs",
            self,
            "eval_every",
            "epochs",
        )
        require(
            self.vary == "all" or self.redraw == "nothing",
            "vary must be all where a source is redrawn",
            self,
            "redraw",
            "vary",
        )
        self._check_probes()
        has_any = self.class_weights is None or isinstance(self.loss, CrossEntropy)
        rule = "class_weights need loss to be cross-entropy"
        require(has_any, rule, self, "class_weights", "loss")
        mix, switch_epoch = self.mix, self.mix.switch_epoch
        if switch_epoch is not None and switch_epoch > self.epochs:
            raise RuleError(
                "mix.switch_epoch <= epochs",
                {"mix.switch_epoch": switch_epoch, "epochs": self.epochs},
            )
        last = 0 if mix.schedule is None else mix.schedule.last_change
        if last >= self.epochs:
            raise RuleError(
                "mix.schedule.phases until < epochs",
                {"mix.schedule.phases": last, "epochs": self.epochs},
            )
        for path, operation in (("operation", mix.operation), ("second", mix.second)):
            deepest = 0 if operation is None else operation.deepest_layer
            if deepest > self.model.depth:
                rule = f"mix.{path} must mix one of the model's {self.model.depth} layers"
                raise RuleError(rule, {f"mix.{path}": deepest, "model.name": self.model.name})
        warm_up = self.lr_schedule.warm_up
        if warm_up >= self.epochs:
            raise RuleError(
                "lr_schedule.warm_up < epochs",
                {"lr_schedule.warm_up": warm_up, "epochs": self.epochs},
            )
        mixes = mix.law.mixes or mix.law_after.mixes or mix.schedule is not None
        if self.objective.has_to_mix and not mixes:
            tag = self.objective.tag
            raise RuleError(
                f"{tag} needs a mix.law that mixes", {"objective": tag, "mix.law": "erm"}
            )

        is_plain = (mix.operation, mix.second, mix.label_law) == (Linear(), None, None)
        if self.objective.is_linear and not is_plain:
            tag = self.objective.tag
            raise RuleError(
                f"{tag} needs the linear operation alone, and no label_law",
                {"objective": tag, "mix.operation": mix.operation.tag},
            )

    def _check_probes(self) -> None:
        tags = [probe.tag for probe in self.probes]
        for index, probe in enumerate(self.probes):
            at = {f"probes.{index}": probe.tag}
            if tags.index(probe.tag) < index:
                raise RuleError("each probe must be listed once", at)
            if probe.views not in {None, self.data.views}:
                raise RuleError(
                    f"{probe.tag} needs `data.views: {probe.views}`",
                    at | {"data.views": self.data.views},
                )
            if probe.is_of_evaluation and probe.every is not None:
                rule = f"{probe.tag} is measured at each evaluation: leave out every"
                raise RuleError(rule, {f"probes.{index}.every": probe.every})
            if probe.every is not None and self.epochs % probe.every:
                every = {f"probes.{index}.every": probe.every, "epochs": self.epochs}
                raise RuleError("every must divide epochs", every)

    def loss_on(self, labels: "Tensor", num_classes: int) -> Loss:
        """Return the loss, with the weight of each class if it has one.

        Args:
            labels: Of all training images, (images,), int64.
            num_classes: Of the data.
        """
        if self.class_weights is None or not isinstance(self.loss, CrossEntropy):
            return self.loss
        import torch

        from mixup_core.images.losses.weighted import Weighted

        weights = self.class_weights.of(labels.bincount(minlength=num_classes).tolist())
        return Weighted(
            weights=torch.tensor(weights, device=labels.device), smoothing=self.loss.smoothing
        )

    def law_at(self, epoch: int) -> Law:
        """Return the law of a 0-based epoch, whatever the objective."""
        return self.mix.law_at(epoch, self.epochs)

    @property
    def seeds(self) -> int | Seeds:
        """The seed of each purpose, for `mixup_core.seeding.stream`."""
        second = self.seed + SECOND_SEED
        if self.redraw == "all":
            return second
        if self.redraw != "nothing":
            redrawn = frozenset(VARIED[self.redraw])
            return Seeds(own=second, purposes=redrawn, others=self.seed)
        if self.vary == "all":
            return self.seed
        return Seeds(own=self.seed, purposes=frozenset(VARIED[self.vary]))

    def in_epoch(self, epoch: int) -> Epoch:
        """Return the settings that decide a 0-based epoch."""
        law, objective = self.objective.in_epoch(self.law_at(epoch), epoch, self.epochs)
        rate = self.lr_schedule.in_epoch(epoch, self.epochs)
        if not law.mixes:
            return Epoch(law=law, objective=objective, rate=rate)
        return Epoch(
            law=law,
            lam_scope=self.mix.lam_scope,
            partner=self.mix.partner,
            operation=self.mix.operation,
            probability=self.mix.probability,
            second=self.mix.second,
            second_law=self.mix.second_law,
            second_probability=self.mix.second_probability,
            label_law=self.mix.label_law,
            objective=objective,
            rate=rate,
        )
