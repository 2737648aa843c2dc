"""Schedules: the law of every epoch, at every boundary, and its part in keys."""

import math
from typing import Any

import pytest

from mixup_core.config.building import parsed, with_values
from mixup_core.images.config import TrainConfig
from mixup_core.keys import run_key, stage_keys
from mixup_core.laws import Beta, Erm, Midpoint
from mixup_core.laws.beta import MAX_ALPHA, MIN_ALPHA
from mixup_core.laws.schedules import (
    CosineRamp,
    Easy,
    EasyHardEasy,
    Hard,
    LinearRamp,
    Phase,
    Phases,
    Schedule,
    epoch_after,
)
from mixup_core.rules import RuleError

BASE = TrainConfig(epochs=12, batch_size=8)


def _laws(values: dict[str, Any], epochs: int = 12) -> list[Any]:
    config = with_values(BASE, {"epochs": epochs, **values})
    return [config.law_at(epoch) for epoch in range(epochs)]


def test_a_phase_ends_before_the_epoch_until_and_the_next_begins_at_that_epoch() -> None:
    written = {"phases": [{"law": "midpoint", "until": 2}, {"law": {"beta": 1}, "until": 3}, "erm"]}
    schedule = parsed(Schedule, written)
    assert schedule == Phases(
        phases=(Phase(law=Midpoint(), until=2), Phase(law=Beta(alpha=1.0), until=3), Erm())
    )
    laws = [schedule.law_at(epoch, 5) for epoch in range(5)]
    assert laws == [Midpoint(), Midpoint(), Beta(alpha=1.0), Erm(), Erm()]
    assert schedule.last_change == 3


def _phases(*phases: Any) -> dict[str, Any]:
    return {"mix.schedule": {"phases": list(phases)}}


def _until(epoch: int) -> dict[str, Any]:
    return {"law": "midpoint", "until": epoch}


@pytest.mark.parametrize(
    ("values", "rule", "fields"),
    [
        (_phases(), "phases must not be empty", "schedule.phases"),
        (_phases("erm", "midpoint"), "phase except the last needs", "schedule.phases.0.until"),
        (_phases({"law": "erm"}, "erm"), "phase except the last needs", "schedule.phases.0.until"),
        (_phases(_until(0), "erm"), "`until` must be above 0", "schedule.phases.0.until"),
        (_phases(_until(3), _until(3), "erm"), "must be above 3", "schedule.phases.1.until"),
        (_phases(_until(3), _until(5)), r"last .* must not have .*until=5\)",
         "schedule.phases.1.until"),
        (_phases(_until(12), "erm"), "must be below epochs", "schedule.phases epochs"),
        ({"mix.schedule": {"easy-hard-easy": {"low": 1.0}}}, "low < high",
         "schedule.low schedule.high"),
        *(({"mix.schedule": schedule}, rule, "schedule.base schedule.low schedule.high")
          for schedule, rule in (
              ({"easy": {"high": 7.0}}, r"base \*\* high <= 1e6"),
              ({"easy": {"high": 1e9}}, r"base \*\* high <= 1e6"),
              ({"easy": {"low": -1e9}}, r"1e-6 <= base \*\* low"),
              ({"hard": {"low": -7.0}}, r"1e-6 <= base \*\* low"))),
        ({"mix.switch_fraction": 0.5, "mix.switch_epoch": 1}, "must not both be given",
         "switch_fraction switch_epoch"),
        ({"mix.schedule": "easy", "mix.law": "midpoint"}, "must be left out", "schedule law"),
    ],
)  # fmt: skip
def test_gaps_overlaps_contradictions_and_ramps_out_of_range_are_refused(
    values: dict[str, Any], rule: str, fields: str
) -> None:
    with pytest.raises(RuleError, match=rule) as caught:
        with_values(BASE, values)
    assert [field.removeprefix("mix.") for field in caught.value.fields] == fields.split()


