"""Ray cluster: joins the Ray cluster of a launch, or starts one on this machine."""

import gc
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, chdir, contextmanager
from pathlib import Path

from sweeps.running.head import (
    VARIABLE,
    close_environment,
    is_elsewhere,
    set_tune_variables,
)

# Ray and Ray Tune read these when they are imported.
if is_elsewhere():
    set_tune_variables(os.environ)
else:
    close_environment(os.environ)
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")

import ray

from mixup_core.numeric_settings import FIXED
from mixup_core.rules import first_line
from sweeps.machine.processes import end_children
from sweeps.machine.resources import gpu_slices
from sweeps.machine.scratch import environment, marked
from sweeps.machine.signals import hear
from sweeps.machine.terminal_text import still
from sweeps.running.head import Head, HeadLostError, joining, not_started, starting
from sweeps.running.placement import Node, Placement, PlacementError
from sweeps.running.storing import WRITING, wait_for_writes

_STARTS, _STARTS_IN_TIME = 4, 2
"""Most attempts to start Ray on this machine, if its start times out on a busy machine, and after
any other error."""
_TIMED_OUT = ("timed out during startup", "Timed out waiting for file")
"""Parts of Ray's error messages that show such a timeout."""
_RAY = "ray"
"""Name of Ray's folder in the folder of a launch."""
_SHARED_MEMORY = Path("/dev/shm")  # noqa: S108  Ray's own choice on Linux
_OBJECT_STORE_BYTES = 100 * 2**20
_ENDING = "ending Ray"
"""Name of the thread that shuts Ray down while the report is written."""


@contextmanager
def cluster(
    placement: Placement,
    runs: int,
    folder: Path,
) -> Iterator[Head]:
    """Join or start a Ray cluster for the block; its folder is open to all, in a private folder."""
    if sys.platform == "linux" and not Path("/proc/self/stat").exists():
        raise PlacementError(
            "Ray needs /proc, which this system does not have; mount it, or train with --engine "
            "inline"
        )
    wait_for_ending()
    if is_elsewhere():
        _join(folder)
    else:
        with still("starting Ray"):
            _start_ray(placement.cpus_here(runs), folder)
    head = Head(ray.get_runtime_context().gcs_address, is_own=not is_elsewhere())
    try:
        yield head
    except (KeyboardInterrupt, HeadLostError):
        wait_for_writes(folder / WRITING)
        # Ray needs seconds to end its processes, or a minute if its GCS is gone.
        end_children()
        raise
    except BaseException:
        ray.shutdown()
        raise
    ray.shutdown()


def close_aside(open_things: ExitStack) -> None:
    """Close context managers in a thread, so that the caller does not wait for Ray to shut down.

    The interpreter waits for the thread at exit.
    """

    def close() -> None:
        try:
            open_things.close()
        finally:
            gc.enable()

    # If a thread frees an actor during Ray's shutdown, Ray ends the process with code 1.
    gc.collect()
    gc.disable()
    threading.Thread(target=close, name=_ENDING).start()


def wait_for_ending() -> None:
    """Wait until the cluster of the previous study is shut down; a process can have only one."""
    with still("shutting down the Ray cluster of the last study"):
        for thread in threading.enumerate():
            if thread.name == _ENDING:
                thread.join()


def nodes() -> list[Node]:
    """Return the resources that runs may use on each live node of the cluster."""
    return [
        Node(
            cpus=node["Resources"].get("CPU", 0.0),
            gpus=node["Resources"].get("GPU", 0.0),
            kinds=frozenset(node["Resources"])
            | {f"{name}={value}" for name, value in node.get("Labels", {}).items()},
        )
        for node in ray.nodes()
        if node["Alive"]
    ]


def _join(folder: Path) -> None:
    address = os.environ[VARIABLE]
    with still("joining the Ray cluster"), joining(address), chdir(folder):
        try:
            ray.init(logging_level="WARNING", log_to_driver=False)
        except Exception as error:  # Ray has no specific type for this error
            raise PlacementError(
                f"{address}: this Ray cluster cannot be joined: {first_line(error)}"
            ) from error
        finally:
            hear()  # Ray's own handler would end the process with another exit code


def _start_ray(cpus: int, folder: Path) -> None:
    """Start a Ray cluster on this machine; try again after a timeout."""
    if _SHARED_MEMORY.is_dir() and not os.access(_SHARED_MEMORY, os.W_OK | os.X_OK):
        raise PlacementError(
            f"{_SHARED_MEMORY} cannot be written by this user, and Ray keeps its objects there; "
            "mount it writable, or train with --engine inline"
        )
    variables = {
        **marked(folder),
        "OMP_NUM_THREADS": "1",
        **{name: value for name, value in FIXED.items() if value is not None},
        # Tune's actors have their own runtime environment, so they never use these processes.
        "RAY_prestart_worker_first_driver": "0",
    }
    for attempt in range(1, _STARTS + 1):
        try:
            # Ray's workers import from the working directory, which may contain any module.
            with environment(variables), starting(folder / _RAY), chdir(folder):
                ray.init(
                    address="local",
                    num_cpus=cpus,
                    num_gpus=gpu_slices(),
                    include_dashboard=False,
                    object_store_memory=_OBJECT_STORE_BYTES,
                    logging_level="WARNING",
                    log_to_driver=False,
                    # `ray.init` documents this option, and has no other for its folder.
                    _temp_dir=str(folder / _RAY),
                )
        except HeadLostError:
            end_children()  # without its GCS, Ray's shutdown takes a minute
            raise
        except Exception as error:  # Ray has no specific type for this error
            ray.shutdown()
            end_children()
            is_late = any(words in str(error) for words in _TIMED_OUT)
            if attempt < (_STARTS if is_late else _STARTS_IN_TIME):
                continue
            raise HeadLostError(not_started(first_line(error), folder / _RAY)) from error
        else:
            return
        finally:
            hear()  # Ray's own handler would end the process with another exit code


def dead_nodes() -> set[str]:
    return {node["NodeID"] for node in ray.nodes() if not node["Alive"]}
