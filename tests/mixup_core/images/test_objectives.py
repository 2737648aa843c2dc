"""Objectives and losses, computed by hand, and the cases in which objectives equal others."""

import dataclasses
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, one_hot

from mixup_core.config.building import with_values
from mixup_core.images.config import TrainConfig
from mixup_core.images.data.datasets import Images, Splits
from mixup_core.images.evaluation import logits_of
from mixup_core.images.forward import Batch, forward
from mixup_core.images.losses import CrossEntropy, Loss
from mixup_core.images.objectives.all_pairs import AllPairs
from mixup_core.images.objectives.filtered import Filter
from mixup_core.images.objectives.mixup_e import MixupE
from mixup_core.images.objectives.objective import Minimised
from mixup_core.images.objectives.reg_mixup import RegMixup
from mixup_core.images.training import TrainingState, fit
from mixup_core.images.views import EvaluationImages
from mixup_core.keys import stage_keys
from mixup_core.problem import Teacher
from mixup_core.records import EpochRecord
from mixup_core.rules import RuleError
from tests.mixup_core.images.taught_runs import CPU, NAMED, trained

CROSS_ENTROPY = CrossEntropy()


@pytest.fixture
def batch() -> Batch:
    rng = torch.Generator().manual_seed(0)
    images, partners = torch.randn(2, 6, 1, 3, 3, generator=rng)
    lam = torch.rand(6, generator=rng)
    return Batch(
        unmixed=lambda: images,
        mixed=torch.lerp(partners, images, lam.view(-1, 1, 1, 1)),
        labels=torch.tensor([0, 1, 2, 0, 1, 2]),
        partner_labels=torch.tensor([0, 0, 1, 2, 2, 2]),
        lam=lam,
    )


def _network(seed: int) -> nn.Module:
    network = nn.Sequential(nn.Flatten(), nn.Linear(9, 3))
    rng = torch.Generator().manual_seed(seed)
    for parameter in network.parameters():
        nn.init.normal_(parameter, generator=rng)
    return network


def _soft(batch: Batch) -> Tensor:
    lam = batch.lam[:, None]
    return lam * one_hot(batch.labels, 3) + (1 - lam) * one_hot(batch.partner_labels, 3)


def _minimised(objective: Any, batch: Batch, loss: Loss = CROSS_ENTROPY) -> Minimised:
    student, teacher = (
        partial(forward, _network(seed), precision="float32") for seed in (0, 1)
    )  # fmt: skip
    minimised: Minimised = objective.on(batch, student, loss, teacher)
    return minimised


def test_regmixup_adds_the_loss_of_mixed_images_to_that_of_the_images(batch: Batch) -> None:
    network = _network(0)
    own = cross_entropy(network(batch.images), batch.labels)
    mixed = cross_entropy(network(batch.mixed), _soft(batch))
    for reduction, scale in (("sum", 1), ("mean", 0.5)):
        objective = RegMixup(eta=0.3, reduction=reduction)  # type: ignore[arg-type]
        loss = _minimised(objective, batch).loss
        torch.testing.assert_close(loss, scale * (own + 0.3 * mixed))


@pytest.mark.parametrize("keep", ["low", "high", "all"])
@pytest.mark.parametrize("norm", ["batch", "kept"])
@pytest.mark.parametrize("threshold", [-100.0, 0.0, 0.3, 100.0])
def test_a_filter_keeps_images_on_the_chosen_side_of_its_threshold(
    batch: Batch, keep: str, norm: str, threshold: float
) -> None:
    logits = [_network(seed)(batch.mixed) for seed in (0, 1)]
    losses = [cross_entropy(of, _soft(batch), reduction="none") for of in logits]
    is_low = losses[1] - losses[0] <= threshold
    assert 0 < int((losses[1] <= losses[0]).sum()) < 6, "the middle threshold divides the batch"
    is_kept = {"low": is_low, "high": ~is_low, "all": torch.ones(6, dtype=torch.bool)}[keep]
    fields: Any = {"keep": keep, "norm": norm, "threshold": threshold}
    minimised = _minimised(Filter(teacher="t", **fields), batch)
    divisor = 6 if norm == "batch" else max(1, int(is_kept.sum()))
    torch.testing.assert_close(minimised.loss, losses[0][is_kept].sum() / divisor)
    assert float(minimised.measured["kept_fraction"]) == pytest.approx(int(is_kept.sum()) / 6)
    assert float(minimised.measured["low_fraction"]) == pytest.approx(int(is_low.sum()) / 6)


