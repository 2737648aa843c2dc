from dataclasses import replace
from pathlib import Path

import pytest

from mixup_core.store.checkpoints import Store
from mixup_core.store.json_records import name_once
from sweeps.leasing.holders import Holder
from sweeps.leasing.stops import ask_to_stop, asked_to_stop

HOLDER = Holder.here(3, "mixsweep run digits")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(str(tmp_path))


def test_only_the_named_driver_gets_a_stop_request_and_the_last_one_counts(store: Store) -> None:
    assert asked_to_stop(store, "digits", HOLDER) is None
    ask_to_stop(store, "digits", HOLDER, "finish")
    assert asked_to_stop(store, "digits", HOLDER) == "finish"
    assert asked_to_stop(store, "digits", replace(HOLDER, token=4)) is None
    assert asked_to_stop(store, "moons", HOLDER) is None
    ask_to_stop(store, "digits", HOLDER, "now")
    assert asked_to_stop(store, "digits", HOLDER) == "now"


@pytest.mark.parametrize(
    "content", [b"", b"[3]", b'{"token": "3"}', b'{"how": "now"}', b'{"token": 3, "how": 1}']
)
def test_a_damaged_stop_request_is_named_and_ignored(
    store: Store, tmp_path: Path, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    ask_to_stop(store, "digits", HOLDER, "now")
    (tmp_path / "stops" / "digits.json").write_bytes(content)
    name_once.cache_clear()
    assert asked_to_stop(store, "digits", HOLDER) is None
    assert "stops/digits.json: " in caplog.text
