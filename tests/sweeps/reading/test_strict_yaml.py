import re

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

import sweeps.reading.strict_yaml
from sweeps.reading.strict_yaml import (
    MAX_BYTES,
    REFUSED,
    Place,
    dotted,
    holds_refused,
    read_value,
    read_yaml,
    write_yaml,
)


def place_at(line: int) -> Place:
    return Place(source="f", line=line)


def read(text: str) -> object:
    document = read_yaml(text.encode(), place_at)
    assert document.faults == []
    return document.value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-3", 0.001),
        ("1E3", 1000.0),
        (".5", 0.5),
        ("+1", 1),
        ("-0", 0),
        ("1.", 1.0),
        ("true", True),
        ("null", None),
        ("~", None),
        ("'no'", "no"),
        ("'1e-3'", "1e-3"),
        ("0o17", "0o17"),
        ("089", "089"),
        ("1e", "1e"),
        ("a: b", {"a": "b"}),
        ("[a, [1]]", ["a", [1]]),
        ("{0.5: 0.7, 1: 0.3}", {"0.5": 0.7, "1": 0.3}),
        ("{'0.5': a, b: c}", {"0.5": "a", "b": "c"}),
    ],
)
def test_plain_yaml_scalars_are_read_with_the_expected_value_and_type(
    text: str, value: object
) -> None:
    result = read(text)
    assert result == value
    assert type(result) is type(value)


REFUSED_TEXTS = (
    "no,Yes,ON,True,FALSE,NULL,0777,0x1F,0b11,1_000,1_0.5,12:30:45,1:30.5,2024-01-01,"
    ".inf,-.INF,.NaN,1e999,&a x,*a,!!str x,!x"
)


@pytest.mark.parametrize("text", REFUSED_TEXTS.split(","))
def test_values_that_yaml_parsers_read_differently_are_refused(text: str) -> None:
    document = read_yaml(text.encode(), place_at)
    assert document.value is REFUSED
    assert len(document.faults) == 1


_NO_NUMBER = "expected a name or a decimal number, got a non-decimal number; quote '0777'"


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"\xff", "f:1: not UTF-8 text"),
        (b"\nb: \xff\n", "f:2: not UTF-8 text"),
        (b"\nb: \x00", r"f:2: control characters are not allowed, got '\x00'"),
        (b"a: 1\n\tb: 1\n", "f:2: tabs cannot indent (column 1)"),
        (b"a: 1\n---\nb: 2\n", "f:2: expected one document, got a second"),
        (b"a: 1\nb: [[1], &b 2]", "f:2: b[1]: anchors are not allowed, got &b"),
        (b"a: !x 1", "f:1: a: tags are not allowed, got !x"),
        (b"<<: 1", "f:1: merge keys are not allowed, got <<"),
        (b"a: 1\n \tb: 1\n", "f:2: tabs cannot indent (column 2)"),
        (b"1: a", "f:1: keys must be text, got 1; quote it"),
        (b"{1: 0.7, a: 0.3}", "f:1: keys must be text, got 1; quote it"),
        (b"0777: 1", f"f:1: {_NO_NUMBER}"),
        (b"[1]: a", "f:1: keys must be text, got a collection"),
        (b"a: 1\na: 2", "f:2: key 'a' appears twice (lines 1 and 2)"),
        (b"x:\n  a: 1\n  a: 2", "f:3: x: key 'a' appears twice (lines 2 and 3)"),
        (b"x: {y: [0777]}", f"f:1: x.y[0]: {_NO_NUMBER}"),
        (b"x: No", "f:1: x: YAML reads No as the boolean false; quote a name as 'No', "
         "or write a boolean as false"),
        (b"x: 1e999", "f:1: x: must be a finite number, got 1e999"),
        (b"x: -.INF", "f:1: x: must be a finite number, got -.INF"),
        (b"x: 1_0.5", f"f:1: x: {_NO_NUMBER.replace('0777', '1_0.5')}"),
        (b"x: 2024-01-01", "f:1: x: expected a name or a decimal number, got a date; quote "
                           "'2024-01-01'"),
        (b"x: NULL", "f:1: x: expected a name or a decimal number, got a spelling of null; quote "
                     "'NULL'"),
    ],
)  # fmt: skip
def test_refused_values_are_named_with_line_and_path(content: bytes, fault: str) -> None:
    assert list(map(str, read_yaml(content, place_at).faults)) == [fault]


