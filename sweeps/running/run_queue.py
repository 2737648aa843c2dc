"""RunQueue: gives out the runs of a launch, each as soon as the stages that it needs are stored.

This module does not use Ray. The cost per call must not grow with the number of runs of a study.
"""

from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from mixup_core.keys import stage_keys
from sweeps.leasing.lease import Claims
from sweeps.searching.sources import RunSource
from sweeps.state.stages import Need, PlannedRun
from sweeps.study.study import Run


class RunQueue:
    """Queue of the runs of a launch; a run is given out once the stages that it needs are stored.

    A run is claimed before it is given out, so that no other driver trains it.
    """

    def __init__(
        self,
        source: RunSource,
        join: Callable[[Sequence[PlannedRun]], None],
        first: Sequence[PlannedRun] = (),
        *,
        by_seed: bool = False,
        claims: Claims | None = None,
    ) -> None:
        self._source = source
        self._join = join
        self._by_seed = by_seed
        self._claims = claims
        self._ready: deque[PlannedRun] = deque()
        self._waiting: dict[str, dict[str, None]] = {}
        """Keys of the runs that wait for a stage of a run, by its key."""
        self._underway: dict[str, PlannedRun] = {}
        self.live: dict[str, Run] = {}
        """Runs that were given out and have not ended, by key, in the order of their start."""
        self._add(first)

    @property
    def is_waiting(self) -> bool:
        """True if other drivers train the runs that could start now. Valid after `next`."""
        return bool(self._ready) and not self._source.is_stopped

    def next(self) -> PlannedRun | None:
        if self._source.is_stopped:
            return None
        if not self._ready:
            self._add(self._source.more(self._underway.values()))
        ready: Iterable[PlannedRun] = tuple(self._ready) if self._claims else self._ready
        if self._by_seed:
            seeds = {seed: place for place, seed in enumerate(self._source.study.seeds)}
            ready = sorted(ready, key=lambda p: seeds.get(p.run.seed, len(seeds)))
        for planned in ready:
            if self._claims is None or self._claims.take(planned.run.key):
                self._ready.remove(planned)
                self.live[planned.run.key] = planned.run
                return planned
        return None

    def read(self, key: str, report: Mapping[str, Any], *, is_whole: bool = False) -> None:
        """Read which epochs of a run are stored, or lost, from a report (see `Driver`)."""
        if lost := report.get("lost"):
            self._replace_trunk(key, lost)
        if is_whole:
            self._release(key, self._underway[key].run.config.epochs)
        elif rows := report.get("rows"):
            self._release(key, rows[-1]["epoch"] + 1)

    @property
    def is_empty(self) -> bool:
        """True if no run is ready to start; others may be in training, or wait for a stage."""
        return not self._ready

    def again(self, key: str) -> None:
        self.live.pop(key, None)
        self._ready.append(self._underway[key])

    def end(self, key: str, *, failed: bool) -> None:
        """Remove an ended run; if forks wait for a stage of it, one trains the shared epochs."""
        run = self._underway.pop(key).run
        self.live.pop(key, None)
        if self._claims is not None:
            self._claims.end(key)
        self._replace_trunk(key)
        self._source.end(run, failed=failed)

    def _add(self, joined: Sequence[PlannedRun]) -> None:
        if joined:
            self._join(joined)
            if self._claims is not None:
                self._claims.use(stage for planned in joined for stage in _needed(planned))
        for planned in joined:
            self._await(planned)

    def _await(self, planned: PlannedRun) -> None:
        """Make a run wait for the stages that it needs; if it needs none, it is ready."""
        self._underway[planned.run.key] = planned
        for need in planned.needs:
            self._waiting.setdefault(need.run, {})[planned.run.key] = None
        if not planned.needs:
            self._ready.append(planned)

    def _release(self, key: str, epochs: int) -> None:
        """Release the runs that wait for the first epochs of a run."""
        for waiting in self._waiting.pop(key, {}):
            planned = self._underway[waiting]
            met = [n for n in planned.needs if n.run == key and n.epoch <= epochs]
            starts = [need.epoch for need in met if need.use == "start"]
            needs = tuple(need for need in planned.needs if need not in met)
            self._await(replace(planned, needs=needs, start=max([planned.start, *starts])))

    def _replace_trunk(self, trunk: str, lost: Collection[int] | None = None) -> None:
        """Make one fork of a run (the trunk) the new trunk, which trains the shared epochs.

        The trunk has ended, or its states of the `lost` epochs are missing in the store: another
        driver trained these epochs and did not know that a fork would need their states.
        """

        def is_void(need: Need) -> bool:
            is_lost = lost is None or (need.use == "start" and need.epoch in lost)
            return need.run == trunk and is_lost

        waiting = [self._underway[key] for key in self._waiting.pop(trunk, {})]
        forks = {
            planned.run.key: need.epoch
            for planned in waiting
            for need in planned.needs
            if is_void(need) and need.use == "start"
        }
        heir = max(forks, key=lambda key: forks[key], default=None)
        for planned in waiting:
            key = planned.run.key
            needs = tuple(need for need in planned.needs if not is_void(need))
            keep = planned.keep
            if heir is not None and key == heir:
                keep |= set(forks.values())
            elif heir is not None and key in forks:
                needs = (Need(run=heir, epoch=forks[key], use="start"), *needs)
            self._await(replace(planned, needs=needs, keep=keep))


def _needed(planned: PlannedRun) -> set[str]:
    """Return the stages whose states a run, or another run of its study, needs."""
    stages, teacher = stage_keys(planned.run.config), planned.run.teacher
    first = planned.first_epoch
    needed = {stages[epoch - 1] for epoch in ({first} if first else set()) | planned.keep}
    return needed | set(() if teacher is None else stage_keys(teacher)[-1:])
