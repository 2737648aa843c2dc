from sweeps.reading.node_reader import NodeReader
from sweeps.reading.strict_yaml import REFUSED, Node, Place

PLACE = Place(source="s.yaml", line=3)


def node(value: object) -> Node:
    return Node(value=value, place=PLACE)  # type: ignore[arg-type]


def test_what_is_wrong_is_reported_once_and_read_as_absent() -> None:
    read = NodeReader([])
    assert read.mapping(node([]), "a") is None
    assert read.text(node(3), "b", "a name") is None
    assert read.choice(node("tpa"), "c", ("tpe", "grid"), "grid") == "grid"
    assert read.integer(node(True), "d", 0, 9, 7) == 7
    read.only({"e": node(1), "pints": node(2)}, ("e", "points"), "f")
    assert list(map(str, read.problems)) == [
        "s.yaml:3: a: expected a mapping, got []",
        "s.yaml:3: b: expected a name, got 3; quote it",
        "s.yaml:3: c: expected one of tpe, grid, got text 'tpa' (did you mean tpe?)",
        "s.yaml:3: d: expected an integer in 0..9, got the boolean true",
        "s.yaml:3: f: unknown key 'pints' (did you mean points?)",
    ]


def test_what_was_refused_before_is_not_reported_again() -> None:
    read = NodeReader([])
    refused = node(REFUSED)
    assert read.mapping(refused, "a") is read.text(refused, "b", "a name") is None
    assert read.choice(refused, "c", ("x",), "x") == "x"
    assert read.integer(refused, "d", 0, 9, 5) == 5
    assert read.problems == []


def test_bounds_of_an_integer_are_included() -> None:
    read = NodeReader([])
    assert [read.integer(node(value), "a", 0, 9, None) for value in (0, 9)] == [0, 9]
    assert read.integer(node(10), "a", 0, 9, None) is None
    assert len(read.problems) == 1
