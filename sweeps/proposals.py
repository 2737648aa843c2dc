"""Proposals: the points of a search in Optuna's storage. The only module that imports Optuna.

A point is drawn on a copy of the search in memory and then added to the storage as a whole, with
its values: no kill can leave a point without them, so every open point of a dead driver can be
adopted, and proposals follow from the points alone, with or without kills between them.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import optuna
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.samplers import BaseSampler, CmaEsSampler, GPSampler, RandomSampler, TPESampler
from optuna.storages import BaseStorage, JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import FrozenTrial, Trial, TrialState, create_trial

from mixup_core.config import TrainConfig, stage_keys
from mixup_core.files import make_private_folder
from sweeps.search import Categorical, Integer, Parameter, Point, PointState, Search, SearchHistory
from sweeps.sqlite_files import alone, database_file
from sweeps.study import Study

_TRIES = 50
"""Draws of a sampler that may repeat known points before random draws, as many, take over."""

_STATES: Mapping[TrialState, PointState] = {
    TrialState.RUNNING: "open",
    TrialState.WAITING: "open",
    TrialState.COMPLETE: "complete",
    TrialState.PRUNED: "pruned",
    TrialState.FAIL: "failed",
}

optuna.logging.set_verbosity(optuna.logging.ERROR)


class SamplerError(Exception):
    """A sampler that cannot be used here."""


class Proposals:
    """The points of one search. One writer at a time: the driver that holds the study's lease."""

    def __init__(self, study: Study, url: str) -> None:
        """Open the search, created with its storage if need be.

        Args:
            study: A study with a search.
            url: Database URL, or the path of a journal file.

        Raises:
            SamplerError: If the sampler needs a package that is not installed.
        """
        assert study.search is not None
        self._search = study.search
        self._contents: dict[str, str] = {}
        self._taken = {_content(config) for config in study.arms.values()}
        if study.search.sampler == "cmaes" and find_spec("cmaes") is None:
            raise SamplerError("sampler cmaes needs the package cmaes: pip install cmaes")
        with alone(database_file(url)):
            self._study = optuna.create_study(
                study_name=_name(study),
                storage=_storage(url),
                directions=["minimize"] * len(study.search.objectives),
                load_if_exists=True,
            )

    def history(self) -> SearchHistory:
        """Return everything the storage holds of the search."""
        return _history(self._study, self._search)

    def points(self) -> tuple[Point, ...]:
        """Return all points by number."""
        return tuple(map(_point, self._trials()))

    def ask(self) -> Point | None:
        """Propose a point and return it once it is stored; None if the space has no more.

        The proposal computes something that no arm and no earlier point does: at switch epoch 0,
        for example, every alpha is ERM. It depends on the search and the points so far alone, not
        on when or how often the storage was opened.
        """
        trials = self._trials()
        taken = self._taken | {self._content_of(trial) for trial in trials}
        is_grid = self._search.sampler == "grid"
        for candidate in _grid(self._search) if is_grid else _drawn(self._search, trials):
            if self._content_of(candidate) not in taken:
                self._study.add_trial(candidate)
                return _point(self._trials()[-1])
        return None

    def tell(self, point: Point, state: PointState, objectives: Sequence[float] = ()) -> None:
        """Close an open point.

        Args:
            point: The point.
            state: How it ended.
            objectives: Mean over its seeds of each objective; of a complete point alone.
        """
        if state == "complete":
            self._study.tell(point.number, list(objectives), skip_if_finished=True)
        else:
            ended = TrialState.PRUNED if state == "pruned" else TrialState.FAIL
            self._study.tell(point.number, state=ended, skip_if_finished=True)

    def end(self, reason: str | None) -> None:
        """Store why no more points are asked for; None while more may come."""
        if self._study.user_attrs.get("ended") != reason:
            self._study.set_user_attr("ended", reason)

    @property
    def hours(self) -> float:
        """Wall hours that drivers have spent on the search, as stored by `spend`."""
        return float(self._study.user_attrs.get("hours", 0.0))

    def spend(self, hours: float) -> None:
        """Store the wall hours spent so far, those of earlier drivers included."""
        self._study.set_user_attr("hours", hours)

    def _trials(self) -> list[FrozenTrial]:
        trials: list[FrozenTrial] = self._study.get_trials(deepcopy=False)
        return trials

    def _content_of(self, trial: FrozenTrial) -> str:
        values = trial.user_attrs["point"]
        name = repr(values)
        if name not in self._contents:
            self._contents[name] = _content(self._search.config_of(values))
        return self._contents[name]


def read_history(study: Study, url: str) -> SearchHistory:
    """Return what a storage holds of a study's search; nothing is created."""
    assert study.search is not None
    file = database_file(url) if "://" in url else Path(url)
    if file is not None and not file.exists():
        return SearchHistory()
    with alone(database_file(url)):
        storage = _storage(url)
        try:
            opened = optuna.load_study(study_name=_name(study), storage=storage)
        except KeyError:
            return SearchHistory()
    return _history(opened, study.search)


