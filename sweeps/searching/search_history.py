"""SearchHistory: read the points of a search, and why it ended, from Optuna's storage."""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import optuna
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.storages import BaseStorage
from optuna.trial import FrozenTrial, TrialState, create_trial

from mixup_core.config.building import with_values
from mixup_core.keys import stage_keys
from mixup_core.problem import with_named_teacher
from mixup_core.store.checkpoints import Store, identity_of, known_identity
from sweeps.machine.databases import alone, database_file
from sweeps.searching.optuna_storage import answering, open_storage
from sweeps.study.search import Point, PointState, Search, SearchHistory
from sweeps.study.space import Categorical, Integer, Parameter
from sweeps.study.study import Study

_STATES: Mapping[TrialState, PointState] = {
    TrialState.RUNNING: "open",
    TrialState.WAITING: "open",
    TrialState.COMPLETE: "complete",
    TrialState.PRUNED: "pruned",
    TrialState.FAIL: "failed",
}

NUM_SEEDS = "num_seeds"
"""Name of an attribute of Optuna's study: the number of trained seeds of each point that was pruned
or failed before it had all seeds, by number of the point."""

EXHAUSTED = "exhausted"
"""Name of an attribute of Optuna's study: True if the last proposal found no new point in the
space."""

KNOWN = "known"
"""Name of an attribute of an Optuna trial: True if the results of the point were in the store
before the search proposed it."""

OWNER = "store"
"""Name of an attribute of Optuna's study: the id of the store that has the results."""

SETTLED = "settled"
"""Name of an attribute of Optuna's study: the number of points in a row without improvement that
ended the search."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Owner:
    """A study and the store of its results; identifies a search in a shared Optuna storage."""

    study: Study
    store: Store
    identity: str
    """Random id of the store, which is written in the store."""

    @classmethod
    def of(cls, study: Study, store: Store, *, is_writing: bool) -> Self:
        """Return the owner of a study's search: the study, its store, and the store's random id."""
        identity = identity_of(store) if is_writing else known_identity(store)
        return cls(study=study, store=store, identity=identity or "nobody")

    def has_results(self, points: Iterable[Mapping[str, Any]]) -> bool:
        """True if the store has finished runs of all given points (at least one) at every seed."""
        search, points = self.study.search, tuple(points)
        if search is None or not points:
            return False
        stored = self.store.keys()
        return all(
            stage_keys(with_named_teacher(with_values(config, {"seed": seed})))[-1] in stored
            for config in map(search.config_of, points)
            for seed in self.study.seeds
        )


def read_history(study: Study, url: str, owner: Owner | None = None) -> SearchHistory:
    """Return a search's points and why it ended; empty if it does not exist; creates nothing."""
    assert study.search is not None
    file = database_file(url) if "://" in url else Path(url)
    if file is not None and not os.path.lexists(file):
        return SearchHistory()
    with answering(url), alone(database_file(url)):
        storage = open_storage(url)
        name = name_within(storage, study, owner)
        if name not in optuna.get_all_study_names(storage):
            return SearchHistory()
        return history_of(optuna.load_study(study_name=name, storage=storage), study.search)


def name_of(study: Study) -> str:
    """Return the name of a study's search in an Optuna storage that one home uses."""
    assert study.search is not None
    # Frozen: this name. A search would not find its earlier points, and would start anew;
    # tests/contracts/test_homes.py fails.
    return f"{study.name}-{study.search.fingerprint(study.seeds)}"


def name_within(storage: BaseStorage, study: Study, owner: Owner | None) -> str:
    """Return the name of a study's search in an Optuna storage that several homes may use.

    A search of an older version has no owner in its name; it belongs to the store with its results.
    """
    name = name_of(study)
    if owner is None:
        return name
    own_name, names = f"{name}-{owner.identity[:8]}", optuna.get_all_study_names(storage)
    if own_name in names or name not in names:
        return own_name
    former = optuna.load_study(study_name=name, storage=storage)
    is_own = OWNER not in former.user_attrs and owner.has_results(
        [p.values for p in points_of(former) if p.state == "complete" and not p.is_known]
    )
    return name if is_own or former.user_attrs.get(OWNER) == owner.identity else own_name


