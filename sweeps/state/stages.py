"""Stages: the plan of a launch: runs to train, the first epochs that they share, and the cost.

Runs whose first epochs are the same computation have equal stage keys for these epochs, for example
two runs that differ only in the switch epoch. One of the runs, the trunk, trains the shared epochs;
the others fork from its stored stage. A run may also need the final state of another run, its
teacher. This module compares keys only; it does not read laws and schedules.

A stage may be stored with or without its state (weights, optimizer, ...). A run can start from a
stage only if the state is stored, too.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from mixup_core.keys import stage_keys
from mixup_core.problem import problem_of
from mixup_core.store.checkpoints import Store
from sweeps.state.results import diverged, failures_of
from sweeps.study.study import Run, Study

# Frozen: this key in stored stages. States of earlier launches would not be deleted;
# tests/sweeps/running/test_storing.py fails.
OWNER = "resumes"
"""Key in the environment of a passing stage; its value is the key of the run that may delete it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Need:
    """A stage (the first epochs of a run) that a run needs and another run is to train."""

    run: str
    """Key of the run that trains the stage."""
    epoch: int
    """Number of epochs, at least 1, after which the other run stores the state."""
    use: Literal["start", "teacher"]
    """`start`: the run starts from this state, after the epochs that both share. `teacher`: the run
    learns from the finished other run."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PlannedRun:
    """A run to train, with the stored state that it starts from, if any."""

    run: Run
    start: int
    """Number of epochs whose stored state the run starts from; 0 to start without one."""
    needs: tuple[Need, ...]
    """Stages of other runs to wait for: a state after more epochs than `start`, or a teacher that
    is not trained yet."""
    keep: frozenset[int]
    """Epochs of this run, counted from 1, after which the state is kept because other runs need
    it.
    """

    @property
    def first_epoch(self) -> int:
        """First epoch, from 0, that this run trains itself."""
        return max([self.start, *(need.epoch for need in self.needs if need.use == "start")])

    @property
    def epochs_to_train(self) -> int:
        return self.run.config.epochs - self.first_epoch


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """The runs of a launch: those already finished, and those to train."""

    finished: tuple[Run, ...]
    """Runs whose last epoch is stored."""
    pending: tuple[PlannedRun, ...]
    """The runs to train, those with the most work first. The work of a run includes that of the
    longest chain of runs that wait for it, so teachers come before their students, and trunks
    before the runs that fork from them. Runs with equal work keep the given order."""

    @property
    def epochs_naive(self) -> int:
        """Number of epochs if none were stored and none were shared."""
        runs = [*self.finished, *(planned.run for planned in self.pending)]
        return sum(run.config.epochs for run in runs)

    @property
    def epochs_planned(self) -> int:
        """Number of epochs this plan trains: stored ones are left out, shared ones count once."""
        return sum(planned.epochs_to_train for planned in self.pending)


def plan_study(
    study: Study,
    store: Store,
    *,
    sound: Collection[str] = (),
    keep_final_states: bool = False,
) -> Plan:
    """Return the plan of a launch: the runs of a study that are neither finished nor diverged."""
    hopeless = diverged(failures_of(study.runs(), store))
    runs = [run for run in study.runs() if not (hopeless and run.key in hopeless)]
    stored = proven_stages(runs, store, sound)
    kept = frozenset[str]()
    if keep_final_states:
        kept = frozenset(stage_keys(run.config)[-1] for run in runs)
    elif study.search is not None:  # points that are not yet proposed may learn from any teacher
        kept = study.teachers()
    return plan_runs(runs, stored, kept=kept)


def _teachers_to_come(runs: Sequence[Run], stored: Mapping[str, bool]) -> frozenset[str]:
    """Return the last stage keys of the teachers of unfinished runs, and of teachers without state.

    A finished run needs its teacher no more, such as a run from an archive, which has no states.
    """
    by_end = {stage_keys(run.config)[-1]: run for run in runs}
    learners = [run for end, run in by_end.items() if end not in stored]
    needed = set[str]()
    for run in learners:
        end = None if run.teacher is None else stage_keys(run.teacher)[-1]
        if end is not None and end not in needed:
            needed.add(end)
            if end in by_end and not stored.get(end):
                learners.append(by_end[end])  # it is trained again
    return frozenset(needed)


def proven_stages(
    runs: Iterable[Run], store: Store, sound: Collection[str] = ()
) -> Mapping[str, bool]:
    """Return the keys of the stored stages, with True for those that have a state.

    The stages that a plan of these runs relies on are read and checked. Otherwise a damaged stage
    would be found too late: a finished run is read again only for the report, and a teacher only
    when a run that learns from it starts.
    """
    runs = tuple(runs)
    ends = (stage_keys(run.config)[-1] for run in runs)
    return store.keys(
        proven=[key for key in ends if key not in sound],
        proven_states={stage_keys(run.teacher)[-1] for run in runs if run.teacher is not None},
    )


def plan_runs(
    runs: Sequence[Run],
    stored: Mapping[str, bool],
    underway: Iterable[PlannedRun] = (),
    kept: Collection[str] = (),
) -> Plan:
    """Return a plan that trains shared epochs once; lost states that are needed are remade."""
    kept = {*kept, *_teachers_to_come(runs, stored)}
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
    unfinished.sort(key=lambda entry: _depth(entry[1], shared_keys), reverse=True)
    unfinished.sort(key=lambda entry: _num_teachers(entry[0], trainers))

    resumable = {key for key, has_state in stored.items() if has_state}
    trained_by = {
        keys[epoch - 1]: planned.run.key
        for planned in underway
        for keys in (stage_keys(planned.run.config),)
        for epoch in planned.keep
        if epoch > planned.first_epoch
    }
    placed: list[tuple[PlannedRun, tuple[str, ...]]] = []
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
        planned = PlannedRun(run=run, start=start, needs=tuple(needs), keep=frozenset())
        trained_by.update(dict.fromkeys(keys[planned.first_epoch :], run.key))
        placed.append((planned, keys))

    users = Counter(key for planned, keys in placed for key in _used(planned, keys))
    users.update(stage_keys(run.teacher)[-1] for run, _ in unfinished if run.teacher is not None)
    pending = []
    for planned, keys in placed:
        used = _used(planned, keys)
        keep = {epoch for epoch, key in enumerate(keys, 1) if users[key] > (key in used)}
        if keys[-1] in kept:
            keep.add(len(keys))
        pending.append(replace(planned, keep=frozenset(keep)))
    return Plan(finished=tuple(finished), pending=tuple(_longest_first(pending)))


def _longest_first(pending: Sequence[PlannedRun]) -> list[PlannedRun]:
    """Return runs sorted by the work on their longest chain of waiting runs, the most first."""
    waiting: dict[str, list[tuple[int, int]]] = {}
    """Epoch at which each waiting run starts and its further work, by key of the run it waits
    for.
    """
    work_left: dict[str, int] = {}
    for planned in reversed(pending):  # a waiting run comes after the run it waits for
        config, key = planned.run.config, planned.run.key
        per_epoch = problem_of(config).cost.work(config)
        paths = [
            (epoch - planned.first_epoch) * per_epoch + further
            for epoch, further in waiting.get(key, ())
        ]
        work_left[key] = max([planned.epochs_to_train * per_epoch, *paths])
        for need in planned.needs:
            waiting.setdefault(need.run, []).append((need.epoch, work_left[key]))
    return sorted(pending, key=lambda planned: work_left[planned.run.key], reverse=True)


def _used(planned: PlannedRun, keys: tuple[str, ...]) -> tuple[str, ...]:
    """Return the stage key that a run starts from; empty if it starts at epoch 0 or is complete."""
    first = planned.first_epoch
    return (keys[first - 1],) if 0 < first < len(keys) else ()


def _num_teachers(run: Run, trainers: Mapping[str, Run]) -> int:
    """Return the length of the chain of untrained teachers that must be trained before a run."""
    above: set[str] = set()
    learner: Run | None = run
    while learner is not None and learner.teacher is not None:
        taught_by = stage_keys(learner.teacher)[-1]
        # A student whose teacher changes no epoch of it has its teacher's last stage.
        learner = None if taught_by in above else trainers.get(taught_by)
        above.add(taught_by)
    return len(above)


def _depth(keys: tuple[str, ...], known: Collection[str]) -> int:
    """Return the number of a run's first epochs up to the last one whose stage key is known."""
    return max((epoch for epoch, key in enumerate(keys, 1) if key in known), default=0)


def spare_bytes(runs: int) -> int:
    """Return the size up to which a final state is kept unneeded: 1 MB, for all runs 1 GB."""
    return 10**9 // max(1000, runs)


def plan_keeping_results(store: Store, plan: Callable[[], Plan]) -> Plan:
    """Return a plan after its finished runs are safe from others; plan again if one was not."""
    first = plan()
    return plan() if _let_results_stay(first.finished, store) else first


def _let_results_stay(finished: Iterable[Run], store: Store) -> bool:
    """Make the last stages of finished runs permanent, so that other runs do not delete them.

    For example, a run of 20 epochs has its first 10 in common with a finished run of 10. The longer
    run may have stored the stage after 10 epochs only to resume from, and would then delete it
    after storing newer ones.
    """
    with_state = store.states.keys()
    ends = (stage_keys(run.config)[-1] for run in finished)
    stages = store.read_all([key for key in ends if key in with_state])
    passing = [key for key, stage in stages.items() if OWNER in stage.environment]
    for key in passing:
        store.forget(key, OWNER)
    return bool(passing)
