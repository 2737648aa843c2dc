"""StateStore: one process stores states while another removes them."""

import functools

import pytest

from mixup_core.store.checkpoints import Store
from mixup_core.store.manifests import Stage
from tests import object_stores
from tests.mixup_core.store.other_processes import interrupted_at, turns
from tests.mixup_core.store.stored_files import (
    ENVIRONMENT,
    FACTS,
    KEY,
    RECORDS,
    SAME_SHARD,
    STATE,
    state_of,
    write,
)
from tests.races import clear_what_others_store, race


def test_a_state_of_another_stage_is_refused_even_under_a_matching_hash(disk: Store) -> None:
    write(disk)
    twin = write(disk, SAME_SHARD)
    state_of(disk, SAME_SHARD).rename(state_of(disk).with_name(f"{KEY}-{twin.state.sha256}.bin"))
    stage = disk.read(KEY)
    assert stage is not None
    forged = Stage(key=KEY, records=RECORDS, facts=FACTS, environment=ENVIRONMENT, state=twin.state)
    assert disk.states.read(forged) is None
    assert disk.states.read(stage) == STATE


@pytest.mark.parametrize("before", ["nothing", "records"])
@pytest.mark.parametrize("removal", ["clear_torn", "delete", "drop_state"])
def test_a_state_survives_a_removal_that_interrupts_its_write(
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
def test_a_state_survives_when_it_is_written_during_its_removal(
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


def test_a_state_set_aside_by_a_dead_process_is_found(store: Store) -> None:
    stage = write(store)
    name = f"states/{KEY[:2]}/{KEY}-{stage.state.sha256}.bin"
    for act in (lambda: None, lambda: store.clear_torn(KEY), lambda: store.verify(stale_after=0)):
        store.files.move(name, f"{name}.0a1b2c3d.torn")
        assert not act()
        assert store.states.read(stage) == STATE
    assert store.keys() == {KEY: True}


def test_two_processes_can_restore_the_same_state(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = write(store)
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


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("url", ["folder", *object_stores.NAMES], indirect=True)
def test_no_state_is_lost_while_other_processes_write_and_clear_it(url: str) -> None:
    complete = race(clear_what_others_store, url, racers=4, rounds=50)
    assert all(map(all, complete))