def points_of(opened: optuna.Study) -> tuple[Point, ...]:
    """Return the points of a search, read from its Optuna study, in the order of their numbers."""
    num_seeds = opened.user_attrs.get(NUM_SEEDS, {})
    return tuple(
        Point(
            number=trial.number,
            values=trial.user_attrs["point"],
            state=_STATES[trial.state],
            num_seeds=num_seeds.get(str(trial.number)) if trial.state.is_finished() else None,
            objectives=tuple(trial.values) if trial.state == TrialState.COMPLETE else (),
            is_known=trial.user_attrs.get(KNOWN, False),
        )
        for trial in own_trials(opened)
    )


def own_trials(opened: optuna.Study) -> list[FrozenTrial]:
    """Return the trials in an Optuna study that mixsweep added, without those of other programs."""
    return [trial for trial in opened.get_trials(deepcopy=False) if "point" in trial.user_attrs]


def history_of(opened: optuna.Study, search: Search) -> SearchHistory:
    """Return the points of a search, and why it ended, read from its opened Optuna study."""
    points = points_of(opened)
    return SearchHistory(
        points=points,
        ended=None if len(points) >= search.points else end_of(opened, search, len(points)),
    )


def end_of(opened: optuna.Study, search: Search, num_points: int) -> str | None:
    """Return the reason why a search has ended under its present budget; None if it continues."""
    attrs = opened.user_attrs
    if attrs.get(EXHAUSTED):
        return f"ended after {num_points} points, because its space has no other points"
    if search.strategy.stop_after is not None and attrs.get(SETTLED) == search.strategy.stop_after:
        return (
            f"ended after {num_points} points, because the last {search.strategy.stop_after} "
            "improved by less than the noise between seeds"
        )
    reason = search.budget.exceeded(attrs.get("hours", 0.0), attrs.get("gpu_hours", 0.0))
    return None if reason is None else f"{reason}, after {num_points} points"


def study_of_means(
    search: Search, points: Sequence[Point], scales: Sequence[float]
) -> optuna.Study:
    """Return an Optuna study in memory of means over seeds, times `scales`, one per objective."""
    means = optuna.create_study(directions=["minimize"] * len(scales))
    for point in points:
        values = [s * mean for s, mean in zip(scales, point.objectives, strict=False)]
        means.add_trial(
            create_trial(
                params=dict(point.values),
                distributions=distributions_of(search, point.values),
                values=values,
            )
        )
    return means


def importances_of(search: Search, points: Sequence[Point]) -> dict[str, float]:
    """Return the importance of hyperparameters for the first objective, over complete points.

    Empty if no hyperparameter is in every point, or all points have the same objective.
    """
    everywhere = [
        p.path for p in search.space.parameters if all(p.path in point.values for point in points)
    ]
    if len({point.objectives[0] for point in points}) < 2 or not everywhere:
        return {}
    importances: dict[str, float] = optuna.importance.get_param_importances(
        study_of_means(search, points, (1.0,)),
        evaluator=optuna.importance.PedAnovaImportanceEvaluator(),
        params=everywhere,
    )
    return importances


def distributions_of(search: Search, values: Mapping[str, Any]) -> dict[str, BaseDistribution]:
    """Return the distribution of each parameter that a point has, as Optuna knows it."""
    return {p.path: _distribution(p) for p in search.space.parameters if p.path in values}


def _distribution(parameter: Parameter) -> BaseDistribution:
    distribution = parameter.distribution
    if isinstance(distribution, Categorical):
        return CategoricalDistribution(distribution.choices)
    if isinstance(distribution, Integer):
        return IntDistribution(distribution.low, distribution.high, step=distribution.step)
    return FloatDistribution(distribution.low, distribution.high, log=distribution.is_log)
