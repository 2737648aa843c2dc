"""Plan: the runs left to train, the first epochs that they share, and the cost.

Runs whose first epochs are the same computation have equal stage keys for these epochs, whatever
the reason (a switch epoch, two studies, two schedules). One of them, the trunk, trains the shared
epochs; the others fork from its stored stage. A run may also need the last state of another run,
its teacher. This module does not look at laws or schedules.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from mixup_core.keys import stage_keys
from mixup_core.problem import problem_of
from mixup_core.store.checkpoints import Store
from sweeps.state.failures import diverged, failures_of
from sweeps.study.study import Run, Study


@dataclass(frozen=True, kw_only=True, slots=True)
class Need:
    """A stage that a run waits for and that another run of the plan trains."""

    run: str
    """Key of the run that trains the stage."""
    epoch: int
    """Number of epochs, at least 1, after which that run stores the state."""
    use: Literal["start", "teacher"]
    """`start`: the run forks from the state after the epochs that both share. `teacher`: the run
    learns from the finished run."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PlannedRun:
    """A run that is not finished, with its starting point."""

    run: Run
    start: int
    """Number of stored epochs from whose state the run can start at once."""
    needs: tuple[Need, ...]
    """Stages to wait for: a start after more epochs than `start`, or a teacher not stored yet."""
    keep: frozenset[int]
    """Epochs of this run whose states are stored and kept, because other runs need them."""

    @property
    def first_epoch(self) -> int:
        """Number of epochs that this run does not train itself."""
        return max([self.start, *(need.epoch for need in self.needs if need.use == "start")])

    @property
    def epochs_to_train(self) -> int:
        """Number of epochs that this run trains itself."""
        return self.run.config.epochs - self.first_epoch


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """The runs of a launch: finished ones, and those to train."""

    finished: tuple[Run, ...]
    """Runs whose last epoch is stored."""
    pending: tuple[PlannedRun, ...]
    """The runs to train, the most work first. The work of a run includes that of the longest chain
    of runs that wait for it, so teachers come before their pupils, and trunks before the runs
    that fork from them. Runs with equal work keep the given order."""

    @property
    def epochs_naive(self) -> int:
        """Number of epochs if every run trained all of its own epochs and nothing was stored."""
        runs = [*self.finished, *(planned.run for planned in self.pending)]
        return sum(run.config.epochs for run in runs)

    @property
    def epochs_planned(self) -> int:
        """Number of epochs that this launch trains: each shared epoch once, without stored ones."""
        return sum(planned.epochs_to_train for planned in self.pending)


def plan_study(study: Study, store: Store, *, keep_final_states: bool = False) -> Plan:
    """Return the plan of a launch: all runs that are neither stored nor known to diverge.

    Args:
        study: The study with the arms that it has by now.
        store: The store of its results.
        keep_final_states: If True, the last state of every finished run must be stored.
    """
    hopeless = diverged(failures_of(study.runs(), store))
    runs = [run for run in study.runs() if not (hopeless and run.key in hopeless)]
    kept = (
        frozenset(stage_keys(run.config)[-1] for run in runs)
        if keep_final_states
        else study.teachers()
    )
    return plan_runs(runs, proven_stages(runs, store), kept=kept)


def proven_stages(runs: Iterable[Run], store: Store) -> Mapping[str, bool]:
    """Return the stored stages; those that the plan of these runs relies on are read and checked.

    Otherwise a damaged stage would be found too late: a finished run is read again only for the
    report, and a teacher only when its pupils start.

    Args:
        runs: The runs to plan.
        store: The store of the results.
    """
    runs = tuple(runs)
    return store.keys(
        proven=[stage_keys(run.config)[-1] for run in runs],
        proven_states={stage_keys(run.teacher)[-1] for run in runs if run.teacher is not None},
    )


