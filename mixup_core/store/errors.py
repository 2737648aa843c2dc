"""Exceptions of a store."""


class StoreError(Exception):
    """A store operation failed; the message names the file or address and the reason."""


class StoreFullError(StoreError):
    """The disk or the quota is full; everything stored before is intact."""


class UnreadableError(StoreError):
    """A path exists and cannot be read as a regular file; the message says what it is."""
