"""Manifests: their content, and that a change of any bit is noticed."""

import dataclasses
import hashlib
from typing import Any

import pytest

from mixup_core.records import EpochRecord, Records
from mixup_core.store.errors import UnreadableError
from mixup_core.store.manifests import (
    FORMAT,
    EpochFacts,
    Facts,
    Stage,
    StateRef,
    check_epochs,
    is_manifest,
    seal,
    stage_content,
    unseal,
)
from tests.mixup_core.store.stored_files import (
    ENVIRONMENT,
    FACTS,
    KEY,
    RECORDS,
    SAME_SHARD,
    flip,
    reseal,
)

STATE = StateRef(sha256="0f" * 32, size=3021)
STAGE = Stage(key=KEY, records=RECORDS, facts=FACTS, environment=ENVIRONMENT, state=STATE)
NAN, INF = float("nan"), float("inf")


def sealed_by_hand(text: bytes) -> bytes:
    """Return JSON with its own sha256 as the first key."""
    assert text[:1] == b"{"
    return b'{"sha256":"%s",' % hashlib.sha256(text).hexdigest().encode() + text[1:]


def test_facts_round_trip_and_take_16_bytes_each() -> None:
    facts = Facts(FACTS * 100)
    assert len(facts) == 200
    assert facts == FACTS * 100
    assert (facts[0], facts[-1], facts[1:3]) == (FACTS[0], FACTS[1], (FACTS[1], FACTS[0]))
    assert sum(memoryview(part).nbytes for part in (facts.seconds, facts.stored_at_ms)) == 3200
    assert Facts() == ()


def test_facts_with_integer_seconds_or_large_times_keep_their_values_and_types() -> None:
    facts = (EpochFacts(seconds=2, stored_at_ms=1), EpochFacts(seconds=0.5, stored_at_ms=2**70))
    assert Facts(facts) == facts
    assert [type(fact.seconds) for fact in Facts(facts)] == [int, float]


def test_a_stage_packs_its_records_and_facts_once() -> None:
    assert (type(STAGE.records), type(STAGE.facts)) == (Records, Facts)
    assert (STAGE.records, STAGE.facts, STAGE.epochs) == (RECORDS, FACTS, 2)
    again = dataclasses.replace(STAGE, state=None)
    assert again.records is STAGE.records
    assert again.facts is STAGE.facts
    assert (again.key, again.environment, again.state) == (KEY, ENVIRONMENT, None)


def of_epochs(*epochs: int) -> tuple[EpochRecord, ...]:
    return tuple(EpochRecord(epoch=epoch, metrics={"a": 1.0}) for epoch in epochs)


@pytest.mark.parametrize(
    ("records", "facts", "text"),
    [
        ((), (), "there must be one record per epoch, epoch 0 first, got (epochs=[])."),
        (of_epochs(1, 0), FACTS, "there must be one record per epoch, epoch 0 first, "
         "got (epochs=[1, 0])."),
        (of_epochs(0, 2), FACTS, "there must be one record per epoch, epoch 0 first, "
         "got (epochs=[0, 2])."),
        (RECORDS, FACTS[:1],
         "each record needs the time of its epoch (`EpochFacts`), got (records=2, facts=1)."),
        ([RECORDS[0], EpochRecord(epoch=1, metrics={"b": 0.0, "a": NAN})], FACTS,
         "a must be finite, got (value=nan, epoch=1)."),
        (RECORDS[:1], [EpochFacts(seconds=INF, stored_at_ms=0)],
         "seconds must be finite, got (value=inf, epoch=0)."),
    ],
)  # fmt: skip
def test_a_stage_with_contradicting_numbers_is_refused(records: Any, facts: Any, text: str) -> None:
    with pytest.raises(ValueError, match=", got") as caught:
        check_epochs(records, facts)
    assert str(caught.value) == text


def test_a_seal_is_the_sha256_of_the_canonical_json() -> None:
    text = b'{"a":[1.5,null],"b":{"c":"\\u00e9","d":true},"format":1}'
    content = {"b": {"d": True, "c": "é"}, "a": [1.5, None]}
    assert seal(content) == sealed_by_hand(text)
    assert seal(dict(reversed(content.items()))) == seal(content)
    assert unseal(seal(content)) == {**content, "format": FORMAT}


def test_sealed_floats_round_trip_to_the_last_bit() -> None:
    values = [0.1 + 0.2, 5e-324, 1 / 3, -0.0, 1.7976931348623157e308]
    unsealed = unseal(seal({"values": values}))
    assert unsealed is not None
    assert [value.hex() for value in unsealed["values"]] == [value.hex() for value in values]


@pytest.mark.parametrize("value", [NAN, INF, -INF])
def test_numbers_that_json_cannot_represent_are_refused(value: float) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        seal({"a": value})


def test_unseal_rejects_any_flipped_cut_or_added_bytes() -> None:
    sealed = seal({"key": "aa01", "values": [1, 2]})
    assert unseal(sealed) is not None
    for bit in range(8 * len(sealed)):
        assert unseal(flip(sealed, bit)) is None
    for cut in range(len(sealed)):
        assert unseal(sealed[:cut]) is None
    for added in (sealed + b"\n", b" " + sealed, sealed + sealed):
        assert unseal(added) is None


@pytest.mark.parametrize(
    "text",
    [
        b"{}",
        b'{"key":"aa01"}',
        b'{"format":null}',
        b'{"format":"1"}',
        b'{"format":1.0}',
        b'{"format":1',
        b'{"format":1}{}',
        b'{"format":1,"a":"\xff"}',
        b'{"format":%s}' % (b"9" * 5000),
        b'{"format":1,"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    ],
)
def test_unseal_rejects_sealed_content_that_is_not_a_manifest(text: bytes) -> None:
    assert unseal(sealed_by_hand(text)) is None


def test_is_manifest_accepts_only_the_manifest_of_the_given_key() -> None:
    sealed = seal(stage_content(STAGE))
    assert is_manifest(sealed, KEY)
    assert not is_manifest(sealed, SAME_SHARD)
    assert not is_manifest(sealed, KEY[:4])
    assert not is_manifest(UnreadableError("is no file"), KEY)
    assert not is_manifest(b"", KEY)
    assert not any(is_manifest(flip(sealed, bit), KEY) for bit in range(0, 8 * len(sealed), 7))


def test_is_manifest_rejects_another_format_or_an_unknown_field_between_the_known_ones() -> None:
    sealed = seal(stage_content(STAGE))
    for changes in ({"format": FORMAT + 1}, {"h": "between two fields"}):
        assert unseal(reseal(sealed, changes)) is not None
        assert not is_manifest(reseal(sealed, changes), KEY)
    assert is_manifest(reseal(sealed, {"a": "in front", "z": "behind"}), KEY)
