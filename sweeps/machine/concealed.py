"""Concealed: the addresses of this process that hold secrets, kept out of messages and logs."""

import logging
from typing import Any

from mixup_core.addresses import Address, scrubbed, without_secrets

_known: dict[str, Address] = {}
"""Each whole address to what may be shown of it."""


def conceal(url: str, shown: Address) -> None:
    """Keep an address out of all that `concealed` returns and of every log record from now on.

    Libraries log the errors of servers, and these quote addresses or pieces of them.
    """
    if shown.is_whole:
        return
    if not _known:
        logging.setLogRecordFactory(_Records(logging.getLogRecordFactory()))
    _known[url] = shown


def concealed(text: str) -> str:
    """Return a text without secrets of addresses, those known and any other in the text."""
    for url, shown in _known.items():
        text = scrubbed(text, url, shown)
    return without_secrets(text)


class _Records:
    """A factory of log records whose messages and tracebacks hold no known secret."""

    def __init__(self, factory: Any) -> None:
        self._factory = factory

    def __call__(self, *args: Any, **options: Any) -> logging.LogRecord:
        record: logging.LogRecord = self._factory(*args, **options)
        try:
            message = record.getMessage()
        except (TypeError, ValueError):  # a mistake of whoever logs; `logging` reports it
            return record
        record.msg, record.args = concealed(message), ()
        if record.exc_info and record.exc_info[0] is not None:
            record.exc_text = concealed(logging.Formatter().formatException(record.exc_info))
            record.exc_info = None
        return record
