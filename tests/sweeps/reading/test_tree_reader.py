from typing import Any

from sweeps.reading.strict_yaml import REFUSED, Place, read_yaml
from sweeps.reading.tree_paths import TreePaths
from sweeps.reading.tree_reader import TreeReader, did_you_mean
from tests.sweeps.reading.plants import Drip, Flood, Plant, Visit

PATHS = TreePaths(Plant, {"label": "is not set in a study file"})


def reader_of(text: str) -> TreeReader:
    return TreeReader(
        read_yaml(text.encode(), lambda line: Place(source="s.yaml", line=line)), PATHS
    )


def section(read: TreeReader) -> Any:
    tree, _ = read.section(read.document.value, ())
    return tree


def problems_of(text: str, hint: Any = None) -> list[str]:
    read = reader_of(text)
    if hint is None:
        section(read)
    else:
        assert read.value(hint, read.document.value, ()) is REFUSED
    return list(map(str, read.faults))


def test_every_problem_of_a_section_is_reported_at_its_line() -> None:
    assert problems_of(
        "species: rsoe\ndays: true\nbed:\n  soil: clay\n  witdh: 2\n  width: wide\n"
        "water: {drip: 0}\nvisits:\n- day: 1.5\n- {}\nlabel: x\nbed.width: 3\n"
    ) == [
        "s.yaml:1: species: expected one of rose, fern, got text 'rsoe' (did you mean rose?)",
        "s.yaml:2: days: expected an integer, got the boolean true",
        "s.yaml:4: bed.soil: expected a mapping, got text 'clay'",
        "s.yaml:5: bed.witdh: unknown key 'witdh' (did you mean width?)",
        "s.yaml:6: bed.width: expected a number, got text 'wide'",
        "s.yaml:7: water: `rate > 0` must hold, got (rate=0.0).",
        "s.yaml:9: visits[0].day: expected an integer, got 1.5",
        "s.yaml:10: visits[1]: missing key 'day'",
        "s.yaml:11: label: 'label' is not set in a study file",
        "s.yaml:12: bed.width: bed.width is given twice",
    ]


def test_the_nearest_name_is_suggested_for_a_full_path_or_its_last_part() -> None:
    known = ["bed.width", "bed.shade", "days"]
    assert did_you_mean("bed.widht", known) == " (did you mean bed.width?)"
    assert did_you_mean("width", known) == " (did you mean bed.width?)"
    assert did_you_mean("zzz", known) == ""


def test_an_item_that_has_a_tag_may_stand_beside_items_without_one() -> None:
    """Regression test: such an item of a list was read as one without a tag, and refused."""
    hint = tuple[Visit | Drip | Flood, ...]
    read = reader_of("- {drip: 3}\n- drip: {rate: 3}\n- {day: 2}\n")
    assert read.value(hint, read.document.value, ()) == (
        Drip(rate=3.0),
        Drip(rate=3.0),
        Visit(day=2),
    )
    assert problems_of("- {day: 2, wter: drip}\n", hint) == [
        "s.yaml:1: [0].wter: unknown key 'wter' (did you mean water?)"
    ]
    (fault,) = problems_of("- {dripp: 2}\n", hint)
    assert "expected {day: DAY" in fault
