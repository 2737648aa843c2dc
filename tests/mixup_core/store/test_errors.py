"""File errors: messages with a path, the reason and advice."""

import errno
import os
from pathlib import Path

import pytest

from mixup_core.store.errors import naming, spell_file_error


@pytest.mark.parametrize(
    ("number", "told"),
    [
        (errno.EDQUOT, "x: disk full; stored results are kept; `mixsweep store prune STUDY`"),
        (errno.EROFS, "x: Read-only file system; give this user permission, or use another folder"),
        (errno.EIO, "x: Input/output error; the disk or its server failed: check it"),
        (errno.EXDEV, "x: Invalid cross-device link; this file system lacks an operation"),
        (errno.ENOENT, "x: No such file or directory"),
    ],
)
def test_a_message_has_the_path_the_reason_and_advice(number: int, told: str) -> None:
    assert spell_file_error(OSError(number, os.strerror(number), "x")).startswith(told)


def test_an_error_of_an_open_file_gets_its_path() -> None:
    for raised in (OSError(errno.EIO, "failed"), OSError(errno.EIO, "failed", "other")):
        named = raised.filename or "x"
        with pytest.raises(OSError, match="failed") as caught, naming(Path("x")):
            raise raised
        assert caught.value.filename == named
