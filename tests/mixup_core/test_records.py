import json

from hypothesis import given
from hypothesis import strategies as st

from mixup_core.records import EpochRecord


@given(
    epoch=st.integers(0, 10_000),
    metrics=st.dictionaries(st.text(), st.floats(allow_nan=False, allow_infinity=False)),
)
def test_a_record_survives_json_to_the_last_bit(epoch: int, metrics: dict[str, float]) -> None:
    record = EpochRecord(epoch=epoch, metrics=metrics)
    assert EpochRecord.from_plain(json.loads(json.dumps(record.to_plain()))) == record


def test_what_is_made_plain_is_a_copy() -> None:
    record = EpochRecord(epoch=0, metrics={"test/error": 0.5})
    record.to_plain()["metrics"]["test/error"] = 0.0
    assert record.metrics == {"test/error": 0.5}
