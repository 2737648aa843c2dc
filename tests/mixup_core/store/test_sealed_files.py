"""SealedFiles: a damaged file is reported once and never used."""

import os
import random
from collections.abc import Callable
from pathlib import Path

import fsspec
import pytest

from mixup_core.store.checkpoints import Store
from tests.damages import DAMAGES, NO_FILES
from tests.mixup_core.store.other_processes import interrupted_at
from tests.mixup_core.store.stored_files import (
    FAILURE,
    KEY,
    SAME_SHARD,
    STATE,
    alter,
    failure_of,
    flip,
    is_whole,
    manifest_of,
    quarantined,
    state_of,
    write,
)


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


def test_a_file_with_a_flipped_bit_is_not_accepted(disk: Store) -> None:
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
    assert disk.folder is not None
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
