"""Stops: requests to stop, which `mixsweep stop` leaves in the store for the driver of a study.

    stops/<study>.json    the driver to stop, and how

The driver may run on another machine. A request contains the number of the driver's lease, so that
later drivers of the study ignore it.
"""

import json
from dataclasses import asdict, dataclass
from typing import Literal

from mixup_core.store.checkpoints import Store
from mixup_core.store.json_records import Ordinal, record_in_note
from sweeps.leasing.holders import Holder, checked

Stop = Literal["finish", "now"]
"""Ways to stop a driver. `finish`: start no more runs, but finish the runs in training. `now`:
interrupt the runs in training too."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Request:
    token: Ordinal
    how: Stop


def ask_to_stop(store: Store, study: str, holder: Holder, how: Stop) -> None:
    """Ask the driver of a study to stop; it reads such requests about once a second."""
    request = _Request(token=holder.token, how=how)
    store.files.write(_name(study), json.dumps(asdict(request)).encode())


def asked_to_stop(store: Store, study: str, holder: Holder) -> Stop | None:
    """Return how a driver was asked to stop; None if there is no request.

    With `finish` it lets the runs in training end, with `now` it interrupts them.
    """
    for name, content in store.files.read_present([_name(study)]):
        request = record_in_note(_Request, name, content)
        if request is not None and request.token == holder.token:
            return request.how
    return None


def _name(study: str) -> str:
    return f"stops/{checked(study)}.json"
