import pytest

from mixup_core.rules import RuleError
from sweeps.study.until_decided import UntilDecided


def until(**given: object) -> UntilDecided:
    return UntilDecided(**{"at_most": 20, "until": "decided", **given})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "sizes"),
    [
        ({}, (3, 5, 8, 11, 15, 20)),
        ({"looks": 2}, (3, 20)),
        ({"at_least": 2, "at_most": 4, "looks": 6}, (2, 3, 4)),
        ({"at_least": 5, "at_most": 5}, (5,)),
        ({"looks": (3, 4, 20)}, (3, 4, 20)),
    ],
)
def test_planned_looks_are_closer_together_at_the_beginning(
    given: dict[str, object], sizes: tuple[int, ...]
) -> None:
    assert until(**given).sizes == sizes
    assert list(until(**given).seeds()) == list(range(sizes[-1]))


@pytest.mark.parametrize(
    ("given", "rule"),
    [
        ({"at_least": 21}, "at_least <= at_most"),
        ({"looks": (3, 9, 5, 20)}, "numbers in looks must increase"),
        ({"looks": (4, 20)}, "looks must begin with at_least"),
        ({"looks": 21}, "looks <= 20"),
        ({"looks": (*range(3, 21), 30, 40, 50), "at_most": 50}, "at most 20"),
        ({"at_least": 1}, "at_least"),
        ({"spending": 0.6}, "spending"),
        ({"futility": -0.1}, "futility"),
    ],
)
def test_invalid_planned_looks_are_refused(given: dict[str, object], rule: str) -> None:
    with pytest.raises(RuleError, match=rule):
        until(**given)
