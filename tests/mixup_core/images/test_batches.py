"""Batches: bit-identical to the formulas of the paper, applied one tensor after another."""

from collections.abc import Iterator, Mapping
from typing import Any, Literal

import numpy as np
import pytest
import torch
from torch import Tensor

from mixup_core.images.augmentations.augmentation import Augmentation, Unchanged
from mixup_core.images.augmentations.crop import Crop, CropFlip, moved
from mixup_core.images.batches import Drawn, Draws, batches, draw_mixing
from mixup_core.images.config import MixConfig, TrainConfig
from mixup_core.images.data.data_config import DataConfig
from mixup_core.images.data.datasets import Images
from mixup_core.images.data.sets import DATASETS
from mixup_core.images.epoch import Epoch
from mixup_core.images.views import TrainingImages, draw_view_partners, pair_classes
from mixup_core.laws import Beta, Erm, Law, Midpoint
from mixup_core.mixing.cutmix import CutMix
from mixup_core.mixing.linear import Linear, mix
from mixup_core.mixing.manifold import Manifold
from mixup_core.mixing.partners import FromBatch, FromDataset, Partner
from mixup_core.seeding import stream
from tests.covering import covering
from tests.mixup_core.small_files import noise_images

CPU = torch.device("cpu")
LAWS: tuple[Law, ...] = (Erm(), Midpoint(), Beta(alpha=1.0), Beta(alpha=0.2))
Views = Literal["single", "concat"]
VIEWS, NAMES = ("single", "concat"), ("fashion-mnist", "cifar10")
AUGMENTATIONS = (Unchanged(), Crop(), CropFlip())


class Plainly:
    """Images of a run as the paper defines them: whole tensors, one operation at a time."""

    def __init__(self, images: Images, config: TrainConfig) -> None:
        data, info = config.data, DATASETS[config.data.name].info
        pixels, labels = images.pixels, images.labels
        if data.num_train is not None:
            order = stream(config.seed, "training subset").permutation(len(images))
            chosen = torch.from_numpy(order)[: data.num_train]
            pixels, labels = pixels[chosen], labels[chosen]
        if data.pool > 1:
            rows = pixels.unflatten(3, (-1, data.pool)).sum(4, dtype=torch.int64)
            pixels = rows.unflatten(2, (-1, data.pool)).sum(3)
        std = torch.tensor(info.std).view(-1, 1, 1)
        self.scale = 1 / (255 * data.pool**2 * std)
        self.shift = -torch.tensor(info.mean).view(-1, 1, 1) / std
        self.pixels, self.labels = pixels, labels
        self.beside = None
        if data.views == "concat":
            paired = pair_classes(info.num_classes, config.seed)
            self.beside = draw_view_partners(labels, paired, config.seed)

    def seen(self, index: Tensor, gamma: Tensor, moves: Tensor | None) -> Tensor:
        own = self.normalised(index, moves)
        if self.beside is None:
            return own
        scale = gamma.view(-1, 1, 1, 1)
        beside = self.normalised(self.beside[index], moves)
        return torch.cat([scale * own, (1 - scale) * beside], dim=1)

    def normalised(self, index: Tensor, moves: Tensor | None) -> Tensor:
        pixels = self.pixels[index]
        if moves is not None:
            pixels = moved(pixels, moves, "black")
        return torch.addcmul(self.shift, pixels.float(), self.scale)

    def batches(self, draws: Draws, how: Epoch) -> Iterator[tuple[Tensor, ...]]:
        for part in torch.split(torch.arange(len(draws.order)), draws.sizes):
            own, partner = draws.order[part], draws.partners[part]
            moves = [None, None]
            if draws.augmentation is not None:
                moves = list(draws.augmentation[:, part])
            images = self.seen(own, draws.scaling[0, part], moves[0])
            mixed, partner_labels = images, self.labels[own]
            if how.is_mixed:
                beside = self.seen(partner, draws.scaling[1, part], moves[1])
                mixed = mix(images, beside, draws.lam[part])
                partner_labels = self.labels[partner]
            yield images, mixed, self.labels[own], partner_labels, draws.lam[part]


