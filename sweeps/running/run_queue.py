"""RunQueue: the runs of a launch, each handed out as soon as what it needs is stored. No Ray.

The cost of an event here must not grow with the number of runs of the study.
"""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from mixup_core.keys import stage_keys
from sweeps.leasing.claims import Claims
from sweeps.searching.sources import RunSource
from sweeps.state.stages import Need, PlannedRun


class RunQueue:
    """Takes runs from a source and orders them by their needs.

    Everything but new points of a search is answered from memory.
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
        """Queue the first runs.

        Args:
            source: Where runs come from.
            join: Called with runs that have joined, before any of them starts.
            first: Runs that the source has given already.
            by_seed: Whether all ready runs of one seed come before those of the next seed. The
                source's own order, longest run first, keeps many slots busy; this one keeps the
                arms of a study that is cut short paired.
            claims: Of the driver, where others may train the same runs; None where it is alone.
        """
        self._source = source
        self._join = join
        self._by_seed = by_seed
        self._claims = claims
        self._ready: deque[PlannedRun] = deque()
        self._waiting: dict[str, dict[str, None]] = {}
        """Key of a run to those of the runs that wait for a stage of it."""
        self._underway: dict[str, PlannedRun] = {}
        self._add(first)

    @property
    def is_waiting(self) -> bool:
        """Whether runs are left that other drivers train, so that the launch waits for them."""
        return bool(self._ready)

    def next(self) -> PlannedRun | None:
        """Return a run that can start now; None if there is none at the moment."""
        if not self._ready:
            self._add(self._source.more(self._underway.values()))
        ready: Iterable[PlannedRun] = tuple(self._ready) if self._claims else self._ready
        if self._by_seed:
            seeds = {seed: place for place, seed in enumerate(self._source.study.seeds)}
            ready = sorted(ready, key=lambda p: seeds.get(p.run.seed, len(seeds)))
        for planned in ready:
            if self._claims is None or self._claims.train(planned.run.key, self._left_of(planned)):
                self._ready.remove(planned)
                return planned
        if self._claims is not None:
            self._claims.refresh()
        return None

    def _left_of(self, planned: PlannedRun) -> Callable[[bool], Sequence[str]]:
        """Return a function that returns the stages a run has left to train."""

        def left(is_to_ask: bool) -> Sequence[str]:
            keys = stage_keys(planned.run.config)
            if not is_to_ask or self._claims is None:
                return keys[planned.start :]
            stored = self._claims.store.read_all(keys)
            if keys[-1] in stored:
                return ()
            depths = [e for e, key in enumerate(keys, 1) if key in stored and stored[key].state]
            return keys[max(depths, default=0) :]

        return left

    def store(self, key: str, epochs: int) -> None:
        """Release the runs that wait for the first epochs of a run: they are stored."""
        for waiting in self._waiting.pop(key, {}):
            planned = self._underway[waiting]
            met = [n for n in planned.needs if n.run == key and n.epoch <= epochs]
            starts = [need.epoch for need in met if need.use == "start"]
            left = tuple(need for need in planned.needs if need not in met)
            self._await(replace(planned, needs=left, start=max([planned.start, *starts])))

    @property
    def is_empty(self) -> bool:
        """Whether no run waits for a slot; others may wait for a stage."""
        return not self._ready

    def again(self, key: str) -> None:
        """Put a run that did not end back, behind those that are ready."""
        self._ready.append(self._underway[key])

    def end(self, key: str, *, failed: bool) -> None:
        """Forget a run that has ended; forks that wait for it choose a new trunk."""
        run = self._underway.pop(key).run
        if self._claims is not None:
            self._claims.end(key)
        self._replace_trunk(key)
        self._source.end(run, failed=failed)

    def _add(self, joined: Sequence[PlannedRun]) -> None:
        if joined:
            self._join(joined)
            if self._claims is not None:
                self._claims.use({p.run.key: used for p in joined if (used := _stages_used(p))})
        for planned in joined:
            self._await(planned)

    def _await(self, planned: PlannedRun) -> None:
        """Let a run wait for what it needs; one that needs nothing is ready."""
        self._underway[planned.run.key] = planned
        for need in planned.needs:
            self._waiting.setdefault(need.run, {})[planned.run.key] = None
        if not planned.needs:
            self._ready.append(planned)

    def _replace_trunk(self, ended: str) -> None:
        """Let the deepest fork of a trunk that ended early train the rest of the shared epochs.

        All forks of one trunk share its epochs, so the others share the deepest one's. A run that
        waits for a teacher which ended early waits no more, and learns from the store why.
        """
        orphans = [self._underway[key] for key in self._waiting.pop(ended, {})]
        forks = {
            planned.run.key: need.epoch
            for planned in orphans
            for need in planned.needs
            if need.run == ended and need.use == "start"
        }
        heir = max(forks, key=lambda key: forks[key], default=None)
        for planned in orphans:
            key = planned.run.key
            needs = tuple(need for need in planned.needs if need.run != ended)
            keep = planned.keep
            if heir is not None and key == heir:
                keep |= set(forks.values())
            elif heir is not None and key in forks:
                needs = (Need(run=heir, epoch=forks[key], use="start"), *needs)
            self._await(replace(planned, needs=needs, keep=keep))


def _stages_used(planned: PlannedRun) -> tuple[str, ...]:
    """Return the stages that a run starts and learns from."""
    first, teacher = planned.first_epoch, planned.run.teacher
    start = stage_keys(planned.run.config)[first - 1 : first] if first else ()
    return (*start, *(() if teacher is None else stage_keys(teacher)[-1:]))
