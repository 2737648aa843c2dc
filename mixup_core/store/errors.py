"""Errors of store operations."""


class StoreError(Exception):
    """Error: a store operation failed. The message names the file or address and the reason."""


class StoreFullError(StoreError):
    """Error: the disk or the quota is full. Everything stored before is intact."""


class UnreadableError(StoreError):
    """Error: a path exists, but is not a readable regular file. The message says what it is."""
