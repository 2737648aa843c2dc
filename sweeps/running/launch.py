"""Launch: train the missing runs of a study with Ray, and show the progress."""

import gc
import os
import re
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace

from mixup_core.store.checkpoints import Store
from mixup_core.store.manifests import Failure
from sweeps.leasing.lease import Lease
from sweeps.machine.resources import spell_lack_of_mps
from sweeps.machine.scratch import scratch
from sweeps.running.head import VARIABLE, is_elsewhere
from sweeps.running.placement import Growth, Placement, Slots, require_gpus
from sweeps.running.ray_cluster import close_aside, cluster, nodes
from sweeps.searching.sources import RunSource
from sweeps.state.results import RunResult, read_results
from sweeps.tracking.tracker import Tracker

_PATIENCE = 10.0
"""Seconds to wait for the first status of a Ray head that was just started."""
_NO_STATUS = "No cluster status"
"""Text that Ray prints before the first status is known, and always if the cluster has no
autoscaler."""
_TYPE = re.compile(r"^ \d+ (\S+)$", re.MULTILINE)
"""Line of `ray status` with a number of nodes and their type."""
_BY_HAND = re.compile(r"node_[0-9a-f]{16,}")
"""Type that Ray gives to nodes which were started by hand."""


def train(  # noqa: PLR0913  independent objects that the caller opens
    source: RunSource,
    store: Store,
    tracker: Tracker,
    lease: Lease,
    placement: Placement,
    *,
    keep_final_states: bool = False,
) -> tuple[RunResult, ...]:
    """Train the missing runs of a study with Ray; return the results in the order of its runs."""
    failures: Mapping[str, Failure] = {}
    first = source.more(())
    if first:
        with ExitStack() as open_things:
            folder = open_things.enter_context(scratch())
            head = open_things.enter_context(cluster(placement, source.num_waiting, folder))
            with head.watched():
                # Takes a second, unless the tracker's thread has imported it already.
                from sweeps.running.tuning import tune_runs

                gc.freeze()  # imported modules stay; garbage collection can skip them
                growth: Growth = growth_of(os.environ[VARIABLE]) if is_elsewhere() else "none"
                slots = placement.on(nodes(), runs=source.num_waiting, growth=growth)
                require_gpus(source.study, slots)
                if note := _note(slots):
                    print(note, file=sys.stderr, flush=True)  # noqa: T201  before the console
                source.gpus_per_run = slots.gpus_per_run
                failures = tune_runs(
                    source, first, store, tracker, lease, slots, folder,
                    keep_final_states=keep_final_states,
                )  # fmt: skip
            close_aside(open_things.pop_all())
    return tuple(
        replace(result, failure=result.failure or failures.get(result.run.key))
        for result in read_results(source.study.runs(), store)
    )


def _note(slots: Slots) -> str | None:
    """Return a warning if runs share a GPU in turns, or a cluster has no GPU; otherwise None."""
    if not is_elsewhere():
        return spell_lack_of_mps(slots.gpus_per_run * slots.on_gpu)
    if any(node.gpus for node in nodes()):
        return None
    if slots.gpus_per_run:
        return "no node has a GPU yet: runs wait until nodes with GPUs join; Ctrl-C ends the launch"
    return "no node has a GPU: runs train on CPUs"


def growth_of(address: str) -> Growth:
    """Return how nodes are added to the Ray cluster at an address: `by hand` or `autoscaler`.

    Without an answer it is `autoscaler`: a launch without GPUs then asks the user whether to wait.
    """
    give_up_at = time.monotonic() + _PATIENCE
    while _NO_STATUS in (status := _status(address)):
        if time.monotonic() > give_up_at:
            return "by hand"
        time.sleep(0.5)
    return growth_in(status)


def growth_in(status: str) -> Growth:
    """Return how nodes join a cluster, `by hand` or `autoscaler`, from the text of `ray status`."""
    types = _TYPE.findall(status)
    if types and all(map(_BY_HAND.fullmatch, types)):
        return "by hand"
    return "autoscaler"


def _status(address: str) -> str:
    command = [sys.executable, "-P", "-m", "ray.scripts.scripts", "status", "--address", address]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    except subprocess.TimeoutExpired:
        return ""
    return done.stdout
