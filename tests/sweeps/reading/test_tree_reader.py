from typing import Any

from mixup_core.laws import Beta, Erm
from sweeps.reading.strict_yaml import REFUSED, Place, read_yaml
from sweeps.reading.tree_paths import TreePaths
from sweeps.reading.tree_reader import TreeReader, did_you_mean
from tests.mixup_core.config.journeys import Journey, Leg

PATHS = TreePaths(Journey, {"cost": "is not set in a study file"})


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
        "days: true\nstay:\n  place: ihn\n  is_payed: true\n  is_paid: 2\nvehicle: bike\n"
        "detour: {winding: [{law: erm, until: 0}]}\nstops:\n- {law: erm, until: 1.5}\n"
        "- {until: 3}\ncost: 4\nstay.place: tent\n"
    ) == [
        "s.yaml:1: days: expected an integer, got the boolean true",
        "s.yaml:3: stay.place: expected one of inn, tent, got text 'ihn' (did you mean inn?)",
        "s.yaml:4: stay.is_payed: unknown key 'is_payed' (did you mean is_paid?)",
        "s.yaml:5: stay.is_paid: expected true or false, got 2",
        "s.yaml:6: vehicle: expected a mapping, got text 'bike'",
        "s.yaml:7: detour: `until >= 1` must hold, got (until=0).",
        "s.yaml:9: stops[0].until: expected an integer or null, got 1.5",
        "s.yaml:10: stops[1]: missing key 'law'",
        "s.yaml:11: cost: 'cost' is not set in a study file",
        "s.yaml:12: stay.place: stay.place is given twice",
    ]


def test_the_nearest_name_is_suggested_for_a_full_path_or_its_last_part() -> None:
    known = ["bed.width", "bed.shade", "days"]
    assert did_you_mean("bed.widht", known) == " (did you mean bed.width?)"
    assert did_you_mean("width", known) == " (did you mean bed.width?)"
    assert did_you_mean("zzz", known) == ""


def test_an_item_that_has_a_tag_may_stand_beside_items_without_one() -> None:
    """Regression test: such an item of a list was read as one without a tag, and refused."""
    hint = tuple[Leg | Erm | Beta, ...]
    read = reader_of("- {beta: 3}\n- beta: {alpha: 3}\n- {law: erm, until: 2}\n")
    assert read.value(hint, read.document.value, ()) == (
        Beta(alpha=3.0),
        Beta(alpha=3.0),
        Leg(law=Erm(), until=2),
    )
    assert problems_of("- {law: erm, untill: erm}\n", hint) == [
        "s.yaml:1: [0].untill: unknown key 'untill' (did you mean until?)"
    ]
    (fault,) = problems_of("- {betta: 2}\n", hint)
    assert "expected {law: LAW" in fault
