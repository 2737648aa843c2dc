import io
import itertools
import math
import pickle
from dataclasses import replace
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy, one_hot

from mixup_core.config.building import with_values
from mixup_core.images import training
from mixup_core.images.batches import Draws
from mixup_core.images.choices.optimizers import Sgd
from mixup_core.images.config import VARIED, TrainConfig
from mixup_core.images.data.datasets import Splits, load
from mixup_core.images.forward import HiddenMix
from mixup_core.images.objectives.objective import Minimised, Plain
from mixup_core.images.training import Training, fit
from mixup_core.images.training_state import TrainingState, move_one_weight
from mixup_core.images.views import EvaluationImages, TrainingImages
from mixup_core.predictions import Predictions
from mixup_core.problem import DivergedError, Metric, StateError, problem_of
from mixup_core.records import AVERAGED
from mixup_core.seeding import stream
from tests.mixup_core.images.taught_runs import CPU, trained


def test_a_run_records_every_epoch_and_reduces_the_loss(
    config: TrainConfig, splits: Splits
) -> None:
    records, _ = trained(with_values(config, {"epochs": 12}), splits)
    assert [record.epoch for record in records] == list(range(12))
    assert set(records[0].metrics) == {
        "train/loss", "train/excess_loss", "test/error", "test/nll", "test/calibration_error",
    }  # fmt: skip
    assert records[-1].metrics["train/loss"] < 0.7 * records[0].metrics["train/loss"]


def _training(config: TrainConfig, splits: Splits) -> Training:
    state = TrainingState.initial(config, splits.info, CPU)
    return Training(config=config, data=splits, device=CPU, state=state)


