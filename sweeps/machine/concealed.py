"""Concealed: hides the secrets in addresses of this process from messages and logs."""

import logging
from typing import Any

from mixup_core.addresses import Address, scrubbed, without_secrets

_known: dict[str, Address] = {}
"""The harmless form of each full address."""


def conceal(url: str, shown: Address) -> None:
    """Hide the secrets of an address in results of `concealed` and in all later log records.

    Libraries log the errors of servers, and these quote addresses or parts of them.
    """
    if shown.is_whole:
        return
    if not _known:
        logging.setLogRecordFactory(_Records(logging.getLogRecordFactory()))
    _known[url] = shown


def concealed(text: str) -> str:
    """Return a text with the secrets of addresses removed, both registered and other ones."""
    for url, shown in _known.items():
        text = scrubbed(text, url, shown)
    return without_secrets(text)


class _Records:
    """A factory of log records that removes registered secrets from messages and tracebacks."""

    def __init__(self, factory: Any) -> None:
        self._factory = factory

    def __call__(self, *args: Any, **options: Any) -> logging.LogRecord:
        record: logging.LogRecord = self._factory(*args, **options)
        try:
            message = record.getMessage()
        except (TypeError, ValueError):  # wrong arguments; `logging` reports them
            return record
        record.msg, record.args = concealed(message), ()
        if record.exc_info and record.exc_info[0] is not None:
            record.exc_text = concealed(logging.Formatter().formatException(record.exc_info))
            record.exc_info = None
        return record
