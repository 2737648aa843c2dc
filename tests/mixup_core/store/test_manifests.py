"""Manifests: their content, and that a change of any bit is noticed."""

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest

from mixup_core.records import EpochRecord, Records
from mixup_core.store.manifests import (
    FORMAT,
    MANIFEST_NAME,
    PREDICTION_NAME,
    STATE_NAME,
    Facts,
    Stage,
    StateRef,
    check_epochs,
    checked,
    failure_name,
    is_manifest,
    is_temporary,
    key_in,
    manifest_name,
    prediction_name,
    seal,
    stage_content,
    state_name,
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
    sealed_by_hand,
)

STATE = StateRef(sha256="0f" * 32, size=3021)
STAGE = Stage(key=KEY, records=RECORDS, facts=FACTS, environment=ENVIRONMENT, state=STATE)
NAN, INF = float("nan"), float("inf")


def test_facts_round_trip_and_take_16_bytes_each() -> None:
    facts = Facts(FACTS * 100)
    assert facts == FACTS * 100
    assert sum(memoryview(part).nbytes for part in (facts.seconds, facts.stored_at_ms)) == 3200


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
    for value in (NAN, INF, -INF):
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


def test_is_manifest_accepts_only_the_manifest_of_the_given_key_and_format() -> None:
    sealed = seal(stage_content(STAGE))
    assert is_manifest(sealed, KEY)
    assert not is_manifest(sealed, SAME_SHARD)
    assert not is_manifest(sealed, KEY[:4])
    assert not is_manifest(b"", KEY)
    assert not any(is_manifest(flip(sealed, bit), KEY) for bit in range(0, 8 * len(sealed), 7))
    for changes in ({"format": FORMAT + 1}, {"h": "between two fields"}):
        assert unseal(reseal(sealed, changes)) is not None
        assert not is_manifest(reseal(sealed, changes), KEY)
    assert is_manifest(reseal(sealed, {"a": "in front", "z": "behind"}), KEY)


SHA256 = "0f" * 32


@pytest.mark.parametrize(
    "use",
    [
        checked, manifest_name, failure_name, prediction_name,
        lambda key: state_name(key, SHA256),
    ],
)  # fmt: skip
def test_only_a_key_of_4_to_64_hexadecimal_digits_is_accepted(use: Callable[[str], str]) -> None:
    for key in ("aa01", "0" * 64, KEY):
        assert key in use(key)
    for key in (
        "", "aa0", "a" * 65, "AA01", "aa0g", "aa01\n", "\naa01", "aa01 ", "aa01.json", "../../etc",
        "aa01/..", "\N{ARABIC-INDIC DIGIT ONE}" * 4, "\N{FULLWIDTH DIGIT ONE}" * 4,
    ):  # fmt: skip
        with pytest.raises(ValueError, match="hexadecimal") as caught:
            use(key)
        assert f"got ({key=})" in str(caught.value)


def test_the_name_pattern_of_a_kind_matches_only_names_of_this_kind() -> None:
    patterns = {
        manifest_name: MANIFEST_NAME,
        prediction_name: PREDICTION_NAME,
        lambda key: state_name(key, SHA256): STATE_NAME,
    }
    for name_of, pattern in patterns.items():
        name = name_of(KEY)
        found = pattern.fullmatch(name)
        assert found["key"] == KEY
        others = [other(KEY) for other in patterns if other is not name_of]
        for strange in (
            *others, f"{name}.x1.tmp", f"{name}.0a1b2c3d.torn", f"old/{name}", name.upper(),
            name.replace("/01/", "/"), name.replace("/01/", "/012/"), name.replace(".", "x"),
            name.replace(KEY, f"{KEY}g"), name.replace("/01/", "/02/"), name.replace(KEY, KEY[:3]),
            name.replace(KEY, f"{KEY}{64 * '0'}"), state_name(KEY, SHA256[1:]),
            state_name(KEY, f"{SHA256}0"), state_name(KEY, SHA256.upper()),
        ):  # fmt: skip
            assert pattern.fullmatch(strange) is None, strange


TEMPORARY = ".x1y2z3_4.tmp"


@pytest.mark.parametrize(
    ("name", "is_of_store"),
    [
        (f"{manifest_name(KEY)}{TEMPORARY}", True),
        (f"{failure_name(KEY)}{TEMPORARY}", True),
        (f"uses/digits.json{TEMPORARY}", True),
        (f"{state_name(KEY, SHA256)}.0a1b2c3d.torn", False),
        (manifest_name(KEY), False),
        (f"{manifest_name(KEY)}.draft.tmp", False),
        (f"stages/01/notes{TEMPORARY}", False),
        (f"studies/digits/notes.json{TEMPORARY}", False),
    ],
)
def test_a_temporary_file_has_a_name_of_the_store_and_a_temporary_ending(
    name: str, is_of_store: bool
) -> None:
    assert is_temporary(name) is is_of_store
    if KEY in name:
        assert key_in(name) == KEY
