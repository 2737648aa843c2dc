"""Notes: small files that are read exactly as written, or not at all."""

import dataclasses
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from mixup_core.store import json_records
from mixup_core.store.errors import UnreadableError
from mixup_core.store.json_records import (
    MOST_SECONDS,
    Fraction,
    Natural,
    RecordError,
    Seconds,
    filled,
    parse_note,
    read_note,
    record_of,
)
from tests.damages import DAMAGES, bound_by_modes


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    name: str
    is_last: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Limited:
    count: Natural = 0
    seconds: Seconds = 0.0
    within: Fraction = 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Whole:
    count: int
    share: float | int | None
    parts: tuple[Part, ...]
    by_name: Mapping[str, Mapping[str, Any]]
    title: str = "untitled"
    remarks: Mapping[str, str] = dataclasses.field(default_factory=dict)


WHOLE = Whole(
    count=3,
    share=0.5,
    parts=(Part(name="a"), Part(name="b", is_last=True)),
    by_name={"x": {"y": 1}},
)
PLAIN = json.loads(json.dumps(dataclasses.asdict(WHOLE)))


@pytest.mark.parametrize("damage", sorted(DAMAGES.keys() - {"bit flipped", "other's content"}))
def test_read_note_returns_none_for_an_unreadable_file(damage: str) -> None:
    with bound_by_modes() as folder:
        path = folder / "note.json"
        path.write_text(json.dumps(PLAIN))
        assert read_note(path) == PLAIN
        DAMAGES[damage](path)
        assert read_note(path) is None


def test_read_note_returns_none_for_a_file_above_the_size_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_records, "LARGEST", 8)
    path = tmp_path / "note.json"
    for content, read in (('{"a": 1}', {"a": 1}), ('{"a": 12}', None)):
        path.write_text(content)
        assert read_note(path) == read


def test_parse_note_returns_none_for_anything_but_a_printable_mapping() -> None:
    for content in (
        b"", b"[]", b"null", b"3", b"{", b"\xff{}", b"[" * 100_000, b'{"a": ' * 100_000,
        b'{"a": "\\ud800"}', b'{"a": %s}' % (b"9" * 5000), UnreadableError("is no file"),
    ):  # fmt: skip
        assert parse_note(content) is None, content


def test_characters_beyond_16_bits_are_accepted(tmp_path: Path) -> None:
    note = {"command": "mixsweep run \N{PARTY POPPER}"}
    assert parse_note(json.dumps(note).encode()) == note


def test_a_dataclass_is_filled_from_json_with_its_types() -> None:
    assert filled(Whole, PLAIN) == WHOLE
    assert filled(Whole, PLAIN | {"added": "later"}) == WHOLE
    assert filled(Whole, {**PLAIN, "share": None}) == dataclasses.replace(WHOLE, share=None)
    assert filled(Whole, {**PLAIN, "share": 2}) == dataclasses.replace(WHOLE, share=2)


def test_a_missing_field_takes_its_default_and_a_missing_required_field_gives_none() -> None:
    left_out = {"title", "share", "remarks"}
    without = {key: value for key, value in PLAIN.items() if key not in left_out}
    assert filled(Whole, without) == dataclasses.replace(WHOLE, share=None)
    for name in ("count", "parts", "by_name"):
        assert filled(Whole, {key: value for key, value in PLAIN.items() if key != name}) is None


def test_filled_returns_none_for_a_value_of_another_type() -> None:
    for other in (
        {"count": "3"}, {"count": 3.0}, {"count": True}, {"share": "half"}, {"share": False},
        {"parts": {"name": "a"}}, {"parts": [{"name": 1}]}, {"parts": ["a"]}, {"parts": "ab"},
        {"parts": [{"name": "a", "is_last": 1}]}, {"by_name": []}, {"by_name": {"x": 1}},
        {"title": None},
    ):  # fmt: skip
        assert filled(Whole, PLAIN | other) is None, other
    for plain in (None, [], "text", 3):
        assert filled(Whole, plain) is None


@pytest.mark.parametrize("value", [-1, 2**63, 10**400, -(10**400), 1.5])
def test_numbers_out_of_range_are_refused_with_their_value(value: float) -> None:
    with pytest.raises(
        RecordError, match=f"count: must be a whole number .*, got {str(value)[:300]}"
    ):
        record_of(Limited, {"count": value})


@pytest.mark.parametrize(("name", "low", "high"), [("seconds", 0, MOST_SECONDS), ("within", 0, 1)])
def test_durations_and_fractions_have_ends(name: str, low: float, high: float) -> None:
    for value in (low, high / 3, high):
        assert getattr(record_of(Limited, {name: value}), name) == value
    for wrong in (-5, -1e-9, high * 1.1, 1e308, math.nan, math.inf, "1", None, True):
        with pytest.raises(RecordError, match=f"{name}: must be .* 0 to "):
            record_of(Limited, {name: wrong})
