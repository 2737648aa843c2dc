"""Stored files: a stage and a failure as the tests store them, and ways to alter them."""

import hashlib
import json
import random
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import fsspec

from mixup_core.records import EpochRecord
from mixup_core.store.checkpoints import Store
from mixup_core.store.manifests import EpochFacts, Failure, Stage

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


def write(store: Store, key: str = KEY, state: bytes | None = STATE, **changes: Any) -> Stage:
    given: dict[str, Any] = {"records": RECORDS, "facts": FACTS, "environment": ENVIRONMENT}
    return store.write(key, **(given | changes), state=state)


def failure_of(store: Store, key: str = KEY) -> Path:
    return store.folder / "failures" / f"{key}.json"


def reseal(sealed: bytes, changes: Mapping[str, Any]) -> bytes:
    """Return a manifest as another version would write it: changed fields, correct sha256."""
    content = json.loads(sealed) | changes
    del content["sha256"]
    return sealed_by_hand(json.dumps(content, sort_keys=True, separators=(",", ":")).encode())


def sealed_by_hand(text: bytes) -> bytes:
    """Return JSON with its own sha256 as the first key."""
    return b'{"sha256":"%s",' % hashlib.sha256(text).hexdigest().encode() + text[1:]


def manifest_of(store: Store, key: str = KEY) -> Path:
    return store.folder / "stages" / key[:2] / f"{key}.json"


def state_of(store: Store, key: str = KEY) -> Path:
    (path,) = (store.folder / "states" / key[:2]).glob(f"{key}-*.bin")
    return path


def quarantined(store: Store) -> list[str]:
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
