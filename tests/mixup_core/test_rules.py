import pickle
import time
from types import SimpleNamespace

import pytest

from mixup_core.rules import RuleError, first_line, printable, require, shown, spell_time


def test_a_rule_error_message_has_rule_values_and_hint() -> None:
    error = RuleError("low <= high", {"low": 3, "high": None}, hint="swap them")
    assert str(error) == "`low <= high` must hold, got (low=3, high=None); swap them."
    assert str(RuleError("x", {"a": "b"})) == "`x` must hold, got (a='b')."


def test_a_prefix_changes_the_paths_of_a_rule_error_and_not_its_message() -> None:
    error = RuleError("low <= high", {"low": 3, "high": 2}, fields=("high",), hint="swap")
    placed = error.within("mix.").within("base.")
    assert placed.fields == ("base.mix.high",)
    assert placed.values == {"base.mix.low": 3, "base.mix.high": 2}
    assert (placed.rule, placed.hint, str(placed)) == (error.rule, "swap", str(error))
    assert error.fields == ("high",), "the error itself is not changed"


def test_a_rule_error_is_pickled_with_all_attributes() -> None:
    error = RuleError("low <= high", {"low": 3}, fields=("x.low",), hint="swap").within("mix.")
    again = pickle.loads(pickle.dumps(error))
    assert isinstance(again, RuleError)
    assert (again.rule, again.values, again.fields, again.hint, str(again)) == (
        error.rule, error.values, error.fields, error.hint, str(error),
    )  # fmt: skip


def test_require_reads_the_named_fields_from_the_value() -> None:
    given = SimpleNamespace(low=3, high=2)
    require(True, "low <= high", given, "low")
    with pytest.raises(RuleError) as caught:
        require(False, "low <= high", given, "high", "low", hint="swap")
    assert caught.value.values == {"high": 2, "low": 3}
    assert caught.value.fields == ("high", "low")
    assert str(caught.value).endswith("swap.")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        ([1, 2], "[1, 2]"),
        (list(range(50)), "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16..."),
    ],
)
def test_a_value_is_shown_as_a_study_file_writes_it(value: object, text: str) -> None:
    assert shown(value) == text


def test_control_and_direction_characters_are_shown_escaped_on_one_line() -> None:
    assert printable("a\nb\u202ec\x00") == r"a\nb\u202ec\x00"
    assert printable("\u00e9") == "\u00e9"
    assert len(printable("x" * 10_000)) < 1000


def test_a_time_is_shown_in_utc_in_every_time_zone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    assert spell_time(1_700_000_000_123) == "2023-11-14 22:13 UTC"
    monkeypatch.undo()
    time.tzset()


def test_an_error_without_a_message_is_named_by_its_type() -> None:
    assert first_line(OSError("\n no cluster\nTraceback ...")) == "no cluster"
    assert first_line(TimeoutError()) == "TimeoutError"
