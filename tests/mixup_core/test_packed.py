import math
from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mixup_core.packed import Packed, packed


class Squares(Packed[int]):
    def __len__(self) -> int:
        return 4

    def _at(self, place: int) -> int:
        return place * place


def test_packed_records_are_a_sequence_equal_to_a_tuple() -> None:
    squares = Squares()
    assert (squares[1], squares[-1], squares[1:3], list(reversed(squares))) == (
        1, 9, (1, 4), [9, 4, 1, 0],
    )  # fmt: skip
    assert squares == (0, 1, 4, 9) == squares
    assert squares != (0, 1, 4)
    assert squares != (0, 1, 4, 8)
    assert squares != [0, 1, 4, 9]
    assert repr(squares) == "(0, 1, 4, 9)"
    with pytest.raises(IndexError):
        squares[4]
    with pytest.raises(TypeError):
        hash(squares)


@given(st.lists(st.one_of(st.floats(), st.integers(), st.booleans(), st.none(), st.text())))
def test_packed_values_keep_their_bits_and_types(values: list[float]) -> None:
    found = packed(values)
    assert list(map(repr, found)) == list(map(repr, values))


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([0.5, -0.0, math.inf], array),
        ([0, -(2**63), 2**63 - 1], array),
        ([2**63], tuple),
        ([-(2**63) - 1], tuple),
        ([1, 0.5], tuple),
        ([True, False], tuple),
    ],
)
def test_only_numbers_of_one_8_byte_type_are_packed_into_an_array(
    values: list[float], kind: type
) -> None:
    assert type(packed(values)) is kind
    assert repr(list(packed(values))) == repr(values)
