"""SUFFICIENCY: problem that measures how close mixed images come to images of other classes.

The module imports no torch.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from mixup_core.config.checked import Checked
from mixup_core.images.data.data_config import DataConfig
from mixup_core.images.feasibility import MOST_SEEDS, counted, may_lack_classes, transparent
from mixup_core.images.image_data import ImageData, data_remarks, described, memory
from mixup_core.laws import Beta, Law
from mixup_core.problem import (
    Comparing,
    Cost,
    Keying,
    Measuring,
    Metric,
    OneRecord,
    Presentation,
    Problem,
    Reading,
    Seed,
)
from mixup_core.rules import RuleError, require


@dataclass(frozen=True, kw_only=True, slots=True)
class SufficiencyConfig(Checked):
    """Configuration of one run that measures distances from images to mixed images.

    Theorem 2.10 of the source below, informally: if no image lies on a line segment between two
    images whose classes both differ from its own, then the minimiser of the mixup loss also
    classifies the original images. The run replaces the segments by as many mixed images as there
    are training images, each mixed from two training images drawn uniformly. For each image, it
    measures the distance to the nearest mixed image whose two parts both have other classes.

    Source: Chidambaram et al. 2022, arXiv:2110.07647, section 2.4, and its code.
    """

    # Frozen: each `problem`, field name, default and metric name in this file. After a change,
    # stored results are not found or get another meaning; tests/golden/test_keys.py fails.
    problem: ClassVar = "sufficiency"

    data: DataConfig = field(default_factory=DataConfig)
    """Images and training subset; single views only, and no validation images."""
    law: Law = field(default_factory=lambda: Beta(alpha=1024.0))
    """Law of lam; each mixed image has its own weight."""
    epochs: OneRecord = 1
    """Number of records: the measurement is made once."""
    seed: Seed = 0
    """Seed of the subset and of the mixed images."""

    def check(self) -> None:
        usual = {"views": "single", "val_size": 0, "folds": None, "oracle": False}
        for name, value in usual.items():
            given = getattr(self.data, name)
            if given != value:
                raise RuleError(
                    f"data.{name} must be {value} in the problem sufficiency",
                    {f"data.{name}": given},
                )
        require(self.law.mixes, "the problem sufficiency needs a law that mixes", self, "law")


def infeasible(config: SufficiencyConfig) -> Iterator[RuleError]:
    """Yield the reasons why the distances between images and mixed images cannot be measured."""
    data, info = config.data, described(config.data)
    faults = [*data.unfit(info), *transparent(data)]
    yield from faults
    if data.balanced and not faults and may_lack_classes(data, info):
        try:
            counted(data, config.seed)  # sizes of the classes decide, so that every seed is alike
        except RuleError as error:
            yield error


def lacks(config: SufficiencyConfig, metric: str, records: int) -> str | None:
    """Return a message if a run measures no distances of the images that a metric names."""
    del records
    has_images = config.data.test or not metric.startswith("distance/test")
    return None if has_images else "the run has no test images; set data.test: true"


def lacks_at(config: SufficiencyConfig, metric: str, seeds: Sequence[int]) -> str | None:
    """Return a message if all training images of a seed have one class, so that no mix counts."""
    data = config.data
    if metric.startswith("distance/test") or not may_lack_classes(data, described(data)):
        return None
    for seed in seeds[:MOST_SEEDS]:
        counts = counted(data, seed)
        if counts is not None and (counts[1] > 0).sum() < 2:
            return f"all training images of seed {seed} have one class; set a larger data.num_train"
    return None


def setting(config: SufficiencyConfig, metric: str) -> str:
    """Describe the images whose distances are measured, for captions of tables and figures."""
    del metric
    info = described(config.data)
    count = f"{config.data.size_of_subset(info.num_train):,}".replace(",", " ")
    return f"{info.title}, {count} training images and as many mixed ones"


SUFFICIENCY = Problem(
    name="sufficiency",
    title="distances of images from mixed images of other classes (Chidambaram et al. 2022)",
    config=SufficiencyConfig,
    process="mixup_core.images.distances:start",
    metrics={
        "distance/train_smallest": Metric(
            label="smallest distance to mixed images, training images", least=0.0
        ),
        "distance/train_average": Metric(
            label="mean distance to mixed images, training images", least=0.0
        ),
        "distance/test_smallest": Metric(
            label="smallest distance to mixed images, test images", least=0.0
        ),
        "distance/test_average": Metric(
            label="mean distance to mixed images, test images", least=0.0
        ),
    },
    headline=("distance/train_smallest",),
    measuring=Measuring(lacks=lacks, lacks_at=lacks_at),
    reading=Reading(
        feasibility=infeasible,
        reserved={"data.digest": "cannot be set in a study file; it is computed from the folder"},
    ),
    keying=Keying(stands_for={"data.folder": "data.digest", "data.skip": "data.digest"}),
    data=ImageData,
    comparing=Comparing(
        population=lambda config, _: (
            config.data.name,
            config.data.digest,
            config.data.image_size,
            config.data.test_fraction,
        ),
        data_paths=frozenset({"data.name", "data.folder", "data.digest"}),
        dataset=lambda config: config.data.name,
    ),
    presentation=Presentation(
        beside=("*/train_average", "*/test_smallest", "*/test_average"),
        setting=setting,
        remarks=lambda config, _: data_remarks(config.data),
    ),
    cost=Cost(
        work=lambda config: config.data.size_of_subset(described(config.data).num_train),
        work_unit="images",
        memory=memory,
    ),
)
"""The problem of measuring distances from images to mixed images; a run has one record."""
