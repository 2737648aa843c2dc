"""Launch: train the missing runs of a study with Ray, and show the progress."""

import gc
import os
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace

from mixup_core.store.checkpoints import Store
from mixup_core.store.manifests import Failure
from sweeps.leasing.lease import Lease
from sweeps.machine.resources import spell_lack_of_mps
from sweeps.machine.scratch import scratch
from sweeps.running.autoscaler import growth_of
from sweeps.running.head import VARIABLE, is_elsewhere
from sweeps.running.placement import Growth, Placement, Slots, require_gpus
from sweeps.running.ray_cluster import close_aside, cluster, nodes
from sweeps.searching.sources import RunSource
from sweeps.state.results import RunResult, read_results
from sweeps.tracking.tracker import Tracker


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
                lack = spell_lack_of_mps(slots.gpus_per_run * slots.on_gpu)
                if lack is not None and not is_elsewhere():
                    print(lack, file=sys.stderr, flush=True)  # noqa: T201
                if line := _unexpected(slots, has_gpus=any(node.gpus for node in nodes())):
                    print(line, file=sys.stderr, flush=True)  # noqa: T201  before the console
                source.gpus_per_run = slots.gpus_per_run
                failures = tune_runs(
                    source, first, store, tracker, lease, slots, folder,
                    keep_final_states=keep_final_states,
                )  # fmt: skip
            if not source.lacked_memory:  # otherwise a new cluster starts
                close_aside(open_things.pop_all())
    return tuple(
        replace(result, failure=result.failure or failures.get(result.run.key))
        for result in read_results(source.study.runs(), store)
    )


def _unexpected(slots: Slots, *, has_gpus: bool) -> str | None:
    """Return a message if a cluster that was joined has no GPU; otherwise None."""
    if has_gpus or not is_elsewhere():
        return None
    if slots.gpus_per_run:
        return "no node has a GPU yet: runs wait until nodes with GPUs join; Ctrl-C ends the launch"
    return "no node has a GPU: runs train on CPUs"