@pytest.mark.parametrize("loss", ["cross-entropy", "squared-error"])
def test_a_filter_that_keeps_all_has_the_bits_of_plain_mixup(
    mixed: TrainConfig, splits: Splits, teacher: Teacher, loss: str
) -> None:
    mixed = with_values(mixed, {"loss": loss})
    every = with_values(mixed, {"objective": NAMED, "objective.keep": "all",
                                "objective.warm_up": 0.0})  # fmt: skip
    for norm in ("batch", "kept"):
        records, end = trained(with_values(every, {"objective.norm": norm}), splits, teacher)
        plain, plain_end = trained(mixed, splits)
        assert end == plain_end
        for record, other in zip(records, plain, strict=True):
            assert record.metrics.items() >= other.metrics.items()
            assert record.metrics["train/kept_fraction"] == 1


def test_regmixup_with_weight_zero_has_the_bits_and_stage_keys_of_erm(
    config: TrainConfig, splits: Splits
) -> None:
    none = with_values(config, {"objective": {"regmixup": {"eta": 0.0}}, "mix.law": {"beta": 20.0}})
    erm = with_values(config, {"mix.law": "erm"})
    assert trained(none, splits) == trained(erm, splits)
    assert stage_keys(none) == stage_keys(erm)
    some = with_values(none, {"objective.eta": 0.5})
    assert trained(some, splits)[1] != trained(erm, splits)[1]
    assert set(stage_keys(some)).isdisjoint(stage_keys(erm))


def test_a_filter_is_plain_mixup_in_its_warm_up_and_after_its_stop(
    mixed: TrainConfig, splits: Splits, teacher: Teacher
) -> None:
    guided = with_values(
        mixed, {"objective": NAMED, "objective.warm_up": 0.25, "objective.stop": 0.75}
    )
    records, _ = trained(guided, splits, teacher)
    plain, _ = trained(mixed, splits)
    assert ["train/kept_fraction" in record.metrics for record in records] == [
        False, True, True, False,
    ]  # fmt: skip
    assert ["train/excess_loss" in record.metrics for record in records] == [
        True, False, False, True,
    ]  # fmt: skip
    assert records[0] == plain[0]
    assert stage_keys(guided)[0] == stage_keys(mixed)[0]
    assert stage_keys(guided)[1] != stage_keys(mixed)[1]
    never = with_values(guided, {"objective.warm_up": 1.0, "objective.stop": 1.0})
    assert stage_keys(never) == stage_keys(mixed)


def test_a_teacher_runs_in_evaluation_mode(
    mixed: TrainConfig, splits: Splits, teacher: Teacher
) -> None:
    """A student that is its own teacher differs from it only by the mode of BatchNorm."""
    still = with_values(mixed, {"objective": NAMED, "objective.warm_up": 0.0, "epochs": 5,
                                "model.name": "mlp", "optimizer.lr": 1e-30})  # fmt: skip
    base = with_values(still, {"objective": "plain", "epochs": 4})
    _, state = trained(base, splits)
    student = TrainingState.initial(still, splits.info, CPU)
    first = [EpochRecord(epoch=epoch, metrics={}) for epoch in range(4)]
    student.load_bytes(state, first)
    (record,) = fit(still, splits, student, teacher=Teacher(config=base, state=state))
    assert record.metrics["train/low_fraction"] == 1, "r = 0 everywhere, and 0 <= 0"


FAILURES = {"failure-set": {"teacher": "t", "teacher_key": "0" * 32}}


def test_training_on_a_failure_set_equals_training_on_its_images_alone(
    config: TrainConfig, splits: Splits
) -> None:
    """In whole batches, with a network without batch norm, nothing else differs."""
    single = {"data.views": "single", "batch_size": 1000}
    plain = with_values(config, {"model": {"name": "mlp", "hidden": [8]}, **single})
    _, state = trained(plain, splits)
    teacher = Teacher(config=plain, state=state)
    network = TrainingState.initial(plain, splits.info, CPU)
    network.load_bytes(state, [])
    test = EvaluationImages(splits.test, splits.info, plain.data, CPU)
    is_failure = logits_of(network.network.eval(), test, "float32").argmax(1) != test.labels
    assert int(is_failure.sum()) > 0
    joined = Images(
        pixels=torch.cat([splits.train.pixels, splits.test.pixels[is_failure]]),
        labels=torch.cat([splits.train.labels, splits.test.labels[is_failure]]),
    )
    alone, _ = trained(plain, dataclasses.replace(splits, train=joined))
    taught = with_values(plain, {"data.oracle": True, "objective": FAILURES})
    guided, _ = trained(taught, splits, teacher)
    share = int(is_failure.sum()) / len(splits.seen_by(taught.data))
    for record, other in zip(guided, alone, strict=True):
        assert record.metrics["train/failure_fraction"] == pytest.approx(share)
        for name in ("train/loss", "test/nll"):
            assert record.metrics[name] == pytest.approx(other.metrics[name], rel=1e-4)


