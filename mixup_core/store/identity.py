"""Identity of a store: a random ID that marks the store's entries in MLflow and Optuna."""

import re
import secrets

from mixup_core.store.checkpoints import Store
from mixup_core.store.errors import UnreadableError

_FILE = "identity"
_FORM = re.compile(r"[0-9a-f]{32}")


def identity_of(store: Store) -> str:
    """Return the random ID of a store's entries in MLflow and Optuna; create a missing one."""
    if (found := known_identity(store)) is not None:
        return found
    made = secrets.token_hex(16)
    store.files.create(_FILE, made.encode())
    found = known_identity(store)
    if found is None:  # damaged: entries with the former ID no longer belong to this store
        store.files.write(_FILE, made.encode())
    return found or made


def known_identity(store: Store) -> str | None:
    """Return the random ID that marks a store's entries in MLflow and Optuna; None if absent."""
    try:
        found = store.files.read(_FILE).decode("ascii", errors="replace")
    except (FileNotFoundError, NotADirectoryError, UnreadableError):
        return None
    return found if _FORM.fullmatch(found) else None