def plan_runs(
    runs: Iterable[Run],
    stored: Mapping[str, bool],
    underway: Iterable[PlannedRun] = (),
    kept: Collection[str] = (),
) -> Plan:
    """Return the plan of all epochs that are not stored; each shared stage is trained by one run.

    A finished run whose needed state was lost is trained again from its last remaining state; its
    records stay the same.

    Args:
        runs: Runs with distinct keys.
        stored: For each stored stage key, whether its state is stored (`Store.keys()`). A finished
            run needs its state only if it is in `kept`; starts, forks and teachers always do.
        underway: Runs planned earlier that have not ended; the stages that they keep are shared
            too.
        kept: Final stage keys whose state is to be stored.
    """
    finished, unfinished = [], []
    for run in runs:
        keys = stage_keys(run.config)
        if stored.get(keys[-1]) or (keys[-1] in stored and keys[-1] not in kept):
            finished.append(run)
        else:
            unfinished.append((run, keys))

    sharers = Counter(key for _, keys in unfinished for key in keys)
    shared_keys = {key for key, number in sharers.items() if number > 1}
    trainers = {keys[-1]: run for run, keys in unfinished}
    unfinished.sort(
        key=lambda entry: (_num_teachers(entry[0], trainers), -_depth(entry[1], shared_keys))
    )

    resumable = {key for key, has_state in stored.items() if has_state}
    trained_by = {
        keys[epoch - 1]: planned.run.key
        for planned in underway
        for keys in (stage_keys(planned.run.config),)
        for epoch in planned.keep
        if epoch > planned.first_epoch
    }
    placed: list[tuple[Run, tuple[str, ...], int, tuple[Need, ...]]] = []
    for run, keys in unfinished:
        start = _depth(keys, resumable)
        shared = _depth(keys, trained_by.keys())
        needs = []
        if shared > start:
            needs.append(Need(run=trained_by[keys[shared - 1]], epoch=shared, use="start"))
        if run.teacher is not None:
            taught_by = stage_keys(run.teacher)[-1]
            if taught_by in trained_by and taught_by not in resumable:
                epochs = run.teacher.epochs
                needs.append(Need(run=trained_by[taught_by], epoch=epochs, use="teacher"))
        trained_by.update(dict.fromkeys(keys[max(start, shared) :], run.key))
        placed.append((run, keys, start, tuple(needs)))

    users = Counter(key for run, keys, start, needs in placed for key in _used(keys, start, needs))
    users.update(stage_keys(run.teacher)[-1] for run, *_ in placed if run.teacher is not None)
    pending = [
        PlannedRun(
            run=run,
            start=start,
            needs=needs,
            keep=frozenset(
                epoch
                for epoch, key in enumerate(keys, 1)
                if users[key] > (key in _used(keys, start, needs))
                or (epoch == len(keys) and key in kept)
            ),
        )
        for run, keys, start, needs in placed
    ]
    return Plan(finished=tuple(finished), pending=tuple(_longest_first(pending)))


def _longest_first(pending: Sequence[PlannedRun]) -> list[PlannedRun]:
    """Return runs sorted by the work until the last run that waits for them ends, the most first.

    With this order, the slots end at about the same time. Work is the problem's estimate per epoch,
    which does not depend on the network; for arms with different networks the order is less good.
    """
    waiting: dict[str, list[tuple[int, int]]] = {}
    """Epoch and further work of each waiting run, by key of the run it waits for."""
    left: dict[str, int] = {}
    for planned in reversed(pending):  # a waiting run comes after the run it waits for
        config, key = planned.run.config, planned.run.key
        per_epoch = problem_of(config).cost.work(config)
        paths = [
            (epoch - planned.first_epoch) * per_epoch + further
            for epoch, further in waiting.get(key, ())
        ]
        left[key] = max([planned.epochs_to_train * per_epoch, *paths])
        for need in planned.needs:
            waiting.setdefault(need.run, []).append((need.epoch, left[key]))
    return sorted(pending, key=lambda planned: -left[planned.run.key])


def _used(keys: tuple[str, ...], start: int, needs: Iterable[Need]) -> tuple[str, ...]:
    """Return the stage key that a run starts from; empty if it starts at epoch 0 or is complete."""
    first = max([start, *(need.epoch for need in needs if need.use == "start")])
    return (keys[first - 1],) if 0 < first < len(keys) else ()


def _num_teachers(run: Run, trainers: Mapping[str, Run]) -> int:
    """Return how many of a run's teachers (of teachers ...) must be trained before it.

    Args:
        run: The pupil.
        trainers: The untrained run that produces a stage, by its final stage key.
    """
    above: set[str] = set()
    learner: Run | None = run
    while learner is not None and learner.teacher is not None:
        taught_by = stage_keys(learner.teacher)[-1]
        if taught_by in above:  # a pupil without distillation epochs has its teacher's last stage
            break
        above.add(taught_by)
        learner = trainers.get(taught_by)
    return len(above)


def _depth(keys: tuple[str, ...], known: Collection[str]) -> int:
    """Return the number of epochs of the longest prefix whose key is known."""
    return next((epoch for epoch in range(len(keys), 0, -1) if keys[epoch - 1] in known), 0)


def spare_bytes(runs: int) -> int:
    """Return the largest size, in bytes, of a last state that is kept without being requested.

    Args:
        runs: Number of runs of the study; all such states together take at most 1 GB.
    """
    return min(10**6, 10**9 // max(1, runs))
