"""Trainable: trains one run as a Ray Tune trial, in a Ray process that trains many runs in turn."""

import functools
import os
import platform
import time
from typing import Any

import ray
from ray import tune

from mixup_core.plugins.source import PluginError
from mixup_core.store.checkpoints import Store
from mixup_core.store.errors import StoreError
from sweeps.leasing.holders import Holder
from sweeps.leasing.lease import Lease, asked_to_stop
from sweeps.running.assignment import Assignment
from sweeps.running.attempt import Driver, attempt, prepare_process, require_store
from sweeps.running.retries import device_id

REPORTS_PER_SECOND = 50.0
"""Largest number of reports per second of all runs together, urgent ones not counted. Each report
costs the driver milliseconds, and MLflow more."""

_STORE_PATIENCE = 3.0
"""Seconds that a shared file system has to show a file that another node has just written."""
_BEFORE_DECLINING = 1.0
"""Seconds to wait for another free device before a run gives back a device on which it failed
earlier."""
_NAP = 3600.0


class UnsharedStoreError(StoreError):
    """The path of the store leads to different folders on this node and on the driver's machine."""


def train_run(parameters: dict[str, Any]) -> dict[str, Any]:
    """Train one run to its end; called by Ray Tune in a process that trains many runs in turn.

    Fatal errors end the process; the driver decides whether to try again (`Retries`). A device that
    only this run must avoid is released; one that no run may use stays occupied.
    """
    prepare_process()
    if not ray.get_gpu_ids():
        # Ray does not hide GPUs from runs that reserved none. CUDA reads this at its first call.
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
    place = _place()
    driver = Driver(tune.report, device_id(place))
    ids = {device_id(place), device_id(place, is_node=True)}
    if ids & parameters["avoided"]:
        if ids & parameters["sick"] or parameters["is_last"]:
            driver.hold()
            while True:  # otherwise Ray would use the device for the next run
                time.sleep(_NAP)
        time.sleep(_BEFORE_DECLINING)
        return driver.failure("declined", "")
    with driver.hearing("mixup_core", "sweeps.running.storing"):
        sent: Assignment = parameters["assignment"]
        study, holder = parameters["study"], parameters["driver"]
        try:
            assignment = sent.open()
            _require_same_store(assignment.store, study, holder)
            require_store(store := Store(assignment.store))
            if asked_to_stop(store, study, holder):
                # Tune started this trial before the driver saw the request.
                return driver.failure("stopped", "")
        except (UnsharedStoreError, PluginError) as error:
            return driver.failure("unshared", str(error))
        except StoreError as error:
            return driver.failure("failed", f"{type(error).__name__}: {error}")
        return attempt(assignment, driver, place)


@functools.cache
def _require_same_store(store: str, study: str, driver: Holder) -> None:
    """Check, once per process, that the driver sees what this node stores."""
    give_up_at = time.monotonic() + _STORE_PATIENCE
    while (latest := Lease.latest(Store(store), study)) != driver:
        if time.monotonic() < give_up_at:
            time.sleep(0.1)
            continue
        raise UnsharedStoreError(
            f"every node must see the store {store!r}, but the node {platform.node()} does not: "
            f"expected the driver's lease there, got {latest}; "
            "give --store a folder that all nodes share, or a bucket."
        )


def _place() -> dict[str, str]:
    return {
        "node": ray.get_runtime_context().get_node_id(),
        "gpus": os.environ.get("CUDA_VISIBLE_DEVICES", ""),
    }
