"""Plan: which runs are left to train, which first epochs they share, and what that costs.

Runs whose first epochs are the same computation have equal stage keys up to there, whatever the
reason (a switch epoch, two studies, two schedules). One of them, the trunk, trains the shared
epochs; the others fork from its stored stage. Nothing here looks at laws or schedules.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from mixup_core.keys import stage_keys
from mixup_core.store.checkpoints import Store
from sweeps.study import Run, Study


@dataclass(frozen=True, kw_only=True, slots=True)
class Fork:
    """The stage a run waits for because another run of the plan trains it."""

    trunk: str
    """Key of the run that trains it."""
    epoch: int
    """Number of shared epochs, at least 1."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PlannedRun:
    """A run that is not finished, and where it starts."""

    run: Run
    start: int
    """Epochs already stored with their state: the run can start there without waiting."""
    fork: Fork | None
    """What to wait for, if that is deeper than `start`."""
    keep: frozenset[int]
    """Epochs of this run from whose state another run of the plan starts: stored and kept."""

    @property
    def first_epoch(self) -> int:
        """Number of epochs this run does not train itself."""
        return self.start if self.fork is None else self.fork.epoch

    @property
    def epochs_to_train(self) -> int:
        """Epochs this run trains itself."""
        return self.run.config.epochs - self.first_epoch


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """What a launch would do."""

    finished: tuple[Run, ...]
    """Runs whose last epoch is stored."""
    pending: tuple[PlannedRun, ...]
    """The others: trunks before the runs that fork from them, else in the order given."""

    @property
    def epochs_naive(self) -> int:
        """Epochs if every run of the study trained all of its own, nothing stored."""
        runs = [*self.finished, *(planned.run for planned in self.pending)]
        return sum(run.config.epochs for run in runs)

    @property
    def epochs_planned(self) -> int:
        """Epochs this launch trains: each shared epoch once, none that is stored."""
        return sum(planned.epochs_to_train for planned in self.pending)


def plan_study(study: Study, store: Store) -> Plan:
    """Return what a launch of a study would train: not what is stored or is known to diverge."""
    diverged = {key for key, failure in store.failures().items() if failure.kind == "diverged"}
    runs = [run for run in study.runs() if not (diverged and run.key in diverged)]
    return plan_runs(runs, store.keys())


def plan_runs(
    runs: Iterable[Run], stored: Mapping[str, bool], underway: Iterable[PlannedRun] = ()
) -> Plan:
    """Return what is left of some runs, each shared stage given to one of them.

    Args:
        runs: Runs with distinct keys.
        underway: Runs planned before that have not ended; stages that they keep are shared too.
        stored: Stage key to whether its state is stored with it (`Store.keys()`). A finished run
            needs no state; a start or a fork does.
    """
    finished, unfinished = [], []
    for run in runs:
        keys = stage_keys(run.config)
        if keys[-1] in stored:
            finished.append(run)
        else:
            unfinished.append((run, keys))

    sharers = Counter(key for _, keys in unfinished for key in keys)
    shared_keys = {key for key, number in sharers.items() if number > 1}
    unfinished.sort(key=lambda entry: -_depth(entry[1], shared_keys))

    resumable = {key for key, has_state in stored.items() if has_state}
    trained_by = {
        keys[epoch - 1]: planned.run.key
        for planned in underway
        for keys in (stage_keys(planned.run.config),)
        for epoch in planned.keep
        if epoch > planned.first_epoch
    }
    placed: list[tuple[Run, tuple[str, ...], int, Fork | None]] = []
    for run, keys in unfinished:
        start = _depth(keys, resumable)
        shared = _depth(keys, trained_by.keys())
        fork = Fork(trunk=trained_by[keys[shared - 1]], epoch=shared) if shared > start else None
        trained_by.update(dict.fromkeys(keys[max(start, shared) :], run.key))
        placed.append((run, keys, start, fork))

    starts = Counter(
        keys[first - 1]
        for _, keys, start, fork in placed
        if 0 < (first := fork.epoch if fork else start) < len(keys)
    )
    return Plan(
        finished=tuple(finished),
        pending=tuple(
            PlannedRun(
                run=run,
                start=start,
                fork=fork,
                keep=frozenset(
                    epoch
                    for epoch, key in enumerate(keys, 1)
                    if starts[key] > (epoch == (fork.epoch if fork else start))
                ),
            )
            for run, keys, start, fork in placed
        ),
    )


def _depth(keys: tuple[str, ...], known: Collection[str]) -> int:
    """Return the number of epochs of the longest prefix whose own key is known."""
    return next((epoch for epoch in range(len(keys), 0, -1) if keys[epoch - 1] in known), 0)