def test_the_limits_of_schedule_fields_are_accepted() -> None:
    first = Phases(phases=(Phase(law=Midpoint(), until=1), Erm()))
    assert [first.law_at(epoch, 2) for epoch in range(2)] == [Midpoint(), Erm()]
    assert _laws(_phases(_until(11), "erm")) == [Midpoint()] * 11 + [Erm()]
    endless = (Phases(phases=(part,)) for part in (Erm(), Phase(law=Erm())))
    assert [phases.last_change for phases in (first, *endless)] == [1, 0, 0]
    for ramped in ("hard", {"linear": {"start": 0.1, "end": 1.0}}):
        assert _laws({"mix.schedule": ramped}, epochs=1) == [Beta(alpha=0.1)]
    for ramp in (LinearRamp, CosineRamp):
        assert ramp(start=MAX_ALPHA, end=1.0).law_at(0, 2) == Beta(alpha=MAX_ALPHA)
        assert ramp(start=MIN_ALPHA, end=1.0).law_at(0, 2) == Beta(alpha=MIN_ALPHA)
        assert ramp(start=1.0, end=MAX_ALPHA).law_at(0, 2) == Beta(alpha=1.0)
    assert Hard(low=-6.0).law_at(0, 2) == Beta(alpha=MIN_ALPHA)
    assert Easy(high=6.0).law_at(0, 2) == Beta(alpha=MAX_ALPHA)
    assert (Easy().base, Easy().low, Easy().high) == (10.0, -1.0, 1.0)


def test_ramps_match_their_formulas() -> None:
    """With u = t / T, the slides give 10^(1 - 2u), 10^(2u - 1) and 10^(1 - 4|u - 1/2|)."""
    epochs = 40
    for schedule, formula in (
        (Easy(), lambda u: 10 ** (1 - 2 * u)),
        (Hard(), lambda u: 10 ** (2 * u - 1)),
        (EasyHardEasy(), lambda u: 10 ** (1 - 4 * abs(u - 0.5))),
        (Hard(base=2.0, low=0.0, high=3.0), lambda u: 2 ** (3 * u)),
        (LinearRamp(start=0.25, end=4.0), lambda u: 0.25 * 16**u),
        (CosineRamp(start=10.0, end=0.1), lambda u: 10 ** math.cos(math.pi * u)),
    ):
        expected = [formula(epoch / epochs) for epoch in range(epochs)]
        found = [schedule.law_at(epoch, epochs).alpha for epoch in range(epochs)]
        assert found == pytest.approx(expected, rel=1e-11)


@pytest.mark.parametrize(
    ("fraction", "epochs", "epoch"),
    [(0.0, 9, 0), (1.0, 9, 9), (2 / 3, 600, 400), (0.6666667, 600, 400), (0.5, 5, 3), (0.3, 1, 0)],
)
def test_epoch_after_rounds_a_fraction_to_the_nearest_epoch(
    fraction: float, epochs: int, epoch: int
) -> None:
    assert epoch_after(fraction, epochs) == epoch


@pytest.mark.parametrize("switch_epoch", range(13))
def test_a_switch_takes_effect_at_its_epoch_under_any_schedule(switch_epoch: int) -> None:
    for before in ({"mix.law": "midpoint"}, {"mix.schedule": "easy"}):
        laws = _laws({**before, "mix.switch_epoch": switch_epoch})
        assert laws[:switch_epoch] == _laws(before)[:switch_epoch]
        assert laws[switch_epoch:] == [Erm()] * (12 - switch_epoch)


@pytest.mark.parametrize("law", ["erm", "midpoint", {"beta": 0.5}])
def test_a_schedule_of_one_phase_has_the_stage_keys_of_the_constant_law(law: Any) -> None:
    constant = with_values(BASE, {"mix.law": law})
    phased = with_values(BASE, {"mix.schedule": {"phases": [law]}})
    assert stage_keys(phased) == stage_keys(constant)
    assert run_key(phased) != run_key(constant)


def test_schedules_share_the_stages_of_their_equal_first_epochs() -> None:
    def keys(**values: Any) -> tuple[str, ...]:
        mix = {f"mix.{name}": value for name, value in values.items() if name != "epochs"}
        return stage_keys(with_values(BASE, mix | {"epochs": values.get("epochs", 12)}))

    phased = stage_keys(
        with_values(BASE, _phases(_until(5), {"law": {"beta": 1.0}, "until": 8}, "erm"))
    )
    switched = keys(law="midpoint", switch_epoch=5)
    assert phased[:5] == switched[:5]
    assert set(phased[5:]).isdisjoint(switched[5:])
    easy, stopped = keys(schedule="easy"), keys(schedule="easy", switch_epoch=4)
    assert easy[:4] == stopped[:4]
    assert easy[4] != stopped[4]
    longer = keys(schedule="easy", epochs=24)
    assert easy[0] == longer[0], "both begin with alpha = 10"
    assert set(easy[1:]).isdisjoint(longer[1:]), "the same ramp over more epochs"
    halves = keys(schedule={"linear": {"start": 10.0, "end": 0.1}})
    assert halves == easy, "another name for the same laws"
