"""Fixtures that make opening hundreds of searches fast."""

from collections.abc import Iterator

import pytest
from alembic.script import ScriptDirectory


@pytest.fixture(scope="session", autouse=True)
def migrations_read_once() -> Iterator[None]:
    """Let Optuna read its list of migrations once, not at every opening."""
    read = ScriptDirectory.get_current_head
    known: dict[str, str | None] = {}

    def head(script: ScriptDirectory) -> str | None:
        if script.dir not in known:
            known[script.dir] = read(script)
        return known[script.dir]

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(ScriptDirectory, "get_current_head", head)
        yield
