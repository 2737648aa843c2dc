"""Cluster: the Ray cluster that a launch trains on, joined or started on this machine."""

import gc
import os
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

# Ray reads these when it is imported. A cluster of our own is closed to everyone else: all its
# ports are on the loopback, and its token dies with this process.
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
if "RAY_ADDRESS" not in os.environ:
    os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
    os.environ["RAY_AUTH_MODE"] = "token"
    os.environ["RAY_AUTH_TOKEN"] = secrets.token_hex(32)
    # Its metrics are read by nobody, and what serves them asks for no token.
    os.environ["RAY_enable_metrics_collection"] = "0"  # noqa: SIM112  Ray's own spelling
    # A GCS that died before it had a port is waited for with every thread of this process at rest.
    os.environ["RAY_gcs_server_port_wait_time_s"] = "10"  # noqa: SIM112

import ray
import ray._private.node
from ray._private.accelerators import get_accelerator_manager_for_resource

from sweeps.machine.processes import end_children
from sweeps.machine.signals import hear
from sweeps.running import import_ahead
from sweeps.running.console import still
from sweeps.running.head import Head, HeadLostError, not_started, starting
from sweeps.running.placement import Node, Placement

_STARTS = 4
"""Times Ray is started on this machine, which may be too busy for Ray's patience."""
_TIMED_OUT = ("timed out during startup", "Timed out waiting for file")
"""In what Ray says then."""
_LOOKS_FOR = 20.0
"""Seconds in which we look for a new raylet; Ray then does, for half a minute."""
_OBJECT_STORE_BYTES = 100 * 2**20


class _OwnNode(ray._private.node.Node):  # type: ignore[misc]
    """A machine that trains the runs of one launch, and then is no cluster any more.

    Ray has no switch for what is left out here: together these cost a second and a half before the
    first epoch, and 1 % of a core during all others. Nothing of a launch lives in its processes,
    so they need no time to end: a GCS that is asked to takes longer than the second it is given.
    """

    def start_api_server(self, **given: Any) -> None:
        """Leave out the dashboard, whose process starts even where it is not to be included."""
        del given
        self._webui_url = ""

    def start_monitor(self) -> None:
        """Leave out the autoscaler: a launch of its own has this machine."""

    def start_log_monitor(self) -> None:
        """Leave out what gathers the logs of workers, which nobody is sent."""

    def start_ray_processes(self) -> None:
        """Start the raylet, and return as soon as it is known; Ray looks once a second."""
        super().start_ray_processes()
        give_up_at = time.monotonic() + _LOOKS_FOR
        with suppress(Exception):  # what stands in the way, Ray will meet too
            while time.monotonic() < give_up_at and not self.get_gcs_client().get_all_node_info():
                time.sleep(0.02)

    def kill_all_processes(
        self, check_alive: bool = True, allow_graceful: bool = False, wait: bool = False
    ) -> None:
        """Kill what was started, without asking first."""
        del allow_graceful
        super().kill_all_processes(check_alive=check_alive, wait=wait)


@contextmanager
def cluster(
    placement: Placement,
    runs: int,
    ahead: Sequence[str],
    folder: Path,
    leave: Callable[[], None],
) -> Iterator[Head]:
    """Join or start a Ray cluster.

    Ray opens the folder that it is given to everybody; one below ours stays out of their reach.

    Args:
        placement: Where runs go.
        runs: That are to be trained.
        ahead: Modules that the processes of runs import while they wait for their first; those of
            a cluster that is joined begin with a run.
        folder: For the files of Ray.
        leave: As for `Head.watched`.

    Raises:
        HeadLostError: If one of our own does not start.
        KeyboardInterrupt: As it came; Ray's processes here are killed then.
    """
    if is_elsewhere():
        with still("joining the Ray cluster"):
            ray.init(logging_level="WARNING", log_to_driver=False)
    else:
        with still("starting Ray"):
            # Ray begins a process for each CPU. Where runs take something else, most stay idle.
            if placement.cpus_per_run > 1 or (placement.gpus_per_run != 0 and _has_gpus()):
                ahead = ()
            _start_ray(placement.cpus_here(runs), ahead, folder, leave)
    hear()  # Ray has put a handler of its own in place, which ends the process with another code
    head = Head(ray.get_runtime_context().gcs_address, is_own=not is_elsewhere())
    try:
        yield head
    except (KeyboardInterrupt, HeadLostError):
        # Ray takes seconds to end what it started, and a minute if its GCS is gone.
        end_children()
        raise
    except BaseException:
        ray.shutdown()
        raise
    ray.shutdown()


def close_aside(open_things: ExitStack) -> None:
    """Close what nobody needs any more, in a thread: Ray takes a second to end its processes.

    The interpreter waits for the thread. A process that is ended before takes them along.
    """

    def close() -> None:
        try:
            open_things.close()
        finally:
            gc.enable()

    # Where any thread lets go of an actor while Ray shuts down, Ray ends the process with code 1.
    gc.collect()
    gc.disable()
    threading.Thread(target=close, name="ending Ray").start()


def is_elsewhere() -> bool:
    """Return whether a launch joins a cluster, which others may have started."""
    return "RAY_ADDRESS" in os.environ


def nodes() -> list[Node]:
    """Return what the nodes that are there have for runs."""
    return [
        Node(cpus=node["Resources"].get("CPU", 0.0), gpus=node["Resources"].get("GPU", 0.0))
        for node in ray.nodes()
        if node["Alive"]
    ]


def _has_gpus() -> bool:
    """Return whether Ray finds GPUs on this machine."""
    found = get_accelerator_manager_for_resource("GPU")
    return found is not None and found.get_current_node_num_accelerators() > 0


def _start_ray(cpus: int, ahead: Sequence[str], folder: Path, leave: Callable[[], None]) -> None:
    """Start a cluster of our own, again where that took too long.

    Raises:
        HeadLostError: If it does not start.
    """
    variables = {
        "OMP_NUM_THREADS": "1",
        "RAY_preload_python_modules": import_ahead.__name__,
        import_ahead.MODULES: ",".join(ahead),
    }
    for tries_left in reversed(range(_STARTS)):
        try:
            with _environment(**variables), _own_node(), starting(leave):
                ray.init(
                    address="local",
                    num_cpus=cpus,
                    object_store_memory=_OBJECT_STORE_BYTES,
                    logging_level="WARNING",
                    log_to_driver=False,
                    _temp_dir=str(folder / "ray"),
                )
        except HeadLostError:
            end_children()  # to shut Ray down takes a minute without its GCS
            raise
        except Exception as error:  # Ray has no type of its own for this
            ray.shutdown()
            end_children()
            if tries_left and any(words in str(error) for words in _TIMED_OUT):
                continue
            reason = str(error).strip().partition("\n")[0]
            raise HeadLostError(not_started(reason)) from error
        else:
            return


@contextmanager
def _own_node() -> Iterator[None]:
    """Let Ray start what `_OwnNode` does within a `with`."""
    ray._private.node.Node, usual = _OwnNode, ray._private.node.Node
    try:
        yield
    finally:
        ray._private.node.Node = usual


@contextmanager
def _environment(**variables: str) -> Iterator[None]:
    """Set variables for the processes that are started within a `with`, and those below them.

    A `runtime_env` would do it too, but Ray has begun a process for each slot by the time it hears
    of one, and begins as many again.
    """
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