def assert_as_written(config: TrainConfig, images: Images, *, pooled_before: bool = False) -> None:
    how, data = config.in_epoch(1), config.data
    given = images.pooled(data.pool) if pooled_before else images
    seen = TrainingImages(given, DATASETS[data.name].info, data, config.seed, CPU)
    draws = Draws.for_training(config, 1, seen)
    expected = list(Plainly(images, config).batches(draws, how))
    found = list(batches(seen, draws))
    assert len(found) == len(expected)
    for ours, plain in zip(found, expected, strict=True):
        names = ("images", "mixed", "labels", "partner_labels", "lam")
        for name, its in zip(names, plain, strict=True):
            mine = getattr(ours, name)
            assert mine.dtype == its.dtype
            assert torch.equal(mine, its), name
    assert (found[0].mixed is found[0].images) == (not how.is_mixed)


@pytest.mark.parametrize(
    ("law", "scope", "partner", "views", "name"),
    covering(LAWS, ["batch", "sample"], [FromDataset(), FromBatch()], VIEWS, NAMES),
    ids=str,
)
def test_batches_equal_the_formulas_bit_for_bit(
    law: Law, scope: Literal["batch", "sample"], partner: Partner, views: Views, name: str
) -> None:
    data = DataConfig(name=name, views=views, pool=2 if name == "cifar10" else 1)
    mixing = MixConfig(law=law, lam_scope=scope, partner=partner)
    config = TrainConfig(data=data, mix=mixing, epochs=2, batch_size=300, seed=5)
    assert_as_written(config, noise_images(DATASETS[name].info, 700))


@pytest.mark.parametrize(
    ("pool", "name", "augment", "views", "num_train"),
    covering([1, 2, 4, 8, 16], ["cifar10", "digits"], AUGMENTATIONS, VIEWS, [None, 90]),
    ids=str,
)
def test_pooled_cropped_and_subset_batches_equal_the_formulas_bit_for_bit(
    pool: int, name: str, augment: Augmentation, views: Views, num_train: int | None
) -> None:
    info = DATASETS[name].info
    if info.image_size % pool:
        return
    data = DataConfig(name=name, views=views, pool=pool, augment=augment, num_train=num_train)
    mixing = MixConfig(law=Beta(alpha=1.0), lam_scope="sample")
    config = TrainConfig(data=data, mix=mixing, epochs=2, batch_size=37)
    for pooled_before in (False, True):
        assert_as_written(config, noise_images(info, 120), pooled_before=pooled_before)


@pytest.mark.parametrize("num_train", [None, 55_000])
def test_a_run_needs_less_than_a_megabyte_beyond_the_images(
    num_train: int | None,
) -> None:
    """At the size of table 1, where a copy of the images with both views would have 376 MB."""
    count, info = 60_000, DATASETS["fashion-mnist"].info
    blank = torch.zeros(count, 1, 28, 28, dtype=torch.uint8)
    images = Images(pixels=blank, labels=torch.arange(count) % 10)
    data = DataConfig(num_train=num_train, views="concat")
    seen = TrainingImages(images, info, data, 0, CPU)
    held = [*vars(seen).values(), *vars(seen.pixels).values()]
    storages = {
        tensor.untyped_storage().data_ptr(): tensor.untyped_storage().nbytes()
        for tensor in held
        if isinstance(tensor, Tensor)
    }
    for shared in (images.pixels, images.labels):
        storages.pop(shared.untyped_storage().data_ptr(), None)
    assert sum(storages.values()) < 1e6


SIZES = [4] * 300 + [2]
KINDS = ("mixing", "choice", "operation", "second", "label")


def _streams(seed: int = 0) -> Mapping[str, np.random.Generator]:
    return {name: np.random.default_rng([seed, i]) for i, name in enumerate(KINDS)}


def _drawn(**values: Any) -> Drawn:
    return draw_mixing(Epoch(**values), SIZES, (8, 8), _streams())


