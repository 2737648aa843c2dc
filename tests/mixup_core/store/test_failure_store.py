"""FailureStore: reasons of ended runs, even if others have written to the store."""

import dataclasses
from typing import Any

import pytest

from mixup_core.store.checkpoints import Store
from mixup_core.store.manifests import Failure, FormatError
from tests.mixup_core.store.stored_files import (
    FAILURE,
    KEY,
    failure_of,
    quarantined,
    reseal,
)


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


def test_a_failure_of_a_newer_format_is_refused_by_name(disk: Store) -> None:
    disk.failures.write(FAILURE)
    failure_of(disk).write_bytes(reseal(failure_of(disk).read_bytes(), {"format": 3}))
    with pytest.raises(FormatError, match=rf"^failures/{KEY}\.json: store format 3, "):
        disk.failures.read_all()


@pytest.mark.parametrize(
    "changes", [{"run_key": "aa01"}, {"run_key": "../../etc"}, {"format": None}]
)
def test_a_sealed_failure_with_another_key_or_no_format_is_damaged(
    disk: Store, changes: dict[str, Any]
) -> None:
    disk.failures.write(FAILURE)
    failure_of(disk).write_bytes(reseal(failure_of(disk).read_bytes(), changes))
    assert disk.failures.verify() == (f"failures/{KEY}.json: damaged",)
    assert quarantined(disk) == [failure_of(disk).name]
    assert disk.failures.read_all() == {}