def _grid(search: Search) -> Iterator[FrozenTrial]:
    for values in search.space.grid():
        yield _candidate(search, values)


def _drawn(search: Search, trials: Sequence[FrozenTrial]) -> Iterator[FrozenTrial]:
    """Yield draws of the sampler, then of a random one, each from a seed of its own."""
    for attempt in range(2 * _TRIES):
        # TRAP 17: a reopened search with the seed it began with would repeat its first draws.
        seed = (search.seed * 1_000_003 + len(trials) * 1_009 + attempt) % 2**32
        is_random = attempt >= _TRIES or search.sampler == "random"
        copy = optuna.create_study(
            directions=["minimize"] * len(search.objectives),
            sampler=RandomSampler(seed=seed) if is_random else _sampler(search, seed),
        )
        copy.add_trials(trials)
        values = search.space.draw(_Suggest(copy.ask()))
        drawn = copy.get_trials(deepcopy=False)[-1]
        yield _candidate(search, values, drawn.system_attrs)


@dataclass(frozen=True, slots=True)
class _Suggest:
    """Draws a parameter from an Optuna trial."""

    trial: Trial

    def __call__(self, parameter: Parameter) -> Any:
        distribution = parameter.distribution
        if isinstance(distribution, Categorical):
            return self.trial.suggest_categorical(parameter.path, distribution.choices)
        if isinstance(distribution, Integer):
            low, high, step = distribution.low, distribution.high, distribution.step
            return self.trial.suggest_int(parameter.path, low, high, step=step)
        return self.trial.suggest_float(
            parameter.path, *distribution.bounds, log=distribution.is_log
        )


def _candidate(
    search: Search, values: Mapping[str, Any], system_attrs: Mapping[str, Any] | None = None
) -> FrozenTrial:
    distributions = {p.path: _distribution(p) for p in search.space.parameters if p.path in values}
    return create_trial(
        state=TrialState.RUNNING,
        params=dict(values),
        distributions=distributions,
        user_attrs={"point": dict(values)},
        system_attrs=dict(system_attrs or {}),
    )


def _distribution(parameter: Parameter) -> BaseDistribution:
    distribution = parameter.distribution
    if isinstance(distribution, Categorical):
        return CategoricalDistribution(distribution.choices)
    if isinstance(distribution, Integer):
        return IntDistribution(distribution.low, distribution.high, step=distribution.step)
    return FloatDistribution(distribution.low, distribution.high, log=distribution.is_log)


def _sampler(search: Search, seed: int) -> BaseSampler:
    match search.sampler:
        case "gp":
            return GPSampler(seed=seed, warn_independent_sampling=False)
        case "cmaes":
            return CmaEsSampler(seed=seed, warn_independent_sampling=False)
        case _:
            return TPESampler(seed=seed, multivariate=True, constant_liar=True)


def _content(config: TrainConfig) -> str:
    """Return what a configuration computes: equal schedules are equal however they are spelled."""
    return stage_keys(config)[-1]


def _name(study: Study) -> str:
    assert study.search is not None
    return f"{study.name}-{study.search.fingerprint(study.seeds)}"


def _storage(url: str) -> BaseStorage:
    if "://" in url:
        return RDBStorage(url)
    make_private_folder(Path(url).resolve().parent)
    return JournalStorage(JournalFileBackend(url))


def _point(trial: FrozenTrial) -> Point:
    is_complete = trial.state == TrialState.COMPLETE
    return Point(
        number=trial.number,
        values=trial.user_attrs["point"],
        state=_STATES[trial.state],
        objectives=tuple(trial.values) if is_complete else (),
    )


def _history(opened: optuna.Study, search: Search) -> SearchHistory:
    return SearchHistory(
        points=tuple(map(_point, opened.get_trials(deepcopy=False))),
        ended=opened.user_attrs.get("ended"),
        importances=_importances(opened, search),
    )


def _importances(opened: optuna.Study, search: Search) -> dict[str, float]:
    complete = opened.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
    everywhere = [
        p.path for p in search.space.parameters if all(p.path in trial.params for trial in complete)
    ]
    if len(complete) < 2 or len({trial.values[0] for trial in complete}) < 2 or not everywhere:
        return {}
    means = optuna.create_study()
    for trial in complete:
        params, distributions = trial.params, trial.distributions
        means.add_trial(
            create_trial(params=params, distributions=distributions, value=trial.values[0])
        )
    found: dict[str, float] = optuna.importance.get_param_importances(
        means,
        evaluator=optuna.importance.PedAnovaImportanceEvaluator(),
        params=everywhere,
    )
    return found