def _by_batch(lam: torch.Tensor) -> list[list[float]]:
    return [part.tolist() for part in lam.split(4)]


def test_erm_batches_have_no_operation_and_weight_1() -> None:
    drawn = _drawn(law=Erm(), operation=CutMix())
    assert set(drawn.mixers) == {None}
    assert drawn.lam.tolist() == [1] * 1202
    assert drawn.label_lam is None


@pytest.mark.parametrize("scope", ["batch", "sample"])
def test_lam_scope_sets_one_weight_and_box_per_batch_or_per_image(scope: str) -> None:
    drawn = _drawn(law=Beta(alpha=1.0), operation=CutMix(), lam_scope=scope)
    rows = [len(mixer.drawn) for mixer in drawn.mixers if mixer is not None]
    assert rows == ([1] * 301 if scope == "batch" else SIZES)
    assert all((len(set(lam)) == 1) == (scope == "batch") for lam in _by_batch(drawn.lam))


@pytest.mark.parametrize("scope", ["batch", "sample"])
def test_a_share_of_the_batches_is_mixed_and_the_other_batches_have_weight_1(scope: str) -> None:
    drawn = _drawn(law=Midpoint(), probability=0.25, label_law=Midpoint(), lam_scope=scope)
    is_mixed = [mixer is not None for mixer in drawn.mixers]
    assert 50 < sum(is_mixed) < 100
    assert drawn.label_lam is not None
    for lam in (drawn.lam, drawn.label_lam):
        assert [set(part) for part in _by_batch(lam)] == [{0.5} if m else {1.0} for m in is_mixed]


@pytest.mark.parametrize("scope", ["batch", "sample"])
def test_batches_switch_between_two_operations_each_with_its_law(scope: str) -> None:
    """The rule of timm: each batch chooses at random; the second operation has its own alpha."""
    drawn = _drawn(
        law=Midpoint(),
        second=CutMix(),
        second_law=Beta(alpha=1.0),
        second_probability=0.3,
        lam_scope=scope,
    )
    kinds = [type(mixer.operation) for mixer in drawn.mixers if mixer is not None]
    assert len(kinds) == 301
    assert 65 < kinds.count(CutMix) < 120
    for kind, lam in zip(kinds, _by_batch(drawn.lam), strict=True):
        assert (set(lam) == {0.5}) == (kind is Linear)


def test_a_label_law_draws_separate_weights_for_labels() -> None:
    drawn = _drawn(law=Midpoint(), label_law=Beta(alpha=1.0))
    assert set(drawn.lam.tolist()) == {0.5}
    assert len(drawn.label_lam.unique()) == 301


@pytest.mark.parametrize(
    "values",
    [{"operation": CutMix()}, {"second": CutMix()}, {"label_law": Midpoint()},
     {"probability": 0.99}],
    ids=str,
)  # fmt: skip
def test_mixing_options_do_not_change_the_weights_of_unaffected_batches(values: Any) -> None:
    usual, other = (_drawn(law=Beta(alpha=1.0), **more) for more in ({}, values))
    is_left = torch.tensor(
        [(m is not None and type(m.operation) is not CutMix) or "operation" in values
         for m in other.mixers]
    ).repeat_interleave(torch.tensor(SIZES))  # fmt: skip
    assert is_left.any()
    assert torch.equal(usual.lam[is_left], other.lam[is_left])


def test_hidden_layers_are_mixed_by_the_network() -> None:
    drawn = _drawn(law=Midpoint(), operation=Manifold(layers=(0, 2)))
    own, beside = torch.zeros(4, 1, 8, 8), torch.ones(4, 1, 8, 8)
    met = set()
    for mixer in drawn.mixers[:40]:
        images, weight, hidden = mixer.mix(own, beside, torch.full((4,), 0.5))
        assert weight.tolist() == [0.5] * 4
        met.add(None if hidden is None else hidden.layer)
        if hidden is None:
            assert set(images.flatten().tolist()) == {0.5}
        else:
            assert torch.equal(images, torch.cat([own, beside]))
    assert met == {None, 2}
