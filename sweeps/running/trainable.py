"""One run inside a Tune trial: an attempt in a process of Ray that hosts many runs."""

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
from sweeps.leasing.lease import Lease
from sweeps.leasing.stops import asked_to_stop
from sweeps.running.attempt import Driver, attempt, prepare_process
from sweeps.running.parcel import Parcel
from sweeps.running.retries import device_id

REPORTS_PER_SECOND = 50.0
"""Reports of all runs together, but for those that other runs wait for: each costs the driver
milliseconds, and MLflow more."""

_STORE_PATIENCE = 3.0
"""Seconds in which a file system of several nodes is to show what one of them has just written."""
_BEFORE_DECLINING = 1.0
"""Seconds in which another device may become free for a run that this one has failed."""
_NAP = 3600.0


class UnsharedStoreError(StoreError):
    """Error: this node and the driver see different folders at the path of the store."""


def train_run(parameters: dict[str, Any]) -> dict[str, Any]:
    """Train one run to its end; the function that Tune calls, in a process that hosts many runs.

    What ends with the process, lacks memory or meets a sick GPU is raised, which ends the process;
    the driver decides what comes of it (`Retries`). A run that must not use this device leaves it
    to other runs; a device that must get no run at all is held to the end of the launch.

    Returns:
        The last report, which is `done`: Tune asks for no other, and nothing of the run is held
        while this process waits for its next.
    """
    prepare_process()
    if not ray.get_gpu_ids():
        # Ray hides GPUs from those only that reserved others. CUDA reads this at its first call.
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
    place = _place()
    driver = Driver(tune.report, device_id(place))
    ids = {device_id(place), device_id(place, is_node=True)}
    if ids & parameters["avoided"]:
        if ids & parameters["sick"] or parameters["is_last"]:
            driver.hold()
            while True:  # else Ray would give the device to the next run
                time.sleep(_NAP)
        time.sleep(_BEFORE_DECLINING)
        return driver.failure("declined", "")
    with driver.hearing("mixup_core", "sweeps.running.storing"):
        parcel: Parcel = parameters["parcel"]
        study, holder = parameters["study"], parameters["driver"]
        try:
            assignment = parcel.open()
            _require_same_store(assignment.store, study, holder)
            if asked_to_stop(Store(assignment.store), study, holder):
                # Tune had given it its place before the driver heard.
                return driver.failure("stopped", "")
        except (UnsharedStoreError, PluginError) as error:
            return driver.failure("unshared", str(error))
        except StoreError as error:
            return driver.failure("failed", f"{type(error).__name__}: {error}")
        return attempt(assignment, driver, place)


@functools.cache
def _require_same_store(store: str, study: str, driver: Holder) -> None:
    """Check, once in a process, that the driver will find what is stored here.

    Raises:
        UnsharedStoreError: If the driver's lease is not in the store as this node sees it.
    """
    give_up_at = time.monotonic() + _STORE_PATIENCE
    while (found := Lease.latest(Store(store), study)) != driver:
        if time.monotonic() < give_up_at:
            time.sleep(0.1)
            continue
        raise UnsharedStoreError(
            "every node must see the store, got "
            f"({store=}, host={platform.node()!r}, found the lease of: {found}); "
            "give --store a folder that all nodes share, or a bucket."
        )


def _place() -> dict[str, str]:
    """Return where on the cluster a run is: its node, and the GPUs it can see, none as ""."""
    return {
        "node": ray.get_runtime_context().get_node_id(),
        "gpus": os.environ.get("CUDA_VISIBLE_DEVICES", ""),
    }
