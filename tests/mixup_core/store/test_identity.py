"""Identity: a store has one id for ever, and no two stores have the same."""

from pathlib import Path

import pytest

from mixup_core.store.checkpoints import Store
from mixup_core.store.identity import identity_of, known_identity


def test_a_store_keeps_its_identity_and_differs_from_other_stores(tmp_path: Path) -> None:
    one, other = Store(str(tmp_path / "one")), Store(str(tmp_path / "other"))
    assert known_identity(one) is None
    assert identity_of(one) == identity_of(one) == known_identity(Store(str(tmp_path / "one")))
    assert identity_of(other) != identity_of(one)


@pytest.mark.parametrize("content", [b"", b"\xff", b"x" * 32, b"0" * 31, b"0" * 33])
def test_a_damaged_identity_is_replaced(tmp_path: Path, content: bytes) -> None:
    store = Store(str(tmp_path))
    (tmp_path / "identity").write_bytes(content)
    assert known_identity(store) is None
    assert identity_of(store) == known_identity(store)
