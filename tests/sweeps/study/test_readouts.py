from collections.abc import Sequence

import pytest

from mixup_core.records import EpochRecord
from mixup_core.rules import RuleError
from mixup_core.tree.building import parsed
from mixup_core.tree.spelling_errors import SpellingError
from mixup_core.tree.written_forms import spelled
from sweeps.study.readouts import (
    Averaged,
    BestValidation,
    ClaimReadout,
    EarlyStopping,
    Last,
    MeanOfLast,
    Peak,
    Readout,
    Rise,
)


def records(*values: float | None, name: str = "test/error") -> Sequence[EpochRecord]:
    """Return one record per value; None means not measured."""
    metrics: list[dict[str, float]] = [{} if value is None else {name: value} for value in values]
    return [EpochRecord(epoch=epoch, metrics=found) for epoch, found in enumerate(metrics)]


def test_the_last_record_stands_for_a_run_even_if_it_did_not_measure() -> None:
    assert Last().of(records(0.3, 0.2), "test/error") == 0.2
    assert Last().of(records(0.3, None), "test/error") is None


def test_a_mean_is_of_the_last_evaluations_and_not_of_the_last_epochs() -> None:
    readout = MeanOfLast(evaluations=2)
    assert readout.of(records(0.9, 0.4, None, 0.2, None), "test/error") == pytest.approx(0.3)


def test_a_mean_of_fewer_evaluations_than_asked_for_is_none() -> None:
    assert MeanOfLast(evaluations=3).of(records(0.4, None, 0.2), "test/error") is None


def test_a_mean_of_one_evaluation_is_refused() -> None:
    with pytest.raises(RuleError, match="evaluations >= 2"):
        MeanOfLast(evaluations=1)


def test_averaged_weights_are_read_under_their_own_name() -> None:
    averaged = records(0.1, name="test/error_averaged")
    assert Averaged().of(averaged, "test/error") == 0.1
    assert Averaged().of(records(0.1), "test/error") is None


def test_a_rise_is_the_last_measurement_minus_the_least_of_the_run() -> None:
    assert Rise().of(records(0.9, 0.2, None, 0.3), "test/error") == pytest.approx(0.1)
    assert Rise().of(records(0.3, 0.2), "test/error") == 0.0
    assert Rise().of(records(0.3, None), "test/error") is None


@pytest.mark.parametrize(
    ("values", "height"),
    [
        ((0.9, 0.2, None, 0.5, 0.1), 0.3),
        ((0.9, 0.2, 0.5, 0.4), 0.1),
        ((0.9, 0.5, 0.1), 0.0),
        ((0.1, 0.5, 0.9), 0.0),
        ((0.3, 0.4, 0.2, 0.6, 0.3), 0.3),
    ],
)
def test_a_peak_is_the_highest_rise_that_is_followed_by_as_large_a_fall(
    values: tuple[float | None, ...], height: float
) -> None:
    assert Peak().of(records(*values), "test/error") == pytest.approx(height)


def test_two_evaluations_have_no_peak() -> None:
    assert Peak().of(records(0.3, 0.2), "test/error") is None


def test_a_rise_belongs_to_a_claim_and_to_no_study() -> None:
    assert parsed(ClaimReadout, spelled(Rise())) == Rise()
    with pytest.raises(SpellingError, match="got text 'rise'"):
        parsed(Readout, spelled(Rise()))


@pytest.mark.parametrize("readout", [Last(), MeanOfLast(evaluations=5), Averaged()])
def test_a_read_out_is_written_as_it_is_read(readout: Readout) -> None:
    assert parsed(Readout, spelled(readout)) == readout


def _judged(*pairs: tuple[float, float] | None) -> Sequence[EpochRecord]:
    """Return a record for each pair of validation and test error; None means not measured."""
    found = [{} if pair is None else dict(zip(("val/error", "test/error"), pair, strict=True))
             for pair in pairs]  # fmt: skip
    return [EpochRecord(epoch=epoch, metrics=metrics) for epoch, metrics in enumerate(found)]


RISING = _judged((0.5, 0.51), None, (0.3, 0.35), (0.3, 0.2), (0.4, 0.1), (0.2, 0.25), (0.6, 0.6))


def test_the_best_validation_error_chooses_the_epoch_and_the_first_of_equal_ones() -> None:
    assert BestValidation().of(RISING, "test/error") == 0.25
    assert BestValidation().of(RISING[:5], "test/error") == 0.35


@pytest.mark.parametrize(("patience", "error"), [(1, 0.35), (2, 0.35), (3, 0.25), (9, 0.25)])
def test_early_stopping_keeps_the_best_before_its_patience_ends(
    patience: int, error: float
) -> None:
    assert EarlyStopping(patience=patience).of(RISING, "test/error") == error


def test_without_validation_images_there_is_no_best_epoch() -> None:
    assert BestValidation().of(records(0.1, 0.2), "test/error") is None
    assert BestValidation().of(RISING, "train/kept_fraction") is None
