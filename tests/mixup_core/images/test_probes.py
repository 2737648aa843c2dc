"""Probes against closed forms on a linear model, autograd and constructed features."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.metrics import roc_auc_score
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, one_hot

from mixup_core.config.building import with_values
from mixup_core.images.batches import Draws, batches
from mixup_core.images.config import TrainConfig
from mixup_core.images.data.datasets import Splits
from mixup_core.images.evaluation import logits_of
from mixup_core.images.probes.changed_images import CHANGES, CONTRAST, NOISE_SD, changed
from mixup_core.images.probes.measuring import probed_values
from mixup_core.images.probes.norms import MeanGradientNorm, gradient_of, norm_and_error
from mixup_core.images.probes.outside_images import OUTSIDE, area_above
from mixup_core.images.probes.probe import Probe
from mixup_core.images.probes.subject import Subject
from mixup_core.images.problem import IMAGES
from mixup_core.images.training import TrainingState, fit
from mixup_core.images.views import EvaluationImages, TrainingImages
from mixup_core.predictions import auroc
from mixup_core.rules import RuleError

CPU = torch.device("cpu")
PROBES = Probe.catalogue


@pytest.fixture
def linear(config: TrainConfig) -> TrainConfig:
    return with_values(
        config, {"model.name": "linear", "data.views": "single", "mix.law": "midpoint"}
    )


def _subject(config: TrainConfig, splits: Splits, network: nn.Module | None = None) -> Subject:
    images = TrainingImages(splits.train, splits.info, config.data, config.seed, CPU)
    assert splits.test is not None
    test = EvaluationImages(splits.test, splits.info, config.data, CPU)
    evaluated = {}
    if network is None:
        network = TrainingState.initial(config, splits.info, CPU).network
        evaluated["test", ""] = logits_of(network, test, "float32")
    return Subject(
        config=config,
        epoch=0,
        info=splits.info,
        network=network.eval(),
        images=images,
        held_out={"test": test},
        evaluated=evaluated,
    )


def _measured(probe: str, subject: Subject) -> dict[str, float]:
    return probed_values(subject, [PROBES[probe]()], eval_every=1)


def _all(subject: Subject) -> tuple[Tensor, Tensor]:
    everything = torch.arange(len(subject.images))
    return subject.images.batch(everything, torch.zeros(len(everything))), subject.images.labels


def _layer(subject: Subject) -> nn.Linear:
    (layer,) = (part for part in subject.network.modules() if isinstance(part, nn.Linear))
    return layer


def test_a_probe_that_writes_to_outputs_changes_no_other_probe(
    linear: TrainConfig, splits: Splits
) -> None:
    subject = _subject(linear, splits)
    before = _measured("original-error", subject)
    for each in subject.outputs():
        each.zero_()
    assert _measured("original-error", subject) == before


def test_each_probe_is_measured_at_its_own_interval(linear: TrainConfig, splits: Splits) -> None:
    probed = with_values(
        linear, {"eval_every": 4, "probes": ["el2n", {"weight-norm": 2}, {"original-error": 1}]}
    )
    records = list(fit(probed, splits))
    for name, epochs in (("el2n", [3]), ("weight_norm", [1, 3]), ("error", [0, 1, 2, 3])):
        assert [r.epoch for r in records if f"train/{name}" in r.metrics] == epochs


@pytest.mark.parametrize(
    ("probes", "rule", "field"),
    [
        (["el2n", "el2n"], "each probe must be listed only once", "probes.1"),
        ([{"el2n": 3}], "`every` of a probe must divide epochs", "probes.0.every"),
        (["true-error"], "true-error needs `data.views: concat`", "probes.0"),
    ],
)
def test_invalid_lists_of_probes_are_refused(
    linear: TrainConfig, probes: Any, rule: str, field: str
) -> None:
    with pytest.raises(RuleError, match=rule) as caught:
        with_values(linear, {"probes": probes})
    assert caught.value.fields[0] == field


def test_el2n_error_and_nll_match_a_direct_computation_for_softmax_regression(
    linear: TrainConfig, splits: Splits
) -> None:
    subject = _subject(linear, splits)
    images, labels = _all(subject)
    layer = _layer(subject)
    logits = (images.flatten(1) @ layer.weight.T + layer.bias).detach()
    distance = np.linalg.norm((logits.softmax(1) - one_hot(labels, 4)).numpy(), axis=1)
    assert _measured("el2n", subject)["train/el2n"] == pytest.approx(distance.mean(), rel=1e-5)
    measured = _measured("original-error", subject)
    assert measured["train/error"] == float((logits.argmax(1) != labels).double().mean())
    assert measured["train/nll"] == pytest.approx(float(cross_entropy(logits, labels)), rel=1e-5)


def test_the_input_gradient_norm_of_softmax_regression_matches_its_closed_form(
    linear: TrainConfig, splits: Splits
) -> None:
    """The gradient of the cross entropy with respect to x is W^T (softmax - onehot)."""
    subject = _subject(linear, splits)
    test = subject.held_out["test"]
    layer = _layer(subject)
    logits = layer(test[:].flatten(1)).detach()
    gradient = (logits.softmax(1) - one_hot(test.labels, 4)) @ layer.weight.detach()
    measured = _measured("input-gradient-norm", subject)["test/input_gradient_norm"]
    assert measured == pytest.approx(float(gradient.norm(dim=1).mean()), rel=1e-5)


def test_the_weight_norm_covers_all_parameters(linear: TrainConfig, splits: Splits) -> None:
    subject = _subject(linear, splits)
    layer = _layer(subject)
    with torch.no_grad():
        layer.weight.fill_(2.0)
        layer.bias.fill_(3.0)
    expected = math.sqrt(4 * layer.weight.numel() + 9 * 4)
    assert _measured("weight-norm", subject)["train/weight_norm"] == pytest.approx(expected)


@pytest.mark.parametrize(
    ("objective", "loss"),
    [("plain", "squared-error"), ({"regmixup": {"eta": 0.5}}, "cross-entropy")],
)
def test_the_gradient_norm_belongs_to_the_mean_loss_over_all_images(
    linear: TrainConfig, splits: Splits, objective: Any, loss: str
) -> None:
    config = with_values(linear, {"objective": objective, "loss": loss, "data.pool": 4})
    subject = _subject(config, splits)
    measured = _measured("gradient-norm", subject)["train/gradient_norm"]
    network, total = subject.network, torch.zeros(())
    for batch in batches(subject.images, Draws.for_probing(config, 0, subject.images)):
        hard = one_hot(batch.labels, 4).float()
        lam = batch.lam[:, None]
        soft = lam * hard + (1 - lam) * one_hot(batch.partner_labels, 4)
        if objective == "plain":
            total = total + (network(batch.mixed) - soft).square().sum()
        else:
            total = total + cross_entropy(network(batch.images), hard, reduction="sum")
            total = total + 0.5 * cross_entropy(network(batch.mixed), soft, reduction="sum")
    gradients = torch.autograd.grad(total / len(subject.images), [*network.parameters()])
    norm = torch.cat([part.flatten() for part in gradients]).norm()
    assert measured == pytest.approx(float(norm), rel=1e-5)


def test_the_mean_gradient_norm_leaves_out_products_within_a_group(
    linear: TrainConfig, splits: Splits
) -> None:
    subject = _subject(with_values(linear, {"mix.law": {"beta": 1.0}}), splits)
    drawn = [torch.cat([p.flatten() for p in gradient_of(subject, draw)]) for draw in range(24)]
    groups = [sum(drawn[group::10], torch.zeros(1)) for group in range(10)]
    together = sum(groups, torch.zeros(1))
    square = float(together.square().sum() - sum(g.square().sum() for g in groups))
    pairs = 24**2 - sum(len(drawn[group::10]) ** 2 for group in range(10))
    found = MeanGradientNorm(draws=24).measure(subject)
    assert found["train/mean_gradient_norm"] == pytest.approx(math.sqrt(square / pairs))
    assert 0 < found["train/mean_gradient_norm_error"] < found["train/mean_gradient_norm"]


def test_the_mean_gradient_norm_averages_over_the_weights_of_two_views_without_mixing(
    linear: TrainConfig, splits: Splits
) -> None:
    erm = with_values(linear, {"mix.law": "erm", "probes": [{"mean-gradient-norm": {"draws": 11}}]})
    both = with_values(erm, {"data.views": "concat"})
    found = {c: probed_values(_subject(c, splits), c.probes, 1) for c in (erm, both)}
    errors = [each["train/mean_gradient_norm_error"] for each in found.values()]
    assert errors[0] == 0 < errors[1]
    mixed = with_values(both, {"mix.law": "midpoint", "data.views": "added"})
    assert [IMAGES.keying.corrected(c) for c in (erm, mixed, both)] == [0, 0, 1]


def test_the_mean_gradient_norm_and_its_error_match_simulated_draws() -> None:
    """A gradient of norm 1 with noise of norm 10: the mean of 200 draws has norm 1.22."""
    rng = np.random.default_rng(0)
    truth = np.zeros(50)
    truth[0] = 1.0
    found = []
    for _ in range(300):
        noise = rng.normal(size=(10, 50)) * 10 / math.sqrt(50 * 20)
        sums = 20 * (truth + noise)
        found.append(norm_and_error((sums @ sums.T).tolist(), [20] * 10))
    norms, errors = np.array(found).T
    assert np.mean(norms**2) == pytest.approx(1.0, abs=0.06)
    assert np.sqrt(np.mean(errors**2)) == pytest.approx(np.std(norms), rel=0.25)


def test_the_mixup_loss_probe_measures_loss_floor_and_excess(
    linear: TrainConfig, splits: Splits
) -> None:
    """The data have one image per class, so a mixed image determines its pair of labels."""
    subject = _subject(linear, splits)
    measured = _measured("mixup-loss", subject)
    floor = 0.75 * linear.mix.law.label_entropy()
    assert measured["train/mixup_floor"] == pytest.approx(floor)
    assert measured["train/mixup_excess"] == measured["train/mixup_loss"] - floor
    layer = _layer(subject)
    with torch.no_grad():
        layer.weight.zero_()
        layer.bias.zero_()
    uniform = _measured("mixup-loss", subject)["train/mixup_loss"]
    assert uniform == pytest.approx(math.log(4), rel=1e-6), "whatever the mixed label"


class _Channel(nn.Module):
    """A network that uses one view only: it predicts the class whose pattern is nearest."""

    def __init__(self, images: Tensor, labels: Tensor, channel: int) -> None:
        super().__init__()
        self.images, self.labels, self.channel = images, labels, channel

    def forward(self, images: Tensor) -> Tensor:
        view = images[:, self.channel].flatten(1)
        nearest = torch.cdist(view, self.images.flatten(1)).argmin(1)
        return one_hot(self.labels[nearest], 4).float()


def test_view_errors_show_which_view_a_network_uses(config: TrainConfig, splits: Splits) -> None:
    """A network that reads one channel knows the class in it, and is wrong about the other."""
    single = _subject(with_values(config, {"data.views": "single"}), splits)
    images, labels = _all(single)
    for channel, (seen, blind) in enumerate([("true", "spurious"), ("spurious", "true")]):
        subject = _subject(config, splits, _Channel(images, labels, channel))
        error = _measured(f"{seen}-error", subject)[f"train/{seen}_error"]
        assert error == channel, "the other channel holds an image of the paired class: all wrong"
        error = _measured(f"{blind}-error", subject)[f"train/{blind}_error"]
        assert error == 0.75, "zeros have one nearest pattern"


class _Rows(nn.Module):
    """A network whose last layer gets the given rows, whatever the images, in their order."""

    def __init__(self, rows: Tensor, last: nn.Module | None = None) -> None:
        super().__init__()
        self.rows, self.start = rows, 0
        self.fc = last or nn.Identity()

    def forward(self, images: Tensor) -> Tensor:
        part = self.rows[self.start : self.start + len(images)]
        self.start += len(images)
        logits: Tensor = self.fc(part)
        return logits


def test_collapse_measures_of_a_simplex_are_zero_and_each_detects_its_own_deviation(
    config: TrainConfig, splits: Splits
) -> None:
    def last_layer(features: Tensor, weight: Tensor) -> dict[str, float]:
        last = nn.Linear(*weight.shape[::-1], bias=False)
        last.weight.data = weight
        return _measured("neural-collapse", _subject(config, splits, _Rows(features, last)))

    labels, simplex = splits.train.labels, torch.eye(4) - 0.25
    collapsed = last_layer(5 * simplex[labels] + 7, 3 * simplex)
    assert collapsed == pytest.approx(dict.fromkeys(collapsed, 0.0), abs=1e-6)
    assert len(collapsed) == 5
    noise = torch.zeros(96, 4).normal_(generator=torch.Generator().manual_seed(0))
    means = torch.stack([noise[labels == label].mean(0) for label in range(4)])
    features = simplex[labels] + 0.1 * (noise - means[labels])
    noisy = last_layer(features, simplex)
    within = torch.cov(features.T - simplex[labels].T, correction=0).double()
    between = torch.linalg.pinv((simplex.T @ simplex / 4).double(), rtol=1e-6)
    expected = float(torch.trace(within @ between)) / 4
    assert noisy["train/nc1_variability"] == pytest.approx(expected, rel=1e-4)
    stretched = last_layer((torch.tensor([1.0, 1, 1, 2])[:, None] * simplex)[labels], simplex)
    assert stretched["train/nc2_norms"] > 0.1
    assert stretched["train/nc1_variability"] == pytest.approx(0, abs=1e-9)
    turned = last_layer(simplex[labels], -simplex)
    assert turned["train/nc3_duality"] == pytest.approx(2)
    assert turned["train/nc4_disagreement"] > 0.9
    line = torch.tensor([-3.0, -1, 1, 3])[:, None] * torch.ones(1, 4)
    assert last_layer(line[labels], simplex)["train/nc2_angles"] == pytest.approx(
        (2 * 4 / 3 + 4 * 2 / 3) / 6
    )
    assert last_layer(torch.ones(96, 4), simplex) == {}


def test_probes_of_one_epoch_share_the_logits_of_the_training_images(
    linear: TrainConfig, splits: Splits
) -> None:
    alone = {tag: _measured(tag, _subject(linear, splits)) for tag in ("original-error", "el2n")}
    subject, seen = _subject(linear, splits), []
    subject.network.register_forward_hook(lambda module, given, out: seen.append(len(out)))
    assert {tag: _measured(tag, subject) for tag in alone} == alone
    assert sum(seen) == len(subject.images), "each training image once"


def test_label_errors_separate_clean_and_wrong_labels(linear: TrainConfig, splits: Splits) -> None:
    noisy = with_values(linear, {"data.label_noise": 0.5})
    right = _subject(noisy, splits).images.right_labels

    def measured(config: TrainConfig, predicted: Tensor) -> dict[str, float]:
        network = _Rows(one_hot(predicted, 4).float())
        return _measured("label-errors", _subject(config, splits, network))

    labels = _subject(noisy, splits).images.labels
    assert torch.equal(right, splits.train.labels)
    assert 0 < float((labels != right).double().mean()) < 1
    names = [f"train/{name}" for name in ("clean_error", "wrong_error", "recovered", "clean_lead")]
    assert measured(noisy, right) == dict(zip(names, [0, 1, 1, 1], strict=True))
    assert measured(noisy, labels) == dict.fromkeys(names, 0)
    assert measured(linear, right) == {"train/clean_error": 0}


def test_filter_scores_compare_the_teacher_with_the_student(
    linear: TrainConfig, splits: Splits
) -> None:
    values = {"mix.law": {"beta": 1.0}, "objective": {"filter": {"teacher": "erm"}}}
    subject = _subject(with_values(linear, values), splits)
    alone = _subject(with_values(linear, {"mix.law": {"beta": 1.0}}), splits)
    assert _measured("filter-scores", alone) == {}

    def worst(images: Tensor, hidden: object = None) -> Tensor:
        return 100 * torch.randn(len(images), 4, generator=torch.Generator().manual_seed(0))

    measured = _measured("filter-scores", replace(subject, teacher=worst))
    assert measured["filter/low_fraction"] < 0.2
    assert -1 <= measured["filter/el2n_correlation"] <= 1
    assert measured["filter/middle_ratio"] > 0
    assert measured["filter/tail_ratio"] > 1
    same = _measured("filter-scores", replace(subject, teacher=subject.logits))
    assert same["filter/low_fraction"] == 1.0


def test_gradient_noise_is_the_standard_deviation_of_batch_gradients(
    linear: TrainConfig, splits: Splits
) -> None:
    subject = _subject(with_values(linear, {"mix.law": "erm", "batch_size": 8}), splits)
    layer, rows = _layer(subject), []
    images, labels = _all(subject)
    for part in torch.split(torch.arange(len(images)), 8):
        inputs = images[part].flatten(1)
        pull = (layer(inputs).softmax(1) - one_hot(labels[part], 4)).detach() / len(part)
        rows.append(torch.cat([(pull.T @ inputs).flatten(), pull.sum(0)]).double())
    spread = torch.stack(rows).var(dim=0).sum().sqrt()
    found = _measured("gradient-noise", subject)["train/gradient_noise"]
    assert found == pytest.approx(float(spread), rel=1e-4)


def test_changed_test_images_are_reproducible_and_close_to_the_originals(
    linear: TrainConfig, splits: Splits
) -> None:
    images = _subject(linear, splits).held_out["test"]
    plain = torch.cat([images[part] for part in images.parts])
    after = {name: torch.cat(list(changed(images, name))) for name in CHANGES}
    for name, found in after.items():
        assert found.shape == plain.shape
        assert torch.equal(found, torch.cat(list(changed(images, name))))
    assert float((after["noise"] - plain).std()) == pytest.approx(NOISE_SD, rel=0.05)
    assert torch.equal(after["contrast"], CONTRAST * plain)
    assert float(after["blur"].var()) < float(plain.var())
    share = (after["occlusion"] != plain).double().mean(0).sum() / (plain[0] != 0).numel()
    assert 0.1 < float(share) <= 0.25


def test_outside_auroc_is_1_for_a_network_confident_only_on_test_images(
    linear: TrainConfig, splits: Splits
) -> None:
    class Sure(nn.Module):
        """A network that is confident only on the test images."""

        def __init__(self, known: Tensor) -> None:
            super().__init__()
            self.known = known

        def forward(self, images: Tensor) -> Tensor:
            is_known = (images.unsqueeze(1) == self.known).flatten(2).all(2).any(1)
            return is_known.float().unsqueeze(1) * torch.tensor([[9.0, 0.0, 0.0, 0.0]])

    images = _subject(linear, splits).held_out["test"]
    known = torch.cat([images[part] for part in images.parts])
    found = _measured("outside-images", _subject(linear, splits, Sure(known)))
    assert {name: found[f"test/{name}_auroc"] for name in OUTSIDE} == dict.fromkeys(OUTSIDE, 1.0)
    assert found["test/outside_confidence"] == pytest.approx(0.25)
    unsure = _measured("outside-images", _subject(linear, splits, Sure(known + 1)))
    assert unsure["test/outside_auroc"] == pytest.approx(0.5)


def test_area_above_matches_the_auroc_of_scikit_learn() -> None:
    own, others = torch.rand(50).round(decimals=1), torch.rand(40).round(decimals=1)
    truth = np.r_[np.ones(50), np.zeros(40)]
    expected = roc_auc_score(truth, np.r_[own.numpy(), others.numpy()])
    assert float(area_above(own, others)) == pytest.approx(expected)


def test_the_scores_probe_scores_each_split_and_network_at_each_evaluation(
    config: TrainConfig, splits: Splits
) -> None:
    values = {"probes": ["scores"], "epochs": 4, "eval_every": 2, "averaging": {"ema": 0.9}}
    probed = with_values(config, values | {"data.val_size": 32})
    splits = replace(splits, val=splits.test)
    state = TrainingState.initial(probed, splits.info, CPU)
    records = list(fit(probed, splits, state))
    names = {*PROBES["scores"].metrics}
    found_in = [names & record.metrics.keys() for record in records]
    assert found_in == [set(), names, set(), names]
    for (split, suffix), logits in state.logits.items():
        labels = splits.held_out(probed.data)[split].labels.numpy()
        area = auroc(logits.double().softmax(1).numpy(), labels)
        assert records[-1].metrics[f"{split}/auroc{suffix}"] == pytest.approx(area)
