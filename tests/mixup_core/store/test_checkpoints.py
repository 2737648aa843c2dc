"""Store: what it promises of disks, of buckets, and of files that are not what they were."""

import dataclasses
import errno
import functools
import hashlib
import itertools
import json
import logging
import os
import pickle
import random
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import fsspec
import pytest

from mixup_core.records import EpochRecord
from mixup_core.store import files
from mixup_core.store.checkpoints import Store
from mixup_core.store.files import StoreError, StoreFullError
from mixup_core.store.manifests import EpochFacts, Failure, FormatError, Stage, StateRef
from tests import object_stores
from tests.damages import DAMAGES, NO_FILES, bound_by_modes
from tests.races import clear_what_others_store, race, write_stage

KEY = "0123456789abcdef0123456789abcdef"
SAME_SHARD = "01" + "f" * 30
RECORDS = (
    EpochRecord(epoch=0, metrics={"train/loss": 0.1 + 0.2, "test/error": 1 / 3}),
    EpochRecord(epoch=1, metrics={"train/loss": 5e-324, "test/error": 0.0}),
)
FACTS = (
    EpochFacts(seconds=1.5, stored_at_ms=1_760_000_000_000),
    EpochFacts(seconds=0.1, stored_at_ms=1_760_000_001_000),
)
ENVIRONMENT = {"host": "node-a", "threads": "1"}
STATE = random.Random(0).randbytes(3000)
FAILURE = Failure(run_key=KEY, kind="diverged", message="loss is nan", epoch=3, attempts=1)


@pytest.fixture(params=["folder", "memory", *object_stores.NAMES])
def url(
    request: pytest.FixtureRequest, tmp_path: Path, client_of: Callable[[str], object]
) -> Iterator[str]:
    if request.param == "folder":
        yield str(tmp_path / "home" / "store")
    elif request.param == "memory":
        yield f"memory:/{tmp_path}"
        files = fsspec.filesystem("memory")
        for path in files.find(str(tmp_path)):
            files.rm_file(path)
    else:
        client_of(request.param)
        yield f"s3://studies{tmp_path}/store"


@pytest.fixture
def store(url: str) -> Store:
    return Store(url)


@pytest.fixture
def disk(tmp_path: Path) -> Store:
    return Store(str(tmp_path / "store"))


def write(store: Store, key: str = KEY, state: bytes | None = STATE, **changes: Any) -> Stage:
    given: dict[str, Any] = {"records": RECORDS, "facts": FACTS, "environment": ENVIRONMENT}
    return store.write(key, **(given | changes), state=state)


@pytest.fixture
def modest() -> Iterator[Store]:
    """A store whose files this process can be kept from, even if it is root's."""
    with bound_by_modes() as folder:
        yield Store(str(folder / "store"))


def failure_of(store: Store, key: str = KEY) -> Path:
    assert store.folder is not None
    return store.folder / "failures" / f"{key}.json"


def reseal(sealed: bytes, changes: Mapping[str, Any]) -> bytes:
    """Return a manifest as another version writes it: some fields changed, the sha256 right."""
    content = json.loads(sealed) | changes
    del content["sha256"]
    text = json.dumps(content, sort_keys=True, separators=(",", ":")).encode()
    return b'{"sha256":"' + hashlib.sha256(text).hexdigest().encode() + b'",' + text[1:]


def manifest_of(store: Store, key: str = KEY) -> Path:
    assert store.folder is not None
    return store.folder / "stages" / key[:2] / f"{key}.json"


def state_of(store: Store, key: str = KEY) -> Path:
    assert store.folder is not None
    (path,) = (store.folder / "states" / key[:2]).glob(f"{key}-*.bin")
    return path


def quarantined(store: Store) -> list[str]:
    assert store.folder is not None
    return sorted(path.name for path in (store.folder / "quarantine").glob("*"))


def is_whole(store: Store, key: str = KEY) -> bool:
    stage = store.read(key)
    return (
        stage is not None
        and stage.records == RECORDS
        and stage.facts == FACTS
        and store.states.read(stage) == STATE
    )


def alter(url: str, name: str, change: Callable[[bytes], bytes]) -> None:
    files, root = fsspec.core.url_to_fs(url)
    (path,) = [path for path in files.find(root) if name in path]
    files.pipe_file(path, change(files.cat_file(path)))


def flip(content: bytes, bit: int) -> bytes:
    changed = bytearray(content)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def test_a_stage_reads_back_as_it_was_written(store: Store, url: str) -> None:
    written = write(store)
    again = Store(url)
    assert again.read(KEY) == written
    assert again.states.read(written) == STATE
    assert (written.records, written.facts) == (RECORDS, FACTS)
    assert written.environment == ENVIRONMENT
    assert written.epochs == 2


def test_naming_and_reading_a_store_creates_nothing(store: Store, url: str) -> None:
    assert store.keys() == {}
    assert store.read(KEY) is None
    assert store.failures.read_all() == {}
    assert store.verify() == ()
    store.drop_state(KEY)
    store.delete(KEY)
    store.failures.remove(KEY)
    files, root = fsspec.core.url_to_fs(url)
    assert not files.exists(root)


