"""Sharing: a launch on a cluster with other jobs takes no more than its part of the slots.

Ray gives a slot to whoever waits for it, and an actor of Tune keeps its slot for the next run. So a
launch starts fewer runs while another job waits.
"""

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import ray
from ray import tune
from ray.util import placement_group_table

from sweeps.running.placement import Slots

_LOOK_EVERY = 2.0
_COST_SHARE = 50
"""A look costs at most one part in so many of the driver's time: Ray lists all placement groups
that it ever had."""
_PATIENCE = 60.0
"""Seconds after which a job that still waits, although this launch holds no more than its part, is
not waited for: it needs something that this launch does not have."""


class Sharing(tune.Callback):  # type: ignore[misc]
    """Limits the trials of a launch while other jobs wait for slots of the same cluster."""

    def __init__(
        self,
        slots: Slots,
        note: Callable[[str], None],
        table: Callable[[], Mapping[str, Mapping[str, Any]]] = placement_group_table,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.limit = slots.count + slots.ahead
        """Largest number of trials at the moment, training or waiting."""
        self._slots = slots
        self._note = note
        self._table = table
        self._clock = clock
        self._needs = {"CPU": slots.cpus_per_run, "GPU": slots.gpus_per_run}
        self._job = ray.get_runtime_context().get_job_id()
        self._look_at = 0.0
        self._fair_since: float | None = None
        self._ignored: set[str] = set()
        self._was_waiting = self._has_told = False

    def __getstate__(self) -> dict[str, Any]:
        return {}

    def on_step_end(self, iteration: int, trials: list[Any], **info: Any) -> None:
        if (began := self._clock()) < self._look_at:
            return
        with suppress(Exception):  # the cluster does not answer, which `Head` reports
            self._look()
        now = self._clock()
        self._look_at = now + max(_LOOK_EVERY, _COST_SHARE * (now - began))

    def _look(self) -> None:
        groups = {name: group for name, group in self._table().items() if _is_live(group)}
        held = {name: group for name, group in groups.items() if group["state"] == "CREATED"}
        own = sum(map(self._is_own, held))
        waiting = {name for name in groups.keys() - held.keys() if not self._is_own(name)}
        waiting -= self._ignored
        self.limit = max(self._slots.count, int(self._fit(ray.cluster_resources())))
        self.limit += self._slots.ahead
        if waiting:
            jobs = {self._job, *(name[-len(self._job) :] for name in groups)}
            taken = sum(self._taken(_sum(group["bundles"].values())) for group in held.values())
            self.limit = max(1, round(taken) // len(jobs))
        self._wait_only_for_what_helps(waiting, is_fair=own <= self.limit)
        self._tell(is_waiting=not own and any(map(self._is_own, groups)))

    def _wait_only_for_what_helps(self, waiting: set[str], *, is_fair: bool) -> None:
        if not waiting or not is_fair:
            self._fair_since = None
            return
        self._fair_since = self._fair_since or self._clock()
        if self._clock() > self._fair_since + _PATIENCE:
            self._ignored |= waiting

    def _tell(self, *, is_waiting: bool) -> None:
        """Say once that other jobs hold the slots; not at the first look, as Ray may be placing."""
        if is_waiting and self._was_waiting and not self._has_told:
            total, free = ray.cluster_resources(), ray.available_resources()
            held = self._taken({name: total[name] - free.get(name, 0) for name in total})
            count = self._slots.count
            if held := min(count, round(held)):
                self._note(f"waiting: {held} of {count} slots are held by other jobs")
                self._has_told = True
        self._was_waiting = is_waiting
        self._has_told &= is_waiting

    def _is_own(self, name: str) -> bool:
        # Ray's specification of ids: the id of a placement group ends with that of its job.
        return name.endswith(self._job)

    def _fit(self, resources: Mapping[str, float]) -> float:
        """Return how many runs fit into resources of the cluster."""
        needs = self._needs.items()
        return min(resources.get(name, 0.0) / need for name, need in needs if need)

    def _taken(self, resources: Mapping[str, float]) -> float:
        """Return how many slots of this launch some used resources take."""
        needs = self._needs.items()
        return max(resources.get(name, 0.0) / need for name, need in needs if need)


def _is_live(group: Mapping[str, Any]) -> bool:
    return bool(group["state"] != "REMOVED")


def _sum(bundles: Any) -> dict[str, float]:
    total: dict[str, float] = {}
    for bundle in bundles:
        for name, amount in bundle.items():
            total[name] = total.get(name, 0.0) + amount
    return total
