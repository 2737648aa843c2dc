"""Plan: which runs are left to train, which first epochs they share, and what that costs.

Runs whose first epochs are the same computation have equal stage keys up to there, whatever the
reason (a switch epoch, two studies, two schedules). One of them, the trunk, trains the shared
epochs; the others fork from its stored stage. A run may also need the last state of another, its
teacher. Nothing here looks at laws or schedules.
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
    """A stage that another run of the plan trains and that a run waits for."""

    run: str
    """Key of the run that trains it."""
    epoch: int
    """Number of epochs of that run, at least 1, after which its state is stored."""
    use: Literal["start", "teacher"]
    """`start`: the first epochs that both share, from whose state the run goes on. `teacher`: the
    finished run that it learns from."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PlannedRun:
    """A run that is not finished, and where it starts."""

    run: Run
    start: int
    """Epochs already stored with their state: the run can start there without waiting."""
    needs: tuple[Need, ...]
    """Stages to wait for: a start deeper than `start`, or a teacher that is not stored."""
    keep: frozenset[int]
    """Epochs of this run whose state another run needs: stored and kept."""

    @property
    def first_epoch(self) -> int:
        """Number of epochs this run does not train itself."""
        return max([self.start, *(need.epoch for need in self.needs if need.use == "start")])

    @property
    def epochs_to_train(self) -> int:
        """Epochs this run trains itself."""
        return self.run.config.epochs - self.first_epoch


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """The work of a launch."""

    finished: tuple[Run, ...]
    """Runs whose last epoch is stored."""
    pending: tuple[PlannedRun, ...]
    """The others, the longest work first: of a run that others wait for, with what comes after it,
    so teachers come before their pupils and trunks before the runs that fork from them. Runs of
    equal work keep the order given."""

    @property
    def epochs_naive(self) -> int:
        """Epochs if every run of the study trained all of its own, nothing stored."""
        runs = [*self.finished, *(planned.run for planned in self.pending)]
        return sum(run.config.epochs for run in runs)

    @property
    def epochs_planned(self) -> int:
        """Epochs this launch trains: each shared epoch once, none that is stored."""
        return sum(planned.epochs_to_train for planned in self.pending)


def plan_study(study: Study, store: Store, *, keep_final_states: bool = False) -> Plan:
    """Return the plan of a launch: runs that are neither stored nor known to diverge.

    Args:
        study: With the arms that it has by now.
        store: Where results are.
        keep_final_states: Whether every finished run is to have its last state stored.
    """
    hopeless = diverged(failures_of(study.runs(), store))
    runs = [run for run in study.runs() if not (hopeless and run.key in hopeless)]
    ends = [stage_keys(run.config)[-1] for run in runs]
    kept = frozenset(ends) if keep_final_states else study.teachers()
    return plan_runs(runs, proven_stages(runs, store), kept=kept)


def proven_stages(runs: Iterable[Run], store: Store) -> Mapping[str, bool]:
    """Return the stages stored, of which those that a plan of some runs relies upon were read.

    A run that counts as finished is not looked at again before its report, and a teacher not before
    its pupils start.

    Args:
        runs: That are to be planned.
        store: Where results are.
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
    """Return the plan of the epochs that are not stored; one run trains each shared stage.

    A run that is finished but has lost a state which is needed is trained again from its deepest
    state that is left; its records are what they were.

    Args:
        runs: Runs with distinct keys.
        stored: Stage key to whether its state is stored with it (`Store.keys()`). A finished run
            needs no state unless it is in `kept`; a start, a fork and a teacher do.
        underway: Runs planned before that have not ended; stages that they keep are shared too.
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
    """Return runs by the work from their begin to the end of the last run that waits for them.

    Slots then end together, but for one run. Work is what the problem says of an epoch, which knows
    no network: a study whose arms have different ones is served less well.
    """
    waiting: dict[str, list[tuple[int, int]]] = {}
    """Key of a run to epoch and further work of each run that waits for it."""
    left: dict[str, int] = {}
    for planned in reversed(pending):  # whoever waits stands behind whom it waits for
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
    """Return the stage key that a run starts from, none for one that starts anew or is whole."""
    first = max([start, *(need.epoch for need in needs if need.use == "start")])
    return (keys[first - 1],) if 0 < first < len(keys) else ()


def _num_teachers(run: Run, trainers: Mapping[str, Run]) -> int:
    """Return the number of teachers above a run that must be trained first.

    Args:
        run: The pupil; without a teacher it has none above it.
        trainers: Final stage key to a run that is left to train and ends there.
    """
    above: set[str] = set()
    learner: Run | None = run
    while learner is not None and learner.teacher is not None:
        taught_by = stage_keys(learner.teacher)[-1]
        if taught_by in above:  # a pupil that learns in no epoch ends where its teacher does
            break
        above.add(taught_by)
        learner = trainers.get(taught_by)
    return len(above)


def _depth(keys: tuple[str, ...], known: Collection[str]) -> int:
    """Return the number of epochs of the longest prefix whose own key is known."""
    return next((epoch for epoch in range(len(keys), 0, -1) if keys[epoch - 1] in known), 0)


def spare_bytes(runs: int) -> int:
    """Return the bytes that the last state of each of some runs may take to stay unasked."""
    return min(10**6, 10**9 // max(1, runs))