def test_a_fact_of_the_environment_is_forgotten_and_nothing_else(store: Store) -> None:
    store.forget(KEY, "host")
    assert store.read(KEY) is None
    store.write(KEY, records=RECORDS, facts=FACTS, environment=ENVIRONMENT, state=STATE)
    before = store.read(KEY)
    assert before is not None
    store.forget(KEY, "nothing")
    assert store.read(KEY) == before
    store.forget(KEY, "host")
    after = store.read(KEY)
    assert after == dataclasses.replace(before, environment={"threads": "1"})
    assert store.states.read(before) == STATE


def test_stages_are_read_together_each_as_it_is_read_alone(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mixup_core.store.files._BATCH", 2)
    keys = ["aa01", "bb02", "cc03", "dd04", "ee05"]
    for key in ("dd04", "aa01", "ee05"):
        write(store, key, state=None if key == "ee05" else STATE)
    assert list(store.read_all(iter(keys)).items()) == [
        (key, store.read(key)) for key in ("aa01", "dd04", "ee05")
    ]
    assert store.read_all([]) == {}


def test_a_damaged_stage_is_missing_from_those_read_together(disk: Store) -> None:
    write(disk, "aa01")
    write(disk, "bb02")
    manifest_of(disk, "aa01").write_bytes(b"{}")
    assert list(disk.read_all(["aa01", "bb02"])) == ["bb02"]
    assert quarantined(disk) == ["aa01.json"]


def test_reading_from_a_server_that_is_gone_is_no_empty_store(
    s3: Mapping[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    fsspec.filesystem("s3").clear_instance_cache()
    with pytest.raises(StoreError, match="s3://studies"):
        Store("s3://studies/gone").read_all(["aa01", "bb02"])
    fsspec.filesystem("s3").clear_instance_cache()


def test_what_dead_writers_left_is_cleared_and_what_is_stored_stays(disk: Store) -> None:
    for key in ("aa01", "aa02", "aa03"):
        write(disk, key)
    assert disk.folder is not None
    manifest_of(disk, "aa01").unlink()
    manifest_of(disk, "aa03").unlink()
    torn = manifest_of(disk, "aa01").with_name("aa01.json.x.tmp")
    torn.write_bytes(b"{")
    disk.clear_torn("aa01", "aa02")
    assert not torn.exists()
    assert disk.keys() == {"aa02": True}
    left = sorted(path.name[:4] for path in (disk.folder / "states").rglob("*.bin"))
    assert left == ["aa02", "aa03"], "another run's states are not ours to clear"


def test_keys_tell_which_stages_have_a_state(store: Store) -> None:
    write(store, "aa01")
    write(store, "aa02", state=None)
    write(store, "bb01")
    store.drop_state("bb01")
    assert store.keys() == {"aa01": True, "aa02": False, "bb01": False}


def test_the_first_stage_stays_and_other_records_are_logged(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    first = write(store)
    with caplog.at_level(logging.WARNING):
        assert write(store, state=b"other state") == first
    assert caplog.messages == []

    other = (RECORDS[0], EpochRecord(epoch=1, metrics={"train/loss": 1.0, "test/error": 0.0}))
    assert write(store, records=other) == first
    assert write(store, "aa01", state=None).state is None
    assert write(store, "aa01", records=other).state is None
    assert [KEY in caplog.messages[0], "aa01" in caplog.messages[1]] == [True, True]
    assert store.read(KEY) == first
    assert store.states.read(first) == STATE


def test_a_stage_without_a_state_gains_one_and_keeps_its_first_facts(store: Store) -> None:
    write(store, state=None)
    later = tuple(EpochFacts(seconds=9.0, stored_at_ms=9) for _ in RECORDS)
    gained = write(store, facts=later)
    assert gained.facts == FACTS
    assert store.read(KEY) == gained
    assert store.states.read(gained) == STATE


def test_a_missing_or_damaged_state_is_replaced_by_the_next_write(store: Store, url: str) -> None:
    write(store)
    alter(url, ".bin", lambda blob: blob[:-1])
    stage = store.read(KEY)
    assert stage is not None
    assert store.states.read(stage) is None
    assert store.keys() == {KEY: False}
    assert store.states.read(write(store, state=b"again")) == b"again"


def test_dropping_a_state_leaves_the_records_and_every_other_stage(store: Store) -> None:
    write(store)
    twin = write(store, SAME_SHARD)
    store.drop_state(KEY)
    stage = store.read(KEY)
    assert stage is not None
    assert (stage.state, stage.records, stage.facts) == (None, RECORDS, FACTS)
    assert store.states.read(stage) is None
    assert store.states.read(twin) == STATE


def test_deleting_a_stage_leaves_every_other(store: Store) -> None:
    write(store)
    twin = write(store, SAME_SHARD)
    store.delete(KEY)
    assert store.read(KEY) is None
    assert store.keys() == {SAME_SHARD: True}
    assert list(store.stages()) == [twin]


def test_a_failure_is_kept_until_it_is_cleared(store: Store) -> None:
    store.failures.write(FAILURE)
    again = Failure(run_key=KEY, kind="failed", message="killed", epoch=None, attempts=3)
    other = Failure(run_key="aa01", kind="diverged", message="inf", epoch=0, attempts=1)
    store.failures.write(again)
    store.failures.write(other)
    assert store.failures.read_all() == {KEY: again, "aa01": other}
    store.failures.remove(KEY)
    assert store.failures.read_all() == {"aa01": other}
    assert store.keys() == {}


def test_a_failure_is_read_as_one_line_that_commands_no_terminal(store: Store) -> None:
    hostile = dataclasses.replace(FAILURE, message="\x1b[2Jone\ntwo\u202e")
    store.failures.write(hostile)
    assert store.failures.read_all()[KEY].message == r"\x1b[2Jone\ntwo\u202e"


@pytest.mark.parametrize("name", ["stages", "states", "failures"])
def test_a_damaged_file_is_quarantined_and_named_once(
    store: Store, url: str, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    write(store)
    store.failures.write(FAILURE)
    alter(url, f"/{name}/", lambda content: flip(content, 999))
    problems = store.verify()
    assert len(problems) == len(caplog.messages) == 1
    assert problems[0].startswith(f"{name}/")
    assert f"{name}/" in caplog.messages[0]
    files, root = fsspec.core.url_to_fs(url)
    assert len(files.find(f"{root}/quarantine")) == 1
    assert files.find(f"{root}/{name}") == []


def test_a_manifest_of_a_newer_format_is_refused_by_name_and_left_alone(
    store: Store, url: str
) -> None:
    write(store)
    alter(url, "/stages/", lambda sealed: reseal(sealed, {"format": 3}))
    for use in (
        lambda: store.read(KEY),
        lambda: store.keys(proven=[KEY]),
        lambda: write(store),
        lambda: store.drop_state(KEY),
        lambda: list(store.stages()),
        store.verify,
    ):
        with pytest.raises(FormatError, match=rf"^stages/01/{KEY}\.json: store format 3, .* 1$"):
            use()
    assert store.keys() == {KEY: True}


def test_a_failure_of_a_newer_format_is_refused_by_name(disk: Store) -> None:
    disk.failures.write(FAILURE)
    failure_of(disk).write_bytes(reseal(failure_of(disk).read_bytes(), {"format": 3}))
    for use in (disk.failures.read_all, disk.verify):
        with pytest.raises(FormatError, match=rf"^failures/{KEY}\.json: store format 3, "):
            use()


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
"""A manifest as the first version of this format wrote it; its sha256 and that of its state."""


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


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("path_of", [manifest_of, state_of, failure_of])
def test_whatever_happens_to_a_file_is_named_once_put_aside_and_healed_by_the_next_write(
    modest: Store,
    path_of: Callable[[Store], Path],
    damage: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    write(modest)
    modest.failures.write(FAILURE)
    path = path_of(modest)
    DAMAGES[damage](path)
    problems = modest.verify()
    is_expected_there = damage != "missing" or path_of is state_of
    assert [line.split(":")[0] for line in problems] == [
        str(path.relative_to(modest.folder or ""))
    ] * is_expected_there
    put_aside = [path.name] * (damage != "missing")
    assert quarantined(modest) == put_aside
    assert len(caplog.messages) == len(put_aside)
    assert all(path.name in line for line in caplog.messages)
    assert modest.verify() == (problems if path_of is state_of else ())
    assert is_whole(modest) == (path_of is failure_of)
    write(modest)
    modest.failures.write(FAILURE)
    assert is_whole(modest)
    assert modest.failures.read_all() == {KEY: FAILURE}
    assert modest.verify() == ()


@pytest.mark.parametrize("damage", NO_FILES)
@pytest.mark.parametrize("path_of", [manifest_of, state_of, failure_of])
def test_what_is_no_file_gives_way_to_a_write_a_removal_and_a_reading_of_many(
    modest: Store, path_of: Callable[[Store], Path], damage: str
) -> None:
    def damaged() -> None:
        write(modest)
        write(modest, SAME_SHARD)
        modest.failures.write(FAILURE)
        NO_FILES[damage](path_of(modest))

    damaged()
    assert set(modest.read_all([KEY, SAME_SHARD])) >= {SAME_SHARD}
    write(modest)
    modest.failures.write(FAILURE)
    assert is_whole(modest)
    damaged()
    modest.failures.remove(KEY)
    modest.delete(KEY)
    assert modest.failures.read_all() == {}
    assert modest.keys() == {SAME_SHARD: True}
    damaged()
    modest.drop_state(KEY)
    modest.clear_torn(KEY)
    assert modest.keys().get(KEY, False) is False
    assert is_whole(modest, SAME_SHARD)


def test_what_a_folder_in_the_place_of_a_file_holds_is_never_removed(disk: Store) -> None:
    for _ in range(2):
        write(disk)
        DAMAGES["a folder"](state_of(disk))
        disk.delete(KEY)
    assert disk.folder is not None
    notes = [path.read_text() for path in (disk.folder / "quarantine").rglob("notes.txt")]
    assert notes == ["of a colleague"] * 2


def test_what_a_link_leads_to_is_never_moved(disk: Store, tmp_path: Path) -> None:
    write(disk)
    elsewhere = tmp_path / "elsewhere.json"
    elsewhere.write_bytes(b"damaged")
    manifest_of(disk).unlink()
    manifest_of(disk).symlink_to(elsewhere)
    assert disk.read(KEY) is None
    assert elsewhere.read_bytes() == b"damaged"
    assert not manifest_of(disk).is_symlink()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make files of another user")
def test_a_file_of_another_user_is_refused_by_name_and_stays(modest: Store) -> None:
    write(modest)
    os.seteuid(0)
    os.chown(manifest_of(modest), 0, 0)
    manifest_of(modest).chmod(0o600)
    os.seteuid(65534)
    with pytest.raises(PermissionError) as caught:
        modest.read(KEY)
    assert caught.value.filename == str(manifest_of(modest))
    assert manifest_of(modest).exists()


@pytest.mark.parametrize("damage", ["a dangling link", "a FIFO", "unreadable", "empty"])
@pytest.mark.parametrize("top", ["stages", "states", "failures"])
def test_a_store_that_cannot_be_listed_is_no_empty_store(
    modest: Store, top: str, damage: str
) -> None:
    write(modest)
    modest.failures.write(FAILURE)
    assert modest.folder is not None
    folder = modest.folder / top
    folder.rename(folder.with_name("was"))
    folder.mkdir() if damage == "unreadable" else folder.touch()
    DAMAGES[damage](folder)
    with pytest.raises(OSError, match=rf"{top}'$"):
        modest.verify()


def test_what_a_plan_relies_on_is_proven(disk: Store, caplog: pytest.LogCaptureFixture) -> None:
    for key in ("aa01", "bb02", "cc03", "dd04"):
        write(disk, key)
    for key in ("aa01", "cc03"):
        DAMAGES["truncated"](manifest_of(disk, key))
    DAMAGES["bit flipped"](state_of(disk, "dd04"))
    assert disk.keys() == dict.fromkeys(["aa01", "bb02", "cc03", "dd04"], True)
    assert quarantined(disk) == []
    assert disk.keys(proven=["aa01", "bb02", "ee05"]) == {"bb02": True, "cc03": True, "dd04": True}
    assert quarantined(disk) == ["aa01.json"]
    proven = disk.keys(proven_states=["bb02", "cc03", "dd04"])
    assert proven == {"bb02": True, "dd04": False}
    assert len(caplog.messages) == 3


def test_a_manifest_in_anothers_place_proves_nothing(disk: Store) -> None:
    write(disk, "aa01")
    write(disk, "aa02")
    manifest_of(disk, "aa01").write_bytes(manifest_of(disk, "aa02").read_bytes())
    assert disk.keys(proven=["aa01", "aa02"]) == {"aa02": True}


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
def test_a_sealed_manifest_that_makes_no_sense_is_damage(
    disk: Store, changes: dict[str, Any]
) -> None:
    write(disk)
    manifest_of(disk).write_bytes(reseal(manifest_of(disk).read_bytes(), changes))
    assert disk.read(KEY) is None
    assert quarantined(disk) == [manifest_of(disk).name]
    write(disk)
    assert is_whole(disk)


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"records": (), "facts": ()}, "epoch 0 first"),
        ({"records": RECORDS[1:], "facts": FACTS[1:]}, r"epochs=\[1\]"),
        ({"facts": FACTS[:1]}, r"records=2, facts=1"),
        (
            {"records": [EpochRecord(epoch=0, metrics={"a": float("nan")})], "facts": FACTS[:1]},
            r"`a is finite` must hold, got \(value=nan, epoch=0\)",
        ),
        (
            {"records": RECORDS[:1], "facts": [EpochFacts(seconds=float("inf"), stored_at_ms=0)]},
            "seconds is finite",
        ),
    ],
)
def test_a_stage_that_makes_no_sense_is_refused_before_anything_is_written(
    store: Store, changes: dict[str, Any], text: str
) -> None:
    with pytest.raises(ValueError, match=text):
        write(store, **changes)
    assert store.keys() == {}


@pytest.mark.parametrize("key", ["", "../../etc", "aa01/..", "AA01", "aa01\n", "a" * 65])
def test_a_key_that_is_no_hash_is_refused(store: Store, key: str) -> None:
    for use in (store.read, store.delete, store.drop_state, store.failures.remove):
        with pytest.raises(ValueError, match="hexadecimal"):
            use(key)
    with pytest.raises(ValueError, match="hexadecimal"):
        write(store, key)


def test_files_are_named_and_sealed_so_that_other_programs_can_check_them(disk: Store) -> None:
    stage = write(disk)
    blob = state_of(disk).read_bytes()
    sha256 = hashlib.sha256(blob).hexdigest()
    assert state_of(disk).name == f"{KEY}-{sha256}.bin"
    assert stage.state == StateRef(sha256=sha256, size=len(blob))
    assert blob.endswith(STATE)

    content = json.loads(manifest_of(disk).read_bytes())
    stated = content.pop("sha256")
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    assert stated == hashlib.sha256(text.encode()).hexdigest()
    assert content["records"][0]["metrics"] == RECORDS[0].metrics
    assert (content["format"], content["key"]) == (1, KEY)


@pytest.mark.parametrize("umask", [0o000, 0o077])
def test_files_are_readable_by_their_owner_alone_under_any_umask(disk: Store, umask: int) -> None:
    before = os.umask(umask)
    try:
        write(disk)
        disk.failures.write(FAILURE)
        manifest_of(disk).write_bytes(b"damage")
        disk.verify()
    finally:
        os.umask(before)
    assert disk.folder is not None
    found = [disk.folder, *disk.folder.rglob("*")]
    modes = {(path.is_dir(), stat.S_IMODE(path.stat().st_mode)) for path in found}
    assert modes == {(True, 0o700), (False, 0o600)}


def test_a_manifest_or_state_cut_anywhere_is_never_taken_for_whole(disk: Store) -> None:
    for path_of in (manifest_of, state_of):
        for cut in range(64):
            write(disk)
            path = path_of(disk)
            whole = path.read_bytes()
            path.write_bytes(whole[: len(whole) * cut // 64])
            assert not is_whole(disk)
            assert not path.exists()
            assert path.name in quarantined(disk)
            path.write_bytes(whole)
            assert is_whole(disk)


def test_no_flipped_bit_is_ever_read(disk: Store) -> None:
    write(disk)
    rng = random.Random(1)
    for path in (manifest_of(disk), state_of(disk)):
        whole = path.read_bytes()
        for _ in range(300):
            path.write_bytes(flip(whole, rng.randrange(8 * len(whole))))
            assert not is_whole(disk)
            assert not path.exists()
        path.write_bytes(whole)
    assert is_whole(disk)


def test_files_put_in_the_place_of_another_stages_are_refused(disk: Store) -> None:
    write(disk)
    write(disk, SAME_SHARD, state=STATE[::-1])
    for path_of in (state_of, manifest_of):
        ours, theirs = path_of(disk), path_of(disk, SAME_SHARD)
        swapped = theirs.read_bytes(), ours.read_bytes()
        ours.write_bytes(swapped[0])
        theirs.write_bytes(swapped[1])
        assert not is_whole(disk)
        stage = disk.read(SAME_SHARD)
        assert stage is None or disk.states.read(stage) is None
        assert {ours.name, theirs.name} <= set(quarantined(disk))
        ours.write_bytes(swapped[1])
        theirs.write_bytes(swapped[0])


def test_a_state_of_another_stage_is_refused_even_under_a_matching_hash(disk: Store) -> None:
    write(disk)
    twin = write(disk, SAME_SHARD)
    assert twin.state is not None
    state_of(disk, SAME_SHARD).rename(state_of(disk).with_name(f"{KEY}-{twin.state.sha256}.bin"))
    stage = disk.read(KEY)
    assert stage is not None
    forged = Stage(key=KEY, records=RECORDS, facts=FACTS, environment=ENVIRONMENT, state=twin.state)
    assert disk.states.read(forged) is None
    assert disk.states.read(stage) == STATE


def test_a_planted_pickle_is_refused_and_not_executed(disk: Store, tmp_path: Path) -> None:
    class Payload:
        def __reduce__(self) -> tuple[Callable[[str], int], tuple[str]]:
            return os.system, (f"touch {tmp_path}/executed",)

    stage = write(disk)
    for path in (state_of(disk), manifest_of(disk)):
        path.write_bytes(pickle.dumps(Payload()))
    assert disk.states.read(stage) is None
    assert disk.read(KEY) is None
    assert len(quarantined(disk)) == 2
    assert not (tmp_path / "executed").exists()


def test_verify_removes_what_dead_writers_left_and_spares_what_is_young(disk: Store) -> None:
    write(disk)
    left = [
        manifest_of(disk).with_name(f"{KEY}.json.x1.tmp"),
        state_of(disk).with_name(f"{KEY}-{'0' * 64}.bin"),
    ]
    for path in left:
        path.write_bytes(b"half")
    assert disk.verify() == ()
    assert all(path.exists() for path in left)
    hour_ago = time.time() - 3601
    for path in (*left, manifest_of(disk)):
        os.utime(path, (hour_ago, hour_ago))
    assert disk.keys() == {KEY: True}
    assert disk.verify() == ()
    assert not any(path.exists() for path in left)
    assert is_whole(disk)


@pytest.mark.parametrize(
    "name", ["leases/digits.json.x1.tmp", "studies/digits/0a.json.x1.tmp", "stops/digits.x1.tmp"]
)
def test_verify_removes_what_dead_writers_left_beside_the_stages_too(
    disk: Store, name: str
) -> None:
    assert disk.folder is not None
    write(disk)
    left = disk.folder / name
    left.parent.mkdir(parents=True)
    for path in (left, left.with_suffix("")):
        path.write_bytes(b"half")
    assert disk.verify() == ()
    assert left.exists()
    assert disk.verify(stale_after=0) == ()
    assert list(left.parent.iterdir()) == [left.with_suffix("")]
    assert is_whole(disk)


def test_verify_removes_a_state_that_no_manifest_names(store: Store, url: str) -> None:
    write(store)
    alter(url, "/stages/", lambda _: b"")
    assert len(store.verify(stale_after=0)) == 1
    assert list(store.files.names("states")) == []


def test_a_store_loads_neither_torch_nor_numpy() -> None:
    code = "import sys, mixup_core.store.checkpoints; print({'torch', 'numpy'} & set(sys.modules))"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout == "set()\n"


def test_two_thousand_stages_are_listed_in_a_tenth_of_a_second(disk: Store) -> None:
    assert disk.folder is not None
    keys = [hashlib.sha256(b"%d" % number).hexdigest()[:32] for number in range(2_000)]
    for shard in {key[:2] for key in keys}:
        (disk.folder / "stages" / shard).mkdir(parents=True)
        (disk.folder / "states" / shard).mkdir(parents=True)
    for key in keys:
        (disk.folder / "stages" / key[:2] / f"{key}.json").touch()
        (disk.folder / "states" / key[:2] / f"{key}-{'0' * 64}.bin").touch()
    started = time.process_time()
    assert disk.keys() == dict.fromkeys(keys, True)
    assert time.process_time() - started < 0.1


class Killed(BaseException):
    """Stands for the death of the process."""


class FaultyDisk:
    """Counts system calls that change the disk and fails the one asked for.

    With an error number, that call alone fails with it, half of a write done. Without one the
    process dies there: no later call has any effect, so that no clean-up can happen either.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, fail_at: int, error: int | None) -> None:
        self.calls: list[str] = []
        self.fail_at = fail_at
        self.error = error
        for name in ("write", "fsync", "replace", "link", "unlink", "mkdir"):
            monkeypatch.setattr(os, name, self.guarded(name, getattr(os, name)))

    def guarded(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def guarded_call(*args: Any, **kwargs: Any) -> Any:
            if name == "unlink" and self.error is not None:
                return call(*args, **kwargs)
            self.calls.append(name)
            if len(self.calls) == self.fail_at and name == "write":
                call(args[0], args[1][: len(args[1]) // 2])
            if self.error is None and len(self.calls) >= self.fail_at:
                raise Killed
            if len(self.calls) == self.fail_at:
                assert self.error is not None
                raise OSError(self.error, os.strerror(self.error))
            return call(*args, **kwargs)

        return guarded_call


def calls_of(
    monkeypatch: pytest.MonkeyPatch, error: int | None, act: Callable[[], object]
) -> list[str]:
    with monkeypatch.context() as patch:
        faulty = FaultyDisk(patch, fail_at=10**9, error=error)
        act()
    return faulty.calls


def test_state_then_manifest_are_each_synced_named_and_their_folder_synced(
    disk: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(disk, SAME_SHARD)
    calls = calls_of(monkeypatch, errno.ENOSPC, lambda: write(disk))
    state, manifest = ["write", "fsync", "replace", "fsync"], ["write", "fsync", "link", "fsync"]
    assert calls == state + manifest


def test_a_full_disk_at_any_point_is_reported_and_keeps_every_stage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calibration = Store(str(tmp_path / "calibration"))
    points = len(calls_of(monkeypatch, errno.ENOSPC, lambda: write(calibration)))
    for code in (errno.ENOSPC, errno.EDQUOT):
        for point in range(1, points + 1):
            store = Store(str(tmp_path / f"{code}-{point}"))
            assert store.folder is not None
            with monkeypatch.context() as patch:
                FaultyDisk(patch, point, code)
                with pytest.raises(StoreFullError, match=r"^disk full: .*\d bytes$") as caught:
                    write(store)
            assert str(store.folder) in str(caught.value)
            assert store.read(KEY) is None or is_whole(store)
            assert list(store.folder.rglob("*.tmp")) == []
            write(store)
            assert is_whole(store)


def test_a_write_whose_new_file_another_process_clears_away_is_made_again(
    disk: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    link, cleared = files._link, []

    def link_too_late(source: Path, path: Path) -> bool:
        if not cleared:
            cleared.append(source)
            source.unlink()
        return link(source, path)

    monkeypatch.setattr(files, "_link", link_too_late)
    write(disk, "aa01")
    assert disk.read("aa01") is not None


def test_what_a_living_writer_has_begun_is_not_taken_for_a_dead_ones(
    disk: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    link, seen = files._link, []

    def link_after_a_clearing(source: Path, path: Path) -> bool:
        for clear in (lambda: disk.clear_torn("aa01"), lambda: disk.verify(stale_after=0)):
            clear()
            seen.append(source.exists())
        return link(source, path)

    monkeypatch.setattr(files, "_link", link_after_a_clearing)
    write(disk, "aa01")
    assert seen == [True, True]
    assert is_whole(disk, "aa01")


def test_a_full_disk_keeps_the_previous_stage(disk: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    write(disk)
    point = 0
    while disk.read(SAME_SHARD) is None:
        point += 1
        with monkeypatch.context() as patch:
            FaultyDisk(patch, point, errno.ENOSPC)
            with pytest.raises(StoreFullError):
                write(disk, SAME_SHARD)
        assert is_whole(disk)
    assert point >= 6


def test_other_disk_errors_are_raised_as_they_are(
    disk: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(disk)
    with monkeypatch.context() as patch:
        FaultyDisk(patch, 2, errno.EIO)
        with pytest.raises(OSError, match="Input/output error"):
            write(disk, SAME_SHARD)
    assert is_whole(disk)


@pytest.mark.parametrize("before", ["nothing", "records"])
def test_a_writer_killed_at_any_point_leaves_what_was_or_what_should_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: str
) -> None:
    def prepared(name: str) -> Store:
        store = Store(str(tmp_path / name))
        if before == "records":
            write(store, state=None)
        return store

    calibration = prepared("calibration")
    points = len(calls_of(monkeypatch, None, lambda: write(calibration)))
    outcomes = set()
    for point in range(1, points + 1):
        store = prepared(str(point))
        with monkeypatch.context() as patch:
            FaultyDisk(patch, point, None)
            with pytest.raises(Killed):
                write(store)
        stage = store.read(KEY)
        outcomes.add(stage is not None and stage.state is not None)
        if before == "records":
            assert stage is not None
        if stage is not None and stage.state is not None:
            assert is_whole(store)
        write(store)
        assert is_whole(store)
        assert store.verify(stale_after=0) == ()
        assert store.folder is not None
        assert len([path for path in store.folder.rglob("*") if path.is_file()]) == 2
    assert outcomes == {False, True}


@pytest.mark.parametrize("removal", ["drop_state", "delete"])
def test_a_removal_killed_at_any_point_leaves_no_manifest_without_its_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, removal: str
) -> None:
    calibration = Store(str(tmp_path / "calibration"))
    write(calibration)
    points = len(calls_of(monkeypatch, None, lambda: getattr(calibration, removal)(KEY)))
    for point in range(1, points + 1):
        store = Store(str(tmp_path / str(point)))
        write(store)
        with monkeypatch.context() as patch:
            FaultyDisk(patch, point, None)
            with pytest.raises(Killed):
                getattr(store, removal)(KEY)
        stage = store.read(KEY)
        assert removal == "delete" or stage is not None
        if stage is not None and stage.state is not None:
            assert is_whole(store)
        getattr(store, removal)(KEY)
        assert store.keys().get(KEY, False) is False


def test_of_writers_at_once_one_wins_and_all_return_its_stage(disk: Store) -> None:
    for number in range(10):
        key = f"{number:04x}"
        barrier = threading.Barrier(4)
        returned: list[Stage] = []

        def compete(
            writer: int,
            key: str = key,
            barrier: threading.Barrier = barrier,
            returned: list[Stage] = returned,
        ) -> None:
            barrier.wait()
            state = bytes([writer]) * 5000
            returned.append(write(disk, key, state, environment={"writer": str(writer)}))

        threads = [threading.Thread(target=compete, args=(writer,)) for writer in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        winner = disk.read(key)
        assert winner is not None
        assert returned == [winner] * 4
        assert disk.states.read(winner) == bytes([int(winner.environment["writer"])]) * 5000


def test_what_another_machine_wrote_after_a_listing_is_read(store: Store, url: str) -> None:
    write(store, SAME_SHARD)
    assert set(store.keys()) == {SAME_SHARD}
    elsewhere, root = fsspec.core.url_to_fs(url, skip_instance_cache=True)
    folder = f"{root}/stages/{KEY[:2]}"
    elsewhere.pipe_file(f"{folder}/{KEY}.json", elsewhere.cat_file(f"{folder}/{SAME_SHARD}.json"))
    assert store.files.read(f"stages/{KEY[:2]}/{KEY}.json")
    assert set(store.keys()) == {SAME_SHARD, KEY}


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.parametrize("server", object_stores.NAMES)
def test_of_processes_that_race_for_a_stage_one_writes_it_in_every_round(
    server: str, client_of: Callable[[str], object], tmp_path: Path
) -> None:
    client_of(server)
    told = race(write_stage, f"s3://studies{tmp_path}", racers=4, rounds=100)
    assert [len(set(sum(got, ()))) for got in told] == [1] * 100
    assert len({got[0] for got in told}) > 1, "one racer was always first: no race"


def interrupted_at(
    monkeypatch: pytest.MonkeyPatch,
    owner: type,
    name: str,
    act: Callable[[], object],
    *,
    after: int,
) -> None:
    """Let another process act once, just before the call of a method with some number."""
    original, calls = getattr(owner, name), []

    def call(*args: Any, **kwargs: Any) -> Any:
        calls.append(name)
        if len(calls) == after + 1:
            act()
        return original(*args, **kwargs)

    monkeypatch.setattr(owner, name, call)


def turns(methods: Sequence[str], times: int) -> Iterator[tuple[str, str, int, Any]]:
    """Yield a key, a method, a number of its calls, and what notes that the other process acted.

    A method that is not called so often is not asked about more calls. The other process must have
    acted four times in all.
    """
    keys, acted = (f"{number:04x}" for number in itertools.count()), []
    for method in methods:
        for after in range(times):
            key = next(keys)

            def noted(act: Callable[[], object], key: str = key) -> Callable[[], None]:
                return lambda: (acted.append(key), act())

            yield key, method, after, noted
            if key not in acted:
                break
    assert len(acted) >= 4


@pytest.mark.parametrize("before", ["nothing", "records"])
@pytest.mark.parametrize("removal", ["clear_torn", "delete", "drop_state"])
def test_a_state_stays_that_is_stored_while_another_process_removes_it(
    store: Store, monkeypatch: pytest.MonkeyPatch, removal: str, before: str
) -> None:
    methods = ["names", "read", "read_present", "move", "remove", "create", "write", "has"]
    for key, method, after, removed in turns(methods, 4):
        if before == "records":
            write(store, key, state=None)
        with monkeypatch.context() as patch:
            act = removed(functools.partial(getattr(store, removal), key))
            interrupted_at(patch, type(store.files), method, act, after=after)
            write(store, key)
        stage = store.read(key)
        if stage is None:
            assert removal == "delete", "it was stored and is gone"
        elif removal != "drop_state" or stage.state is not None:
            assert stage.state is not None
            assert store.states.read(stage) == STATE, (method, after)


@pytest.mark.parametrize("removal", ["clear_torn", "delete", "drop_state"])
def test_a_state_stays_that_another_process_stores_while_it_is_removed(
    store: Store, monkeypatch: pytest.MonkeyPatch, removal: str
) -> None:
    methods = ["names", "read", "read_present", "move", "remove", "write"]
    for key, method, after, stored in turns(methods, 5):
        write(store, key)
        if removal == "clear_torn":
            store.files.remove(f"stages/{key[:2]}/{key}.json")
        with monkeypatch.context() as patch:
            act = stored(functools.partial(write, store, key))
            interrupted_at(patch, type(store.files), method, act, after=after)
            getattr(store, removal)(key)
        stage = store.read(key)
        if stage is not None and stage.state is not None:
            assert store.states.read(stage) == STATE, (method, after)


def test_a_state_that_a_dead_process_had_put_aside_is_found(store: Store) -> None:
    stage = write(store)
    assert stage.state is not None
    name = f"states/{KEY[:2]}/{KEY}-{stage.state.sha256}.bin"
    store.files.move(name, f"{name}.0a1b2c3d.torn")
    assert store.states.read(stage) == STATE
    assert store.keys() == {KEY: True}
    store.files.move(name, f"{name}.0a1b2c3d.torn")
    store.clear_torn(KEY)
    assert store.states.read(stage) == STATE
    store.files.move(name, f"{name}.0a1b2c3d.torn")
    assert store.verify(stale_after=0) == ()
    assert store.states.read(stage) == STATE


def test_of_two_processes_that_put_a_state_back_the_slower_is_content(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = write(store)
    assert stage.state is not None
    name = f"states/{KEY[:2]}/{KEY}-{stage.state.sha256}.bin"
    torn = f"{name}.0a1b2c3d.torn"
    store.files.move(name, torn)
    store.files.remove(f"stages/{KEY[:2]}/{KEY}.json")
    with monkeypatch.context() as patch:
        # Looked at once, there is no manifest; looked at again, there is, and the state is back.
        interrupted_at(patch, type(store.files), "read_present", lambda: write(store), after=1)
        interrupted_at(
            patch, type(store.files), "move", lambda: store.files.move(torn, name), after=0
        )
        store.clear_torn(KEY)
    assert store.states.read(stage) == STATE
    assert not [left for left in store.files.names("states") if left.endswith(".torn")]


def test_a_reader_that_is_slow_to_put_damage_aside_leaves_what_replaced_it(
    disk: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def replace() -> None:
        path.write_bytes(whole)

    stage = write(disk)
    for path, read in (
        (manifest_of(disk), lambda: disk.read(KEY)),
        (state_of(disk), lambda: disk.states.read(stage)),
    ):
        whole = path.read_bytes()
        path.write_bytes(b"damaged")
        with monkeypatch.context() as patch:
            interrupted_at(patch, type(disk.files), "move", replace, after=0)
            read()
        assert is_whole(disk)


@pytest.mark.long
@pytest.mark.timeout(600)
def test_of_processes_that_store_and_clear_the_same_stage_none_loses_its_state(
    tmp_path: Path,
) -> None:
    told = race(clear_what_others_store, str(tmp_path / "store"), racers=4, rounds=60)
    assert all(all(got) for got in told)


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.parametrize("server", object_stores.NAMES)
def test_of_processes_that_store_and_clear_a_stage_in_a_bucket_none_loses_its_state(
    server: str, client_of: Callable[[str], object], tmp_path: Path
) -> None:
    client_of(server)
    told = race(clear_what_others_store, f"s3://studies{tmp_path}", racers=4, rounds=50)
    assert all(all(got) for got in told)


def test_a_disk_without_links_is_written_all_the_same(
    disk: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise OSError(errno.EPERM, "no links here")

    monkeypatch.setattr(os, "link", refuse)
    first = write(disk)
    assert is_whole(disk)
    assert write(disk, state=b"other") == first


def test_a_relative_store_is_the_same_from_every_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert Store("store").url == str(tmp_path / "store")


@pytest.mark.parametrize("url", ["nowhere://store", "s4://bucket/store"])
def test_a_url_that_nobody_knows_is_refused(url: str) -> None:
    with pytest.raises(StoreError, match=r"nowhere|s4"):
        Store(url)
