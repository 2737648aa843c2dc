"""Concealed: remove passwords and keys in addresses from messages and logs of this process."""

import logging
from typing import Any

from mixup_core.addresses import Address, scrubbed, without_secrets

_known: dict[str, Address] = {}
"""Each registered address without its secrets, by the full address."""


def conceal(url: str, shown: Address) -> None:
    """Register an address, so that messages and log records show it without its secrets.

    Libraries log errors of servers, which quote the full address.

    Args:
        url: The full address.
        shown: The address without its secrets, which replaces the full address.
    """
    if shown.is_whole:
        return
    if not _known:
        logging.setLogRecordFactory(_Records(logging.getLogRecordFactory()))
    _known[url] = shown


def concealed(text: str) -> str:
    """Return a text without the secrets of registered addresses and of any other URL in it."""
    for url, shown in _known.items():
        text = scrubbed(text, url, shown)
    return without_secrets(text)


class _Records:
    """Factory of log records; removes registered secrets from messages and tracebacks."""

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
