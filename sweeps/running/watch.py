"""Watch: callbacks that Ray Tune calls: to report on trials, and to share a busy cluster."""

import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import ray
from ray import tune
from ray.util import placement_group_table

from sweeps.running.monitor import Monitor
from sweeps.running.placement import Slots
from sweeps.running.retries import NODE_HAS_DIED, MachineFault, Retries, RetryDecision, oom_kills
from sweeps.running.run_queue import RunQueue
from sweeps.study.study import Run

_UNREACHABLE = "is temporarily unavailable"
"""Part of Ray's error message about a process whose node may be lost."""
_NODE_PATIENCE = 20.0
"""Seconds that Ray has to notice that a node is lost."""


class OnlyHeldError(Exception):
    """Raised to end Tune: the only trials left are those that keep faulty devices occupied."""


class Watch(tune.Callback):  # type: ignore[misc]
    """Callbacks of Ray Tune: passes events of trials to a monitor, and decides after failures."""

    def __init__(
        self,
        monitor: Monitor,
        queue: RunQueue,
        retries: Retries,
        dead_nodes: Callable[[], Collection[str]] = tuple,
        *,
        devices: int = 1,
    ) -> None:
        self._monitor = monitor
        self._queue = queue
        self._retries = retries
        self._decisions: dict[str, RetryDecision] = {}
        self._nodes: dict[str, str] = {}
        """Node of the last report, by run key."""
        self._dead_nodes = dead_nodes
        self._num_killed = oom_kills()
        self.is_all_held: Callable[[], bool] = lambda: False
        """Returns True if the only trials left occupy faulty devices."""
        self.is_interrupted: Callable[[], bool] = lambda: False
        """Returns True once a signal has arrived; a library may have caught its exception."""
        self._devices = devices

    def __getstate__(self) -> dict[str, Any]:
        return {}

    def judge(self, trial: Any) -> None:
        """Decide whether the run of a failed trial is tried again.

        Tune informs the scheduler, which calls this, before the searcher, which uses the decision.
        """
        run, killed, text = self._run_of(trial), oom_kills(), _error_text(trial)
        if _UNREACHABLE in text and self._has_lost_its_node(run):
            text = NODE_HAS_DIED
        fault = MachineFault.of(text, was_killed_for_memory=killed > self._num_killed)
        self._num_killed = killed
        self._decisions[trial.trial_id] = self._decided(run, fault)

    def judge_killed(self, text: str) -> Run | None:
        """Return the live run that has failed after Ray killed one for its memory, if any has.

        Ray does not say which run it killed. The run that needs the most memory is taken as the
        cause, and may be tried again, like the others.
        """
        live = tuple(self._queue.live.values())
        for run in live:
            self._monitor.wait(run)
        if not live:
            return None
        most = self._monitor.source.study.problem.cost.most_bytes
        run = max(reversed(live), key=lambda run: most(run.config))
        decision = self._decided(run, MachineFault.of(text))
        self._settle(run, decision)
        return None if decision.again else run

    def is_tried_again(self, trial_id: str) -> bool:
        return self._decisions[trial_id].again

    def on_trial_start(self, iteration: int, trials: list[Any], trial: Any, **info: Any) -> None:
        self._monitor.start(self._run_of(trial))

    def on_trial_result(
        self, iteration: int, trials: list[Any], trial: Any, result: dict[str, Any], **info: Any
    ) -> None:
        run = self._run_of(trial)
        self._nodes[run.key] = result.get("device", "").partition("/")[0]
        self._monitor.report(run, result, self._retries.attempts(run) + 1)
        if result.get("done") and not result["failure"]:
            self._retries.finish(result.get("device"))

    def on_trial_complete(self, iteration: int, trials: list[Any], trial: Any, **info: Any) -> None:
        self._monitor.end(self._run_of(trial))

    def on_trial_error(self, iteration: int, trials: list[Any], trial: Any, **info: Any) -> None:
        self._settle(self._run_of(trial), self._decisions.pop(trial.trial_id))

    def on_step_end(self, iteration: int, trials: list[Any], **info: Any) -> None:
        """Step the monitor here: errors of other callbacks would not reach the launch."""
        if self.is_interrupted():
            raise KeyboardInterrupt
        self._monitor.step()
        if self.is_all_held() and not self._monitor.num_running:
            raise OnlyHeldError

    def _decided(self, run: Run, fault: MachineFault) -> RetryDecision:
        num_others = len(self._queue.live) - 1
        return self._retries.judge(run, fault, beside=num_others, devices=self._devices)

    def _settle(self, run: Run, decision: RetryDecision) -> None:
        if decision.note:
            self._monitor.note(decision.note)
        if decision.again:
            self._monitor.wait(run)
            self._monitor.note(f"{run.arm} seed {run.seed} is tried again: {decision.message}")
            return
        self._monitor.fail(
            run,
            kind="failed",
            message=decision.message,
            epoch=None,
            attempts=self._retries.attempts(run),
        )
        self._monitor.end(run)

    def _has_lost_its_node(self, run: Run) -> bool:
        node = self._nodes.get(run.key)
        give_up_at = time.monotonic() + _NODE_PATIENCE
        while node and time.monotonic() < give_up_at:
            if node in self._dead_nodes():
                return True
            time.sleep(0.2)
        return False

    def _run_of(self, trial: Any) -> Run:
        return self._monitor.run_of(trial.config["run_key"])


def _error_text(trial: Any) -> str:
    file = trial.error_file
    try:
        return "" if file is None else Path(file).read_text()
    except OSError:
        return ""


_LOOK_EVERY = 2.0
_COST_SHARE = 50
"""Looks take at most one part in so many of the driver's time: Ray lists all placement groups that
it ever had."""
_PATIENCE = 60.0
"""Seconds after which a waiting job is ignored although this launch holds no more than its part: it
needs something that this launch does not have."""


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
        self._needs = {"CPU": 1, "GPU": slots.gpus_per_run}
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
        table = self._table().items()
        groups = {name: group for name, group in table if group["state"] != "REMOVED"}
        held = {name: group for name, group in groups.items() if group["state"] == "CREATED"}
        num_own = sum(map(self._is_own, held))
        waiting = {name for name in groups.keys() - held.keys() if not self._is_own(name)}
        waiting -= self._ignored
        self.limit = max(self._slots.count, int(self._fit(ray.cluster_resources())))
        self.limit += self._slots.ahead
        if waiting:
            jobs = {self._job, *(name[-len(self._job) :] for name in groups)}
            bundles = (group["bundles"].values() for group in held.values())
            taken = sum(self._taken(sum(map(Counter, of_group), Counter())) for of_group in bundles)
            self.limit = max(1, round(taken) // len(jobs))
        self._wait_only_for_what_helps(waiting, is_fair=num_own <= self.limit)
        self._tell(is_waiting=not num_own and any(map(self._is_own, groups)))

    def _wait_only_for_what_helps(self, waiting: set[str], *, is_fair: bool) -> None:
        if not waiting or not is_fair:
            self._fair_since = None
            return
        self._fair_since = self._fair_since or self._clock()
        if self._clock() > self._fair_since + _PATIENCE:
            self._ignored |= waiting

    def _tell(self, *, is_waiting: bool) -> None:
        """Print once that other jobs hold the slots; not at the first look: Ray may place runs."""
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