@pytest.mark.parametrize(
    ("content", "line", "column"),
    [
        (b"a: [1\n", 2, 1),
        (b"ab: c: d\n", 1, 6),
        (b"a: 1\n b: 2\n", 2, 3),
        (b"a: [1,\n\t2,\n@]\n", 3, 1),
    ],
)
def test_invalid_yaml_is_refused_with_its_line_and_column(
    content: bytes, line: int, column: int
) -> None:
    document = read_yaml(content, place_at)
    (fault,) = document.faults
    assert document.places == {(): place_at(line)}
    assert re.fullmatch(rf"f:{line}: not valid YAML: \w.* \(column {column}\)", str(fault))


def test_escapes_that_only_libyaml_refuses_are_refused_with_pure_pyyaml(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sweeps.reading.strict_yaml, "_LOADER", yaml.SafeLoader)
    (fault,) = read_yaml(b'a: "\\UFFFFFFFF"', place_at).faults
    assert str(fault).startswith("f:1: not valid YAML: ")
    document = read_yaml(rb'["\ud7ff", "\ud800", "\udfff", "\ue000"]', place_at)
    assert [fault.path for fault in document.faults] == ["[1]", "[2]"]


def test_empty_documents_byte_order_marks_and_files_up_to_1_mb_are_accepted() -> None:
    assert read("") is read("# only\n") is None
    assert read_yaml(b"", place_at).places == {(): place_at(1)}
    assert read("\ufeffa: 1") == {"a": 1}
    assert read("'<<': 1") == {"<<": 1}
    assert len(str(read("x" * MAX_BYTES))) == MAX_BYTES == 1_000_000
    (fault,) = read_yaml(b"x" * (MAX_BYTES + 1), place_at).faults
    assert str(fault) == "f:1: larger than 1 MB"


def test_faults_are_in_the_order_of_their_lines_and_values_have_the_line_of_their_key() -> None:
    faults = read_yaml(b"1: a\nb: no\n", place_at).faults
    assert [fault.place.line for fault in faults] == [1, 2]
    document = read_yaml(b"# first\na:\n  b:\n\n    - 1\n    - 2\n", place_at)
    lines = {dotted(at): place.line for at, place in document.places.items() if at}
    assert lines == {"a": 2, "a.b": 3, "a.b[0]": 5, "a.b[1]": 6}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (" 1e-3 ", 0.001),
        ("photos #2", "photos #2"),
        ("'7'", "7"),
        ("", None),
        ("['#5', 2]", ["#5", 2]),
        ("[1, 2] # x", REFUSED),
        ("[1, # x\n 2]", REFUSED),
    ],
)
def test_a_comment_in_a_given_value_is_refused_and_a_quoted_hash_is_not(
    text: str, value: object
) -> None:
    document = read_value(text, place_at(1), ())
    assert document.value == value
    assert bool(document.faults) == (value is REFUSED)


def test_a_fault_has_the_line_of_its_value_or_of_the_nearest_written_parent() -> None:
    document = read_yaml(b"x: 1\na:\n  b: 1\n", place_at)
    for at in (("a", "b"), ("a", "c"), ("c", 0)):
        document.report(at, "wrong")
    told = ["f:3: a.b: wrong", "f:2: a.c: wrong", "f:1: c[0]: wrong"]
    assert list(map(str, document.faults)) == told


def test_nesting_deeper_than_32_is_refused() -> None:
    assert read("[" * 32 + "]" * 32) != []
    for deep in (b"[" * 33 + b"]" * 33, b"{" * 33 + b"}" * 33):
        document = read_yaml(deep, place_at)
        assert document.value is REFUSED
        assert list(map(str, document.faults)) == ["f:1: nested deeper than 32 levels"]
    in_maps = [("{a: " * depth + "1" + "}" * depth).encode() for depth in (31, 32)]
    assert [bool(read_yaml(text, place_at).faults) for text in in_maps] == [False, True]


@pytest.mark.parametrize(
    ("value", "holds"),
    [
        (REFUSED, True),
        ([1, [REFUSED]], True),
        ({"a": {"b": REFUSED}, "c": 1}, True),
        ([1, [2]], False),
        ({"a": {"b": 1}}, False),
        ("text", False),
    ],
)
def test_a_refused_value_is_located_at_any_depth(value: object, holds: bool) -> None:
    assert holds_refused(value) is holds


scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8"))
    | st.from_regex(r"[-+.0-9eE_:]{1,8}", fullmatch=True)
)
documents = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)


@given(documents)
@example({"\x85": "\u2028", "1e-3": 1e-3})
def test_written_values_are_read_back_with_their_types(document: object) -> None:
    result = read(write_yaml(document))
    assert repr(result) == repr(document)


def test_letters_and_the_order_of_keys_are_written_without_change() -> None:
    assert write_yaml({"ü": "ß", "a": 1}) == "ü: ß\na: 1\n"