def test_predictions_after_the_last_evaluation_reuse_its_logits(
    config: TrainConfig, splits: Splits, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = with_values(config, {"averaging": {"ema": 0.5}})
    run, loaded = _training(config, splits), _training(config, splits)
    next(iter(run))
    assert not run.state.logits
    list(run)
    loaded.load_bytes(run.to_bytes(), run.records)
    computed = loaded.predictions()
    monkeypatch.setattr("mixup_core.images.evaluation.logits_of", None)
    assert run.predictions() == computed
    assert Predictions.from_bytes(computed).splits["test"].logits.keys() == {"", AVERAGED}
    with pytest.raises(TypeError):
        loaded.predictions()


def test_the_progress_of_an_epoch_is_the_share_of_its_batches(
    config: TrainConfig, splits: Splits
) -> None:
    config = with_values(config, {"batch_size": 50})  # the last batch has 46
    run = _training(config, splits)
    assert [share for share in run.gradually() if isinstance(share, float)] == [0.5, 1.0] * 4


def test_metrics_of_an_objective_are_recorded_per_image(
    config: TrainConfig, splits: Splits, monkeypatch: pytest.MonkeyPatch
) -> None:
    on = Plain.on

    def measuring(self: Plain, *given: Any) -> Minimised:
        loss = on(self, *given).loss
        return Minimised(loss=loss, measured={"twice": 2 * loss.detach()})

    monkeypatch.setattr(Plain, "on", measuring)
    with pytest.raises(ValueError, match="plain measures train/twice, which its `metrics` do not"):
        trained(config, splits)
    monkeypatch.setattr(Plain, "metrics", {"train/twice": Metric(label="twice")})
    for record in trained(config, splits)[0]:
        assert record.metrics["train/twice"] == pytest.approx(2 * record.metrics["train/loss"])


def test_an_objective_of_a_plugin_may_mix_the_hidden_layer_by_weights_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(training, "is_of_plugin", lambda part: True)
    own, of_batch = (HiddenMix(layer=1, lam=torch.full((2,), lam)) for lam in (0.3, 0.5))
    objective = Mock(on=lambda batch, student, loss, teacher: student(torch.ones(2), own))
    student = Mock(return_value="minimised")
    batch: Any = SimpleNamespace(hidden=of_batch)
    assert training._minimised(objective, batch, student, Mock(), None) == "minimised"
    assert student.call_args.args[1] is own


def test_held_out_images_are_evaluated_at_the_interval_eval_every(
    config: TrainConfig, splits: Splits
) -> None:
    records, _ = trained(with_values(config, {"eval_every": 2}), splits)
    assert ["test/error" in record.metrics for record in records] == [False, True, False, True]


@pytest.mark.parametrize(
    ("law", "precision"),
    [("erm", "float32"), ("midpoint", "bfloat16"), ({"beta": 0.5}, "float32")],
)
def test_a_run_resumed_at_any_epoch_ends_with_the_same_bits(
    config: TrainConfig, splits: Splits, law: Any, precision: str
) -> None:
    config = with_values(config, {"mix.law": law, "precision": precision})
    whole, end = trained(config, splits)
    for stop in range(1, config.epochs):
        state = TrainingState.initial(config, splits.info, CPU)
        first = list(itertools.islice(fit(config, splits, state), stop))
        resumed = TrainingState.initial(with_values(config, {"seed": 9}), splits.info, CPU)
        resumed.load_bytes(state.to_bytes(), first)
        rest = list(fit(config, splits, resumed))
        assert first + rest == whole
        assert resumed.to_bytes() == end


def test_a_schedule_trains_each_epoch_under_its_own_law(
    config: TrainConfig, splits: Splits
) -> None:
    """The loss floors distinguish the laws: three quarters of the pairs differ in class."""
    phases = [{"law": "midpoint", "until": 1}, {"law": "erm", "until": 2}, {"beta": 1.0}]
    for schedule in ({"phases": phases}, "easy-hard-easy", {"linear": {"start": 0.5, "end": 8.0}}):
        ramped = with_values(config, {"mix.schedule": schedule})
        for record in fit(ramped, splits):
            floor = record.metrics["train/loss"] - record.metrics["train/excess_loss"]
            law = ramped.law_at(record.epoch)
            assert floor == pytest.approx(0.75 * law.label_entropy(), abs=1e-6)


@pytest.mark.parametrize("scope", ["batch", "sample"])
@pytest.mark.parametrize("partner", ["dataset", "permutation"])
def test_the_first_epoch_loss_matches_a_direct_computation(
    config: TrainConfig, splits: Splits, scope: str, partner: str
) -> None:
    """The first loss of an epoch, computed with soft labels and autograd, without mixing code."""
    values = {
        "mix.law": "midpoint", "mix.lam_scope": scope, "mix.partner": partner,
        "batch_size": 96, "epochs": 1,
    }  # fmt: skip
    config = with_values(config, values)
    record = next(fit(config, splits))
    state = TrainingState.initial(config, splits.info, CPU)
    images = TrainingImages(splits.train, splits.info, config.data, config.seed, CPU)

    order = torch.from_numpy(stream(0, "batch order", 0).permutation(96))
    gamma = torch.from_numpy(stream(0, "view scaling", 0).random((2, 96), dtype="float32"))
    rng = stream(0, "mixing", 0)
    if partner == "dataset":
        partners = torch.from_numpy(rng.integers(96, size=96))
    else:
        partners = order[torch.from_numpy(rng.permutation(96))]
    mixed = (images.batch(order, gamma[0]) + images.batch(partners, gamma[1])) / 2
    targets = (one_hot(images.labels[order], 4) + one_hot(images.labels[partners], 4)) / 2
    loss = cross_entropy(state.network(mixed), targets).detach()
    assert record.metrics["train/loss"] == pytest.approx(float(loss), rel=1e-5)
    floor = record.metrics["train/loss"] - record.metrics["train/excess_loss"]
    differ = 0.75 if partner == "dataset" else (1 - 1 / 96) * 72 / 95
    assert floor == pytest.approx(differ * config.mix.law.label_entropy())


def _drawn(config: TrainConfig, splits: Splits) -> dict[str, list[torch.Tensor]]:
    """Return everything that a run draws, by the source of randomness."""
    state = TrainingState.initial(config, splits.info, CPU)
    images = TrainingImages(splits.train, splits.info, config.data, config.seeds, CPU)
    plain = TrainingImages(splits.train, splits.info, replace(config.data, views="single"),
                           config.seeds, CPU)  # fmt: skip
    draws = Draws.for_training(config, 1, images)
    ones, every = torch.ones(len(images)), torch.arange(len(images))
    assert draws.augmentation is not None
    return {
        "subset": [plain.batch(every, ones)],
        "label-noise": [images.labels],
        "pairing": [images.batch(every, 0 * ones)],
        "initial-weights": [part.detach().clone() for part in state.network.parameters()],
        "order": [draws.order],
        "augmentation": [draws.augmentation],
        "view-scaling": [draws.scaling],
        "mixing": [draws.lam, draws.partners],
    }


DRAWING = {
    "mix.law": {"beta": 1.0}, "mix.lam_scope": "sample", "data.augment": "crop",
    "data.label_noise": 0.5,
}  # fmt: skip
FOLLOW = {"subset": {"pairing", "label-noise"}, "rounding": {"initial-weights"}}
"""Sources whose draws depend on that of another source."""


@pytest.mark.parametrize("source", VARIED)
def test_varying_or_redrawing_one_source_keeps_the_draws_of_every_other_source(
    config: TrainConfig, splits: Splits, source: str
) -> None:
    subset = {"data.num_train": 40} if source == "subset" else {}
    config = with_values(config, {**DRAWING, **subset})

    def equal(one: dict[str, Any], other: dict[str, Any]) -> set[str]:
        """Return the sources of equal draws, without those that follow the varied source."""
        found = (_drawn(with_values(config, values), splits) for values in (one, other))
        first, second = found
        known = first.keys() - FOLLOW.get(source, set()) - ({"subset"} if not subset else set())
        return {name for name in known if all(map(torch.equal, first[name], second[name]))}

    others = equal({}, {}) - {source}
    own = {source} - {"rounding"}
    assert equal({}, {"vary": source, "seed": 3}) == others
    assert equal({"seed": 3}, {"vary": source, "seed": 3}) == own
    assert equal({"seed": 3}, {"seed": 3, "redraw": source}) == others
    assert equal({"seed": 3, "redraw": "all"}, {"seed": 3, "redraw": source}) == own


@pytest.mark.parametrize("values", [{}, {"redraw": "all"}, {"redraw": "order"}, {"vary": "mixing"}])
def test_a_teacher_draws_all_of_its_training_but_its_data_apart(
    config: TrainConfig, splits: Splits, values: dict[str, str]
) -> None:
    common = {**DRAWING, "seed": 3, "data.num_train": 40}
    student = with_values(config, common | values)
    drawn = _drawn(student, splits)
    taught_by = _drawn(with_values(student, {"as_teacher": True}), splits)
    of_data = {"subset", "pairing", "label-noise"}
    assert drawn.keys() >= of_data
    for source, parts in drawn.items():
        assert all(map(torch.equal, parts, taught_by[source])) == (source in of_data), source


def test_a_non_finite_loss_ends_the_run_with_epoch_batch_law_and_rate(
    config: TrainConfig, splits: Splits
) -> None:
    hot = with_values(config, {"optimizer": Sgd(lr=1000.0, weight_decay=1e30)})
    with pytest.raises(DivergedError, match=r"loss=.*epoch=0, batch=1, law=Erm\(\), lr=1000\.0"):
        list(fit(hot, splits))


def test_a_non_finite_evaluation_ends_the_run_with_its_epoch(
    config: TrainConfig, splits: Splits
) -> None:
    state = TrainingState.initial(config, splits.info, CPU)
    records = fit(config, splits, state)
    next(records)
    for name, buffer in state.network.named_buffers():
        if name.endswith("running_mean"):
            buffer.fill_(math.nan)
    with pytest.raises(DivergedError) as caught:
        next(records)
    assert caught.value.epoch == 1


def test_code_in_a_stored_state_is_not_loaded(config: TrainConfig, splits: Splits) -> None:
    state = TrainingState.initial(config, splits.info, CPU)
    torch.save(exec, content := io.BytesIO())
    with pytest.raises(StateError, match="UnpicklingError"):
        state.load_bytes(content.getvalue(), [])
    with pytest.raises(StateError, match="ArchiveError"):
        state.load_bytes(pickle.dumps(exec, protocol=2), [])


def test_a_fault_of_the_machine_is_not_one_of_the_stored_state(
    config: TrainConfig, splits: Splits, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = TrainingState.initial(config, splits.info, CPU)
    monkeypatch.setattr(torch, "load", Mock(side_effect=MemoryError))
    with pytest.raises(MemoryError):
        state.load_bytes(state.to_bytes(), [])


def test_the_trained_network_gives_the_outputs_of_its_run(config: TrainConfig) -> None:
    values = {"data.num_train": 100, "data.pool": 2, "epochs": 1, "model.width": 2}
    config = with_values(config, values)
    data = load(config.data)
    _, state = trained(config, data)
    network, example = problem_of(config).trained(config, state)
    assert not network.training
    assert len(example) == 2
    assert data.test is not None
    images = EvaluationImages(data.test, data.info, config.data, CPU)[slice(0, 5)]
    assert (example.shape[1:], example.dtype) == (images.shape[1:], images.dtype)
    own = TrainingState.initial(config, data.info, CPU)
    own.load_bytes(state, [])
    with torch.no_grad():
        torch.testing.assert_close(network(images), own.network.eval()(images), rtol=0, atol=0)


@pytest.mark.parametrize("index", range(4))
def test_only_the_drawn_weight_moves_by_one_ulp(
    monkeypatch: pytest.MonkeyPatch, index: int
) -> None:
    drawn = SimpleNamespace(integers=lambda total: index if total == 4 else None)
    monkeypatch.setattr("mixup_core.images.training_state.stream", lambda *_: drawn)
    network = nn.Sequential(nn.Conv2d(1, 1, (1, 2)), nn.BatchNorm2d(1), nn.Linear(1, 2))
    # Weights of layers first: their index is that of the draw.
    found = sorted(network.parameters(), key=lambda part: part.ndim == 1)
    before = torch.cat([part.detach().flatten() for part in found]).numpy()
    move_one_weight(network, seed=0)
    after = torch.cat([part.detach().flatten() for part in found]).numpy()
    expected = before.copy()
    expected[index] = np.nextafter(before[index], np.float32(np.inf))
    np.testing.assert_array_equal(after, expected)
