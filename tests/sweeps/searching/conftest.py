"""Fixtures that make opening hundreds of searches fast."""

from collections.abc import Iterator

import pytest
from optuna.storages._rdb.storage import _VersionManager


@pytest.fixture(scope="session", autouse=True)
def migrations_read_once() -> Iterator[None]:
    """Let Optuna read its list of migrations once, not at every opening."""
    read, known = _VersionManager.get_head_version, []

    def head_version(manager: _VersionManager) -> str:
        if not known:
            known.append(read(manager))
        return known[0]

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(_VersionManager, "get_head_version", head_version)
        yield
