"""Launch: train what a study lacks on Ray, and tell the tracker and the console as it happens."""

import gc
import logging
import os
import secrets
import shutil
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

# Ray reads these when it is imported. A cluster of our own is closed to everyone else: all its
# ports are on the loopback, and its token dies with this process.
os.environ.setdefault("RAY_AIR_NEW_OUTPUT", "0")
os.environ.setdefault("TUNE_DISABLE_AUTO_CALLBACK_LOGGERS", "1")
os.environ.setdefault("TUNE_DISABLE_SIGINT_HANDLER", "1")
# Tune's snapshots of all its trials are never read, and grow with every run.
os.environ.setdefault("TUNE_GLOBAL_CHECKPOINT_S", "inf")
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
if "RAY_ADDRESS" not in os.environ:
    os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
    os.environ["RAY_AUTH_MODE"] = "token"
    os.environ["RAY_AUTH_TOKEN"] = secrets.token_hex(32)
    # Its metrics are read by nobody, and what serves them asks for no token: two of three servers
    # have no switch, and give up on a port that is none.
    os.environ["RAY_enable_metrics_collection"] = "0"  # noqa: SIM112  Ray's own spelling
    os.environ["AUTOSCALER_METRIC_PORT"] = os.environ["DASHBOARD_METRIC_PORT"] = "-1"
    # A GCS that died before it had a port is waited for with every thread of this process at rest.
    os.environ["RAY_gcs_server_port_wait_time_s"] = "10"  # noqa: SIM112

import ray
from ray import tune
from ray.tune.execution import class_cache

from mixup_core.store.checkpoints import Store
from mixup_core.store.manifests import Failure
from sweeps.leasing.lease import Lease
from sweeps.results import RunResult, read_results
from sweeps.running.console import still
from sweeps.running.head import Head, HeadLostError, end_children, not_started, starting
from sweeps.running.interrupts import Interrupts
from sweeps.running.placement import Node, Placement, Slots, require_gpus
from sweeps.running.searcher import LiveTrials, RunSearcher
from sweeps.running.storing import Assignment
from sweeps.running.trainable import REPORTS_PER_SECOND, train_run
from sweeps.running.watch import Watch
from sweeps.scratch import MARK, end_orphans, scratch
from sweeps.searching.sources import RunSource
from sweeps.stages import PlannedRun
from sweeps.tracking.tracker import Tracker

_MAX_WORKER_DEATHS = 3
_STARTS = 4
"""Times Ray is started on this machine, which may be too busy for Ray's patience."""
_TIMED_OUT = ("timed out during startup", "Timed out waiting for file")
"""In what Ray says then."""
_OBJECT_STORE_BYTES = 100 * 2**20

# Tune gives its actors a variable for PyTorch Lightning. With an environment of their own they need
# another process each, beside the one that Ray has begun for every CPU by then.
class_cache.DEFAULT_ENV_VARS.clear()
# With Tune's own result files off, it complains that it cannot read them.
logging.getLogger("ray.tune.analysis.experiment_analysis").setLevel(logging.ERROR)


def train(  # noqa: PLR0913  each is a thing of its own, opened by the caller
    source: RunSource,
    store: Store,
    tracker: Tracker,
    lease: Lease,
    placement: Placement,
    *,
    keep_final_states: bool = False,
) -> tuple[RunResult, ...]:
    """Train the runs a study lacks and return the result of every run, in the study's order.

    Raises:
        KeyboardInterrupt: On SIGINT or SIGTERM; what is stored stays, and the next launch goes on.
        StoreError: If a node does not see the store; likewise.
        HeadLostError: If the cluster does not start, or is gone; likewise.
        PlacementError: If it has no room for a run, or no GPU of which a budget has hours.
    """
    failures: dict[str, Failure] = {}
    first = source.more(())
    if first:
        with ExitStack() as open_things:
            folder = open_things.enter_context(scratch())
            leave = partial(_leave, tracker, store, lease, folder)
            head = open_things.enter_context(_cluster(placement, folder, leave))
            with head.watched(leave), Interrupts() as interrupts:
                slots = _slots(placement, runs=source.num_waiting)
                require_gpus(source.study, slots)
                source.gpus_per_run = slots.gpus_per_run
                watch = Watch(source, store, tracker, lease, slots.count)
                _tune(first, watch, interrupts, slots, folder, keep_final_states=keep_final_states)
                failures = watch.failures
                del watch  # and with it what Tune has left of its actors
            if not source.lacked_memory:  # else a cluster is started again
                _close_aside(open_things.pop_all())
    return tuple(
        replace(result, failure=result.failure or failures.get(result.run.key))
        for result in read_results(source.study.runs(), store)
    )


