"""Stops: requests in the store that ask the driver of a study to stop, on any machine.

    stops/<study>.json    for which driver, and how

A request is for one lease only, so the next launch of the study ignores it.
"""

import json
from typing import Literal

from mixup_core.store.checkpoints import Store
from mixup_core.store.notes import parse_note
from sweeps.leasing.holders import Holder, checked

Stop = Literal["finish", "now"]
"""`finish`: start no more runs and finish the running ones. `now`: stop the running ones too."""


def ask_to_stop(store: Store, study: str, holder: Holder, how: Stop) -> None:
    """Ask the driver of a study to stop; it checks about once a second.

    Raises:
        StoreError: If the store cannot be written.
        ValueError: If the name is not a valid study name.
    """
    store.files.write(_name(study), json.dumps({"token": holder.token, "how": how}).encode())


def asked_to_stop(store: Store, study: str, holder: Holder) -> Stop | None:
    """Return how a driver was asked to stop; None if it was not.

    Raises:
        StoreError: If the store is in a bucket that cannot be reached.
        ValueError: If the name is not a valid study name.
    """
    for _, content in store.files.read_present([_name(study)]):
        record = parse_note(content)
        if record is not None and record.get("token") == holder.token:
            return "now" if record.get("how") == "now" else "finish"
    return None


def _name(study: str) -> str:
    return f"stops/{checked(study)}.json"
