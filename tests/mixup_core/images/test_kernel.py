"""Kernel: used where it gives PyTorch's bits, and nowhere else.

That it does on this machine, for every view, pool, crop and partner, is shown in `test_batches`.
"""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch import Tensor

from mixup_core.images import batches as module
from mixup_core.images import kernel
from mixup_core.images.augmentations.augmentation import Augmentation
from mixup_core.images.augmentations.crop import CropFlip
from mixup_core.images.batches import Draws, proven_kernel
from mixup_core.images.choices.models import NarrowResNet
from mixup_core.images.config import DataConfig, MixConfig, TrainConfig
from mixup_core.images.data.datasets import Splits
from mixup_core.images.kernel import Kernel, kernel_for
from mixup_core.images.training import TrainingState, fit
from mixup_core.images.views import TrainingImages
from mixup_core.laws import Beta
from mixup_core.tree.building import parsed, with_values

CPU = torch.device("cpu")
FOR_EVER = 10**9


@pytest.fixture(autouse=True)
def _compiled_anew() -> Iterator[None]:
    kernel._compiled.cache_clear()
    yield
    kernel._compiled.cache_clear()


@pytest.fixture
def config() -> TrainConfig:
    return TrainConfig(
        data=DataConfig(name="digits", views="concat"),
        model=NarrowResNet(width=4),
        mix=MixConfig(law=Beta(alpha=1.0), lam_scope="sample"),
        epochs=3,
        batch_size=20,
    )


@pytest.fixture
def images(config: TrainConfig, splits: Splits) -> TrainingImages:
    return TrainingImages(splits.train, splits.info, config.data, 0, CPU)


@pytest.fixture
def made(images: TrainingImages) -> Kernel:
    found = kernel_for(images)
    if found is None:
        pytest.skip("no C compiler on this machine")
    return found


def test_a_kernel_that_gives_the_bits_of_pytorch_is_used(
    config: TrainConfig, images: TrainingImages, made: Kernel
) -> None:
    assert proven_kernel(config, images, FOR_EVER) is made


def test_a_kernel_that_is_wrong_by_one_bit_is_not_used(
    config: TrainConfig, images: TrainingImages, made: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = Kernel.assemble

    def wrong(
        self: Kernel, seen: object, draws: object, along: slice, out: Tensor, *, is_mixed: bool
    ) -> None:
        right(self, seen, draws, along, out, is_mixed=is_mixed)  # type: ignore[arg-type]
        last = out.view(-1)[-1:]
        last.copy_(torch.nextafter(last, torch.tensor(torch.inf)))

    monkeypatch.setattr(Kernel, "assemble", wrong)
    assert proven_kernel(config, images, FOR_EVER) is None


def test_a_run_that_saves_less_than_compiling_takes_compiles_nothing(
    config: TrainConfig, images: TrainingImages, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subprocess, "run", None)
    assert proven_kernel(config, images, config.epochs) is None


def test_pytorch_does_where_there_is_no_compiler(
    config: TrainConfig, images: TrainingImages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert proven_kernel(config, images, FOR_EVER) is None


@pytest.mark.parametrize("script", ["exit 1", ': > "$8"', "exec sleep 60"])
def test_pytorch_does_where_the_compiler_fails(
    config: TrainConfig,
    images: TrainingImages,
    script: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compiler = tmp_path / "cc"
    compiler.write_text(f"#!/bin/sh\n{script}\n")
    compiler.chmod(0o700)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(kernel, "_PATIENCE", 0.5)
    assert proven_kernel(config, images, FOR_EVER) is None


def test_pixels_of_another_type_are_left_to_pytorch(images: TrainingImages) -> None:
    images.pixels.values = images.pixels.values.long()
    assert kernel_for(images) is None


@pytest.mark.parametrize("tag", sorted(Augmentation.catalogue))
def test_only_crops_with_black_borders_are_compiled(images: TrainingImages, tag: str) -> None:
    images.augmentation = parsed(Augmentation, tag)
    assert (kernel_for(images) is None) == (tag not in {"none", "crop", "crop-flip"})
    images.augmentation = CropFlip(border="reflect")
    assert kernel_for(images) is None


def test_pixels_with_gaps_are_left_to_pytorch(images: TrainingImages) -> None:
    images.pixels.values = images.pixels.values.repeat_interleave(2, dim=3)[..., ::2]
    assert kernel_for(images) is None


@pytest.mark.parametrize("objective", ["plain", "regmixup"])
@pytest.mark.parametrize("augment", ["none", "crop-flip"])
def test_a_run_by_the_kernel_ends_with_the_bytes_of_one_without(
    config: TrainConfig,
    splits: Splits,
    made: Kernel,
    objective: str,
    augment: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    del made
    config = with_values(config, {"objective": objective, "data.augment": augment})
    used = []
    assemble = Kernel.assemble
    monkeypatch.setattr(
        Kernel, "assemble", lambda *given, **named: used.append(1) or assemble(*given, **named)
    )
    ends = []
    for worth in (0, FOR_EVER):
        monkeypatch.setattr(module, "_VALUES_WORTH_A_KERNEL", worth)
        state = TrainingState.initial(config, splits.info, CPU)
        records = list(fit(config, splits, state))
        ends.append((records, state.to_bytes(), len(used)))
    assert ends[0] == ends[1]  # the second run used it no further
    assert len(used) > config.epochs


def test_nothing_of_the_compiler_stays_on_the_disk(
    images: TrainingImages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    kernel_for(images)
    assert not list(tmp_path.iterdir())


def test_weights_of_every_size_are_proven(
    config: TrainConfig, images: TrainingImages, made: Kernel
) -> None:
    """Both branches of lerp, and both ends."""
    draws = Draws.for_training(config, 0, config.in_epoch(0), images)
    part = slice(0, len(images))
    for lam in (0.0, 0.25, 0.5, 0.75, 1.0, 1e-30):
        draws.lam.fill_(lam)
        plain, its = torch.empty(2, len(images), *images.shape)
        module._assemble(images, draws, part, plain, is_mixed=True)
        made.assemble(images, draws, part, its, is_mixed=True)
        assert torch.equal(plain, its)
