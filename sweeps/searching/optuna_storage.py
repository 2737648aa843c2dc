"""Optuna storage: opens the database or journal file in which Optuna keeps searches."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import optuna
from optuna.exceptions import OptunaError
from optuna.storages import BaseStorage, JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend
from sqlalchemy.exc import SQLAlchemyError

from mixup_core.addresses import reason
from mixup_core.store.errors import UnreadableError
from mixup_core.store.local_files import make_folder, read_regular
from sweeps.machine.databases import database_address, database_file
from sweeps.study.search import SearchError

_PATIENCE = 60
"""Seconds that a write waits for readers of a database file, such as a dashboard."""

_STORAGE_ERRORS = (OptunaError, SQLAlchemyError, ImportError, OSError, RuntimeError, ValueError)

_JOURNAL = b'{"op_code"'
"""First bytes of every journal file of Optuna."""
_LOOKS, _LOOK_AGAIN = 5, 0.1
"""Number of reads of a journal with an incomplete last line, and seconds between them: another
process may be writing it."""

optuna.logging.set_verbosity(optuna.logging.ERROR)


@contextmanager
def answering(url: str) -> Iterator[None]:
    """Raise `SearchError` with a message of one line for any storage error inside the block."""
    try:
        yield
    except _STORAGE_ERRORS as error:
        cause: BaseException = error
        while cause.__cause__ is not None:
            cause = cause.__cause__
        address = database_address(url)
        raise SearchError(
            f"Optuna's storage {address} cannot be used: {reason(cause, address)}"
        ) from None  # the cause may quote the password


def open_storage(url: str) -> BaseStorage:
    """Open an Optuna storage; create it if it does not exist."""
    if url.removeprefix("sqlite://") in {"", "/", "/:memory:"}:
        raise ValueError(
            "a database in memory loses the search when the program ends; "
            "give the URL of a database file or server"
        )
    if "://" in url:
        waits = {"connect_args": {"timeout": _PATIENCE}} if database_file(url) else {}
        return RDBStorage(url, engine_kwargs=waits)
    file = Path(url)
    _require_journal(file)
    make_folder(file.resolve().parent)
    try:
        return JournalStorage(JournalFileBackend(url))
    except (AssertionError, AttributeError, LookupError, TypeError) as error:
        raise ValueError(
            f"the file is not an Optuna journal, or is damaged ({type(error).__name__}: {error})"
        ) from None


def _require_journal(file: Path) -> None:
    """Check that a file, if it exists, is a complete Optuna journal."""
    for tries_left in reversed(range(_LOOKS)):
        try:
            content = read_regular(file)
        except FileNotFoundError:
            return
        except UnreadableError as error:
            raise ValueError(f"the path {error}") from None
        if content[: len(_JOURNAL)] not in {b"", _JOURNAL}:
            raise ValueError(
                "the file is not an Optuna journal; to use a database, give its URL, such as "
                "sqlite:///PATH"
            )
        if not content or content.endswith(b"\n"):
            return
        if tries_left:
            time.sleep(_LOOK_AGAIN)
    raise ValueError(
        "the last line of the journal is incomplete; delete that line and run the command again: "
        "the search then resumes from the line before"
    )