def _tune(  # noqa: PLR0913  each is a thing of its own, opened by the caller
    first: Sequence[PlannedRun],
    watch: Watch,
    interrupts: Interrupts,
    slots: Slots,
    folder: Path,
    *,
    keep_final_states: bool,
) -> None:
    """Let Tune train a source's runs; results are in the store, Tune's own folder is scratch."""
    store = watch.store
    own_data = os.environ.get("MIXSWEEP_DATA")

    def parameters(planned: PlannedRun) -> dict[str, Any]:
        assignment = Assignment(
            config=planned.run.config,
            keep=planned.keep,
            keep_final_state=keep_final_states,
            store=store.url,
            teacher=planned.run.teacher,
            data_root=str(Path(own_data).absolute()) if own_data else None,
            on_gpu=slots.on_gpu,
            gpus=slots.gpus_per_run,
            report_every=max(1.0, slots.count / REPORTS_PER_SECOND),
        )
        return {
            "run_key": planned.run.key,
            "assignment": assignment,
            "study": watch.source.study.name,
            "driver": watch.lease.holder,
        }

    tune.Tuner(
        tune.with_resources(
            _named(train_run, watch.source.study.name),
            {"cpu": slots.cpus_per_run, "gpu": slots.gpus_per_run},
        ),
        tune_config=tune.TuneConfig(
            search_alg=RunSearcher(
                watch.source, parameters, watch.join, first, lambda: watch.stop is not None
            ),
            scheduler=LiveTrials(),
            num_samples=-1,
            max_concurrent_trials=slots.limit,
            reuse_actors=True,
            trial_dirname_creator=lambda trial: trial.trial_id,
        ),
        run_config=tune.RunConfig(
            name=f"{watch.source.study.name}-{watch.lease.token}",
            storage_path=str(folder / "tune"),
            verbose=0,
            callbacks=[watch, interrupts],
            failure_config=tune.FailureConfig(max_failures=_MAX_WORKER_DEATHS),
        ),
    ).fit()


def _named(function: Callable[[dict[str, Any]], None], study: str) -> Any:
    """Return a function by which Ray calls the actors of a study, which host one run after another.

    Ray takes their name when they start and keeps it; their class is `ImplicitFunc` everywhere.
    """

    def train(parameters: dict[str, Any]) -> None:
        function(parameters)

    train.__name__ = f"mixsweep {study}"
    return train


@contextmanager
def _cluster(placement: Placement, folder: Path, leave: Callable[[], None]) -> Iterator[Head]:
    """Join or start a Ray cluster.

    Ray opens the folder that it is given to everybody; one below ours stays out of their reach.

    Raises:
        HeadLostError: If one of our own does not start.
        KeyboardInterrupt: As it came; Ray's processes here are killed then.
    """
    if _joins():
        with still("joining the Ray cluster"):
            ray.init(logging_level="WARNING", log_to_driver=False)
    else:
        with still("starting Ray"):
            _start_ray(placement, folder, leave)
    head = Head(ray.get_runtime_context().gcs_address, is_own=not _joins())
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


def _close_aside(open_things: ExitStack) -> None:
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


def _joins() -> bool:
    return "RAY_ADDRESS" in os.environ


def _leave(tracker: Tracker, store: Store, lease: Lease, folder: Path) -> None:
    """Leave nothing open or behind, from a thread: the main one waits within Ray."""
    tracker.settle(store)
    lease.release()
    end_orphans(folder)
    shutil.rmtree(folder, ignore_errors=True)


def _slots(placement: Placement, *, runs: int) -> Slots:
    """Return how many runs the cluster trains side by side."""
    slots = placement.on(_nodes(), runs=runs, can_grow=_joins())
    # So many trials may wait for a node that joins; Ray's own default is one.
    os.environ["TUNE_MAX_PENDING_TRIALS_PG"] = str(slots.count)
    return slots


def _start_ray(placement: Placement, folder: Path, leave: Callable[[], None]) -> None:
    """Start a cluster of our own, again where that took too long.

    Raises:
        HeadLostError: If it does not start.
    """
    for tries_left in reversed(range(_STARTS)):
        try:
            with _environment(OMP_NUM_THREADS="1", **{MARK: str(folder)}), starting(leave):
                ray.init(
                    address="local",
                    num_cpus=max(
                        (placement.slots or 0) * placement.cpus_per_run, os.cpu_count() or 1
                    ),
                    include_dashboard=False,
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


def _nodes() -> list[Node]:
    return [
        Node(cpus=node["Resources"].get("CPU", 0.0), gpus=node["Resources"].get("GPU", 0.0))
        for node in ray.nodes()
        if node["Alive"]
    ]
