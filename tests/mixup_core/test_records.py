"""Records: they keep bits, types and order in little memory."""

import json
import math
from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mixup_core.records import EpochRecord, Records, packed


@given(
    epoch=st.integers(0, 10_000),
    metrics=st.dictionaries(st.text(), st.floats(allow_nan=False, allow_infinity=False)),
)
def test_a_record_survives_json_to_the_last_bit(epoch: int, metrics: dict[str, float]) -> None:
    record = EpochRecord(epoch=epoch, metrics=metrics)
    assert EpochRecord.from_plain(json.loads(json.dumps(record.to_plain()))) == record


_VALUES = st.one_of(st.floats(allow_nan=False), st.integers())


@given(
    st.lists(
        st.builds(EpochRecord, epoch=st.integers(), metrics=st.dictionaries(st.text("ab"), _VALUES))
    )
)
def test_packed_records_equal_the_given_records_and_keep_the_order_of_names(
    given_records: list[EpochRecord],
) -> None:
    records = Records(given_records)
    assert records == tuple(given_records)
    assert list(map(repr, records)) == list(map(repr, given_records))
    assert records.names == {name for record in given_records for name in record.metrics}
    assert Records(records) == records
    assert records[1:] == tuple(given_records[1:])
    assert list(reversed(records)) == given_records[::-1]
    assert records != given_records
    assert records != (*given_records, 0)
    with pytest.raises(IndexError):
        records[len(records)]
    with pytest.raises(TypeError):
        hash(records)


def test_the_order_of_metric_names_does_not_affect_equality_of_records() -> None:
    one, other = {"a": 1.0, "b": 2.0}, {"b": 2.0, "a": 1.0}
    assert Records([EpochRecord(epoch=0, metrics=one)]) == Records(
        [EpochRecord(epoch=0, metrics=other)]
    )
    assert Records([EpochRecord(epoch=0, metrics=one)]) != Records(
        [EpochRecord(epoch=0, metrics={"b": 1.0, "a": 2.0})]
    )


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
