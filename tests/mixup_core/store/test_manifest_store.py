"""ManifestStore: manifests of this format, of other formats, and files that only look like one."""

import hashlib
import json
from typing import Any

import pytest

from mixup_core.store.checkpoints import Store
from mixup_core.store.manifests import FormatError
from tests.mixup_core.store.stored_files import (
    FAILURE,
    KEY,
    STATE,
    alter,
    is_whole,
    manifest_of,
    quarantined,
    reseal,
    write,
)


def test_read_all_returns_the_same_stages_as_single_reads(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mixup_core.store.bucket._BATCH", 2)
    keys = ["aa01", "bb02", "cc03", "dd04", "ee05"]
    for key in ("dd04", "aa01", "ee05"):
        write(store, key, state=None if key == "ee05" else STATE)
    assert list(store.read_all(iter(keys)).items()) == [
        (key, store.read(key)) for key in ("aa01", "dd04", "ee05")
    ]
    assert store.read_all([]) == {}


def test_a_manifest_of_a_newer_format_is_refused_by_name_and_stays_unchanged(
    store: Store, url: str
) -> None:
    write(store)
    alter(url, "/stages/", lambda sealed: reseal(sealed, {"format": 3}))
    for use in (
        lambda: store.read(KEY),
        lambda: store.keys(proven=[KEY]),
        lambda: write(store),
        lambda: store.drop_state(KEY),
    ):
        with pytest.raises(
            FormatError, match=rf"^stages/01/{KEY}\.json: store format 3, .* up to 1: "
        ):
            use()
    assert store.keys() == {KEY: True}


def test_records_of_a_newer_format_are_skipped_and_named_where_others_are_wanted(
    store: Store, url: str, caplog: pytest.LogCaptureFixture
) -> None:
    write(store)
    store.failures.write(FAILURE)
    for folder in ("/stages/", "/failures/"):
        alter(url, folder, lambda sealed: reseal(sealed, {"format": 3}))
    caplog.clear()
    assert store.verify(stale_after=0.0) == ()
    assert [*store.stages()] == []
    assert [line.split(", ")[0] for line in caplog.messages] == [
        f"skipped: stages/01/{KEY}.json: store format 3",
        f"skipped: failures/{FAILURE.run_key}.json: store format 3",
        f"skipped: stages/01/{KEY}.json: store format 3",
    ]
    assert store.keys() == {KEY: True}


def test_fields_that_a_later_version_added_are_ignored_and_kept(store: Store, url: str) -> None:
    written = write(store)
    store.failures.write(FAILURE)

    def later(sealed: bytes) -> bytes:
        content = json.loads(sealed)
        for facts in content["facts"]:
            facts["joules"] = 5.0
        content["state"]["codec"] = "zstd"
        added = {"facts": content["facts"], "state": content["state"], "gifts": [1]}
        return reseal(sealed, added | {"h": "between two fields"})

    alter(url, "/stages/", later)
    alter(url, "/failures/", lambda sealed: reseal(sealed, {"node": "a"}))
    assert store.read(KEY) == written
    assert store.failures.read_all() == {KEY: FAILURE}
    assert store.keys(proven=[KEY], proven_states=[KEY]) == {KEY: True}
    store.drop_state(KEY)
    kept = json.loads(store.files.read(f"stages/{KEY[:2]}/{KEY}.json"))
    assert (kept["gifts"], kept["facts"][0]["joules"], kept["state"]) == ([1], 5.0, None)
    assert write(store).state == written.state


EARLIER = (
    '{"sha256":"%s","environment":{"host":"a","threads":"1"},"facts":[{"seconds":0.25,'
    '"stored_at_ms":1795298400000}],"format":1,"key":"aa01","records":[{"epoch":0,"metrics":'
    '{"test/error":0.5,"train/loss":2.25}}],"state":{"sha256":"%s","size":42}}'
)
"""A manifest of the first version of this format, with its sha256 and that of its state."""


def test_a_stage_that_the_first_version_of_this_format_wrote_is_read(disk: Store) -> None:
    blob = b"mixsweep state of stage aa01\n0123456789abc"
    state = hashlib.sha256(blob).hexdigest()
    text = (EARLIER % ("", state)).replace('"sha256":"",', "", 1)
    manifest_of(disk, "aa01").parent.mkdir(parents=True)
    manifest_of(disk, "aa01").write_text(
        EARLIER % (hashlib.sha256(text.encode()).hexdigest(), state)
    )
    disk.files.write(f"states/aa/aa01-{state}.bin", blob)
    stage = disk.read("aa01")
    assert stage is not None
    assert stage.records[0].metrics == {"test/error": 0.5, "train/loss": 2.25}
    assert (stage.facts[0].seconds, stage.environment["threads"]) == (0.25, "1")
    assert disk.states.read(stage) == b"0123456789abc"


@pytest.mark.parametrize(
    "changes",
    [
        {"records": 7},
        {"records": [{"epoch": 0}]},
        {"facts": [{}]},
        {"state": []},
        {"key": ["a"]},
        {"format": None},
    ],
)
def test_a_sealed_manifest_with_invalid_fields_is_damaged(
    disk: Store, changes: dict[str, Any]
) -> None:
    write(disk)
    manifest_of(disk).write_bytes(reseal(manifest_of(disk).read_bytes(), changes))
    assert disk.read(KEY) is None
    assert quarantined(disk) == [manifest_of(disk).name]
    write(disk)
    assert is_whole(disk)
