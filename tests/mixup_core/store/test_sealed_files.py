"""SealedFiles: a damaged file is reported once and never used."""

import dataclasses
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mixup_core.store.checkpoints import Store
from mixup_core.store.manifests import Failure, FormatError
from tests.damages import DAMAGES, NO_FILES
from tests.mixup_core.store.other_processes import interrupted_at
from tests.mixup_core.store.stored_files import (
    FAILURE,
    KEY,
    SAME_SHARD,
    STATE,
    alter,
    failure_of,
    is_whole,
    manifest_of,
    quarantined,
    reseal,
    state_of,
    write,
)


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("path_of", [manifest_of, state_of, failure_of])
def test_a_damaged_file_is_named_once_moved_to_quarantine_and_replaced_by_the_next_write(
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
def test_anything_but_a_regular_file_is_moved_before_a_write_a_removal_or_a_bulk_read(
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


def test_damaged_files_of_equal_names_are_all_kept(store: Store, url: str) -> None:
    write(store)
    store.failures.write(FAILURE)
    for top, content in (("stages", b"one"), ("failures", b"two")):
        alter(url, f"/{top}/", lambda _, content=content: content)
    assert len(store.verify()) == 2
    names = store.quarantined()
    assert names == (f"quarantine/{KEY}.json", f"quarantine/{KEY}.json.1")
    assert {store.files.read(name) for name in names} == {b"one", b"two"}


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


def test_files_swapped_between_two_stages_are_refused(disk: Store) -> None:
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


def test_a_slow_reader_does_not_quarantine_the_replacement_of_a_damaged_file(
    disk: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def replace() -> None:
        path.write_bytes(whole)

    stage = write(disk)
    (disk.folder / "quarantine" / f"{KEY}.json").mkdir(parents=True)
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


@pytest.fixture
def newer(store: Store, url: str) -> Store:
    """Store with a stage and a failure of a newer format."""
    write(store)
    store.failures.write(FAILURE)
    for folder in ("/stages/", "/failures/"):
        alter(url, folder, lambda sealed: reseal(sealed, {"format": 3}))
    return store


def test_a_file_of_a_newer_format_is_refused_by_name_and_stays_unchanged(newer: Store) -> None:
    for use in (
        lambda: newer.read(KEY),
        lambda: newer.keys(proven=[KEY]),
        lambda: write(newer),
        lambda: newer.drop_state(KEY),
        newer.failures.read_all,
    ):
        with pytest.raises(
            FormatError, match=rf"^(stages/01|failures)/{KEY}\.json: store format 3, .* up to 1: "
        ):
            use()
    assert newer.keys() == {KEY: True}


def test_records_of_a_newer_format_are_skipped_and_named_where_others_are_wanted(
    newer: Store, caplog: pytest.LogCaptureFixture
) -> None:
    assert newer.verify(stale_after=0.0) == ()
    assert [*newer.stages()] == []
    assert [line.split(", ")[0] for line in caplog.messages] == [
        f"skipped: stages/01/{KEY}.json: store format 3",
        f"skipped: failures/{FAILURE.run_key}.json: store format 3",
        f"skipped: stages/01/{KEY}.json: store format 3",
    ]
    assert newer.keys() == {KEY: True}


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


@pytest.mark.parametrize(
    ("path_of", "changes"),
    [
        (manifest_of, {"records": 7}),
        (manifest_of, {"records": [{"epoch": 0}]}),
        (manifest_of, {"facts": [{}]}),
        (manifest_of, {"state": []}),
        (manifest_of, {"key": ["a"]}),
        (manifest_of, {"format": None}),
        (failure_of, {"run_key": "../../etc"}),
        (failure_of, {"format": None}),
    ],
)
def test_a_sealed_file_with_invalid_fields_is_damaged(
    disk: Store, path_of: Callable[[Store], Path], changes: dict[str, Any]
) -> None:
    write(disk)
    disk.failures.write(FAILURE)
    path = path_of(disk)
    path.write_bytes(reseal(path.read_bytes(), changes))
    (problem,) = disk.verify()
    assert problem.endswith(f"{path.name}: damaged")
    assert quarantined(disk) == [path.name]
    assert bool(disk.failures.read_all()) == (path_of is manifest_of) != is_whole(disk)


def test_failures_are_kept_until_removed(store: Store) -> None:
    store.failures.write(FAILURE)
    again = Failure(run_key=KEY, kind="failed", message="killed", epoch=None, attempts=3)
    other = Failure(run_key="aa01", kind="diverged", message="inf", epoch=0, attempts=1)
    store.failures.write(again)
    store.failures.write(other)
    assert store.failures.read_all() == {KEY: again, "aa01": other}
    store.failures.remove(KEY)
    assert store.failures.read_all() == {"aa01": other}
    assert store.keys() == {}


def test_control_characters_in_a_failure_message_are_escaped_when_read(store: Store) -> None:
    hostile = dataclasses.replace(FAILURE, message="\x1b[2Jone\ntwo\u202e")
    store.failures.write(hostile)
    assert store.failures.read_all()[KEY].message == r"\x1b[2Jone\ntwo\u202e"
