import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sweeps.reading.strict_yaml import REFUSED, Node, Place, plain, printable, read_yaml, write_yaml


def place_at(line: int) -> Place:
    return Place(source="f", line=line)


def read(text: str) -> object:
    root, faults = read_yaml(text.encode(), place_at)
    assert faults == []
    return plain(root)


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
    ],
)
def test_scalars_mean_what_they_look_like(text: str, value: object) -> None:
    result = read(text)
    assert result == value
    assert type(result) is type(value)


@pytest.mark.parametrize(
    "text",
    "no Yes ON True FALSE NULL 0777 0x1F 0b11 1_000 1_0.5 12:30:45 1:30.5 2024-01-01 .inf -.INF "
    ".NaN 1e999 &a *a !!str !x".replace("!!str", "!!str,x")
    .replace("&a", "&a,x")
    .split(),
)
def test_what_readers_of_yaml_disagree_on_is_refused(text: str) -> None:
    root, faults = read_yaml(text.replace(",", " ").encode(), place_at)
    assert root.value is REFUSED
    assert len(faults) == 1


def test_a_value_knows_the_line_of_its_key_and_an_item_its_own() -> None:
    root, _ = read_yaml(b"# first\na:\n  b:\n\n    - 1\n    - 2\n", place_at)
    assert lines(root) == [2, 3, 5, 6]


def lines(node: Node) -> list[int | None]:
    match node.value:
        case dict(children):
            inner = list(children.values())
        case list(inner):
            pass
        case _:
            return []
    return [line for child in inner for line in (child.place.line, *lines(child))]


def test_reading_goes_on_after_a_refused_value() -> None:
    root, faults = read_yaml(b"a: 0777\nb: &x 1\nc: 3\na: 4\n", place_at)
    assert plain(root) == {"a": REFUSED, "b": REFUSED, "c": 3}
    assert [fault.place.line for fault in faults] == [1, 2, 4]


def test_nothing_is_nested_deeper_than_32() -> None:
    assert read("[" * 32 + "]" * 32) != []
    root, faults = read_yaml(b"[" * 33 + b"]" * 33, place_at)
    assert root.value is REFUSED
    assert [str(fault) for fault in faults] == ["f:1: nested deeper than 32"]


def test_control_and_direction_characters_are_shown_escaped_on_one_line() -> None:
    assert printable("a\nb\u202ec\x00") == r"a\nb\u202ec\x00"
    assert printable("\u00e9") == "\u00e9"
    assert len(printable("x" * 10_000)) < 1000


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


@settings(deadline=None)
@given(documents)
@example({"\x85": "\u2028", "1e-3": 1e-3})
def test_what_is_written_reads_back_with_types_and_all(document: object) -> None:
    result = read(write_yaml(document))
    assert repr(result) == repr(document)
