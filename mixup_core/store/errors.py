"""What a store cannot do, told as exceptions."""


class StoreError(Exception):
    """The store cannot do what was asked."""


class StoreFullError(StoreError):
    """The disk or the quota is full; everything stored before is intact."""


class UnreadableError(StoreError):
    """Something has the name of a file and cannot be read as one; the text says what, no more."""
