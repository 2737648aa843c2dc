from collections.abc import Sequence

import pytest

from mixup_core.config.building import parsed
from mixup_core.config.written_forms import SpellingError, spelled
from mixup_core.records import EpochRecord
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


def test_the_last_readout_uses_the_last_record_even_without_a_measurement() -> None:
    assert Last().of(records(0.3, 0.2), "test/error") == 0.2
    assert Last().of(records(0.3, None), "test/error") is None


def test_a_mean_readout_uses_the_last_evaluations_and_not_the_last_epochs() -> None:
    readout = MeanOfLast(evaluations=2)
    assert readout.of(records(0.9, 0.4, None, 0.2, None), "test/error") == pytest.approx(0.3)


def test_the_averaged_readout_uses_metrics_of_averaged_weights() -> None:
    averaged = records(0.1, name="test/error_averaged")
    assert Averaged().of(averaged, "test/error") == 0.1
    assert Averaged().of(records(0.1), "test/error") is None


def test_the_rise_readout_is_the_last_measurement_minus_the_lowest() -> None:
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
def test_the_peak_readout_is_the_highest_rise_followed_by_an_equal_fall(
    values: tuple[float | None, ...], height: float
) -> None:
    assert Peak().of(records(*values), "test/error") == pytest.approx(height)


def test_the_rise_readout_is_allowed_for_claims_only() -> None:
    assert parsed(ClaimReadout, spelled(Rise())) == Rise()
    with pytest.raises(SpellingError, match="got text 'rise'"):
        parsed(Readout, spelled(Rise()))


def _judged(*pairs: tuple[float, float] | None) -> Sequence[EpochRecord]:
    """Return a record for each pair of validation and test error; None means not measured."""
    found = [{} if pair is None else dict(zip(("val/error", "test/error"), pair, strict=True))
             for pair in pairs]  # fmt: skip
    return [EpochRecord(epoch=epoch, metrics=metrics) for epoch, metrics in enumerate(found)]


RISING = _judged((0.5, 0.51), None, (0.3, 0.35), (0.3, 0.2), (0.4, 0.1), (0.2, 0.25), (0.6, 0.6))


def test_the_best_validation_readout_uses_the_first_epoch_with_the_lowest_error() -> None:
    assert BestValidation().of(RISING, "test/error") == 0.25
    assert BestValidation().of(RISING[:5], "test/error") == 0.35


@pytest.mark.parametrize(("patience", "error"), [(1, 0.35), (2, 0.35), (3, 0.25), (9, 0.25)])
def test_the_early_stopping_readout_uses_the_best_epoch_within_its_patience(
    patience: int, error: float
) -> None:
    assert EarlyStopping(patience=patience).of(RISING, "test/error") == error