@pytest.mark.parametrize(
    ("values", "rule"),
    [
        ({"objective": FAILURES}, "needs test images to train on: set `data.oracle: true`"),
        (
            {"objective": FAILURES, "data.oracle": True, "mix.law": "midpoint"},
            "failure-set needs `mix.law: erm`",
        ),
        (
            {"objective": FAILURES, "data.oracle": True, "mix.schedule": "hard"},
            "failure-set needs `mix.law: erm`",
        ),
        ({"objective": "regmixup"}, "regmixup needs a mix.law that mixes"),
        ({"objective": "filter"}, "objective.teacher must be given"),
        *(
            ({"objective": "all-pairs", "mix.law": "midpoint", field: "cutmix"}, "linear")
            for field in ("mix.operation", "mix.second")
        ),
    ],
)  # fmt: skip
def test_an_objective_out_of_range_is_refused(
    config: TrainConfig, values: dict[str, Any], rule: str
) -> None:
    with pytest.raises(RuleError, match=rule):
        with_values(config, values)


def test_all_pairs_mixes_every_image_of_a_batch_with_every_other(batch: Batch) -> None:
    network = _network(0)
    images, labels, lam = batch.images, one_hot(batch.labels, 3).float(), batch.lam
    i, j = torch.cartesian_prod(torch.arange(6), torch.arange(6)).T
    mixed = torch.lerp(images[j], images[i], lam[i].view(-1, 1, 1, 1))
    expected = cross_entropy(network(mixed), torch.lerp(labels[j], labels[i], lam[i, None]))
    torch.testing.assert_close(_minimised(AllPairs(), batch).loss, expected)


def test_all_pairs_of_an_unmixed_batch_uses_each_image_alone(batch: Batch) -> None:
    alone = dataclasses.replace(
        batch, mixed=batch.images, unmixed=None, partner_labels=batch.labels
    )
    expected = cross_entropy(_network(0)(batch.images), batch.labels)
    torch.testing.assert_close(_minimised(AllPairs(), alone).loss, expected)


def test_mixup_e_lowers_the_loss_by_the_alignment_below_the_threshold(batch: Batch) -> None:
    network, eta, threshold = _network(0), 0.3, 0.1
    logits = network(batch.images)
    error = one_hot(batch.labels, 3) - logits.softmax(1)
    alignment = (logits * error).sum(1)
    assert 0 < int((alignment < threshold).sum()) < 6
    counted = torch.where(alignment < threshold, alignment, 0).sum() / 6
    plain = cross_entropy(network(batch.mixed), _soft(batch))
    found = _minimised(MixupE(eta=eta, threshold=threshold), batch)
    torch.testing.assert_close(found.loss, plain)
    torch.testing.assert_close(found.measured["alignment"], alignment.mean())
    share = (alignment < 0).float().mean()
    torch.testing.assert_close(found.measured["misaligned_fraction"], share)
    whole = plain - eta * counted
    student = _network(0)
    own = MixupE(eta=eta, threshold=threshold).on(batch, student, CROSS_ENTROPY, None).loss
    (gradient,) = torch.autograd.grad(own, student[1].weight)
    (expected,) = torch.autograd.grad(whole * (plain / whole.abs()).detach(), network[1].weight)
    torch.testing.assert_close(gradient, expected)


def test_mixup_e_with_weight_zero_has_the_stage_key_of_the_plain_loss(config: TrainConfig) -> None:
    mixed = with_values(config, {"mix.law": "midpoint", "objective": {"mixup-e": {"eta": 0.0}}})
    plain = with_values(mixed, {"objective": "plain"})
    assert stage_keys(mixed)[-1] == stage_keys(plain)[-1]


def test_label_smoothing_spreads_its_share_over_all_classes() -> None:
    logits = torch.randn(5, 4, generator=torch.Generator().manual_seed(0))
    labels, partners = torch.tensor([0, 1, 2, 3, 0]), torch.tensor([1, 1, 0, 2, 0])
    lam = torch.linspace(0, 1, 5)
    target = lam[:, None] * one_hot(labels, 4) + (1 - lam[:, None]) * one_hot(partners, 4)
    expected = -((0.8 * target + 0.2 / 4) * logits.log_softmax(1)).sum(1)
    loss = CrossEntropy(smoothing=0.2)
    torch.testing.assert_close(loss.per_image(logits, labels, partners, lam), expected)
    assert loss.lacks_floor is not None
    assert CrossEntropy().lacks_floor is None
