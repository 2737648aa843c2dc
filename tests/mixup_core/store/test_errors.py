"""File errors name their path; `tests/faults/test_refusals.py` has the reason and advice."""

import errno
from pathlib import Path

import pytest

from mixup_core.store.errors import naming


def test_an_error_of_an_open_file_gets_its_path() -> None:
    for raised in (OSError(errno.EIO, "failed"), OSError(errno.EIO, "failed", "other")):
        named = raised.filename or "x"
        with pytest.raises(OSError, match="failed") as caught, naming(Path("x")):
            raise raised
        assert caught.value.filename == named
