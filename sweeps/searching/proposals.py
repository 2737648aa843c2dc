"""Proposals: the points of a search, proposed by Optuna and kept in its storage.

Optuna proposes a point on an in-memory copy of the search; then the point and its values are added
to the storage in one write. So a killed driver never leaves a point without values.
"""

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import Any, assert_never

import optuna
from optuna.exceptions import ExperimentalWarning
from optuna.samplers import BaseSampler, CmaEsSampler, GPSampler, RandomSampler, TPESampler
from optuna.trial import FrozenTrial, Trial, TrialState, create_trial

from mixup_core.keys import stage_keys
from mixup_core.problem import Config, with_named_teacher
from sweeps.machine.databases import alone, database_file
from sweeps.searching.optuna_storage import answering, open_storage
from sweeps.searching.search_history import (
    EXHAUSTED,
    KNOWN,
    NUM_SEEDS,
    OWNER,
    SETTLED,
    Owner,
    distributions_of,
    end_of,
    history_of,
    name_within,
    own_trials,
    points_of,
)
from sweeps.study.search import START_UP, Point, Search, SearchError, SearchHistory
from sweeps.study.space import Categorical, Integer, Parameter
from sweeps.study.study import Study

_TRIES = 50
"""Number of draws from a sampler that may repeat known points. After that many, the points of the
space are enumerated."""


class Proposals:
    """The points of one search: proposes new ones with Optuna and keeps all in Optuna's storage.

    Only the driver that holds the lease of the study may write them.
    """

    def __init__(self, study: Study, url: str, owner: Owner | None = None) -> None:
        """Open the search in Optuna's storage; create both if they do not exist."""
        assert study.search is not None
        self._search, self._seeds = study.search, study.seeds
        self._contents: dict[str, str | None] = {}
        self._taken = {None, *map(_content, study.arms.values())}
        if study.search.strategy.sampler == "cmaes" and find_spec("cmaes") is None:
            raise SearchError("sampler cmaes needs the package cmaes: pip install cmaes")
        self._answering = partial(answering, url)
        with self._answering(), alone(database_file(url)):
            self._storage = open_storage(url)
            self._study = optuna.create_study(
                study_name=name_within(self._storage, study, owner),
                storage=self._storage,
                directions=["minimize"] * len(study.search.strategy.objectives),
                load_if_exists=True,
            )
            _name_objectives(self._study, study.search)
            if owner is not None and OWNER not in self._study.user_attrs:
                self._study.set_user_attr(OWNER, owner.identity)

    def history(self) -> SearchHistory:
        with self._answering():
            return history_of(self._study, self._search)

    def points(self) -> tuple[Point, ...]:
        with self._answering():
            return points_of(self._study)

    def ask(self, count: int = 1) -> tuple[Point, ...]:
        """Propose and store new points; fewer than `count` if the search space is exhausted.

        A point never repeats the computation of an arm or of an earlier point: with switch epoch 0,
        a parameter of the first law gets one value. Nor is it one whose values break a rule, or
        whose runs would fail, such as a batch size that leaves one image for BatchNorm. It depends
        only on the search and its points so far.
        """
        with self._answering():
            trials = own_trials(self._study)
            begun = len(self._study.get_trials(deepcopy=False))
        taken = self._taken | {self._content_of(trial.user_attrs["point"]) for trial in trials}
        points: list[Point] = []
        for values, system_attrs in _candidates(self._search, trials):
            content = self._content_of(values)
            if content in taken or not self._search.fits(values, self._seeds):
                continue
            with self._answering():
                self._study.add_trial(_proposal(self._search, values, system_attrs))
            taken.add(content)
            points.append(Point(number=begun + len(points), values=values, state="open"))
            if len(points) == count:
                break
        with self._answering():
            if self._study.user_attrs.get(EXHAUSTED, False) == bool(points):
                self._study.set_user_attr(EXHAUSTED, not points)
        return tuple(points)

    def elsewhere(self) -> tuple[Mapping[str, Any], ...]:
        """Return the values of all points of other searches in this storage, for `warm_start`."""
        with self._answering():
            names = optuna.get_all_study_names(self._storage)
            others = [
                optuna.load_study(study_name=name, storage=self._storage)
                for name in names
                if name != self._study.study_name
            ]
            return tuple(t.user_attrs["point"] for other in others for t in own_trials(other))

    def tell_known(self, known: Iterable[tuple[Mapping[str, Any], tuple[float, ...]]]) -> int:
        """Add points whose results are already in the store; return the number of added ones."""
        with self._answering():
            trials = own_trials(self._study)
            if end_of(self._study, self._search, len(trials)) is not None:
                return 0
        taken = self._taken | {self._content_of(trial.user_attrs["point"]) for trial in trials}
        room = self._search.points - len(trials)
        num_added = 0
        for values, objectives in known:
            content = self._content_of(values)
            if num_added >= room:
                break
            if content not in taken:
                with self._answering():
                    self._study.add_trial(_proposal(self._search, values, {}, objectives))
                taken.add(content)
                num_added += 1
        return num_added

    def tell(self, point: Point) -> None:
        """Store how a point ended: its state, objectives and number of seeds."""
        with self._answering():
            if point.num_seeds is not None:
                seeds = self._study.user_attrs.get(NUM_SEEDS, {})
                self._study.set_user_attr(NUM_SEEDS, {**seeds, str(point.number): point.num_seeds})
            if point.state == "complete":
                self._study.tell(point.number, list(point.objectives), skip_if_finished=True)
            else:
                state = TrialState.PRUNED if point.state == "pruned" else TrialState.FAIL
                self._study.tell(point.number, state=state, skip_if_finished=True)

    @property
    def spent(self) -> tuple[float, float]:
        """Wall-clock hours and GPU-hours that all drivers have spent on the search."""
        with self._answering():
            attrs = self._study.user_attrs
        return float(attrs.get("hours", 0.0)), float(attrs.get("gpu_hours", 0.0))

    def spend(self, hours: float, gpu_hours: float) -> None:
        """Store the wall-clock hours and GPU-hours that all drivers have spent on the search."""
        with self._answering():
            self._study.set_user_attr("hours", hours)
            if gpu_hours:
                self._study.set_user_attr("gpu_hours", gpu_hours)

    def settle(self) -> None:
        """Store that the search ended because its last points brought no improvement."""
        with self._answering():
            self._study.set_user_attr(SETTLED, self._search.strategy.stop_after)

    def _content_of(self, values: Mapping[str, Any]) -> str | None:
        """Return the key of a point's computation; None if its values cannot be combined."""
        name = repr(values)
        if name not in self._contents:
            self._contents[name] = None
            with suppress(ValueError):
                self._contents[name] = _content(self._search.config_of(values))
        return self._contents[name]


_Candidate = tuple[dict[str, Any], Mapping[str, Any]]
"""Values of a point by dotted path, and the attributes that Optuna's sampler stored with it."""


def _candidates(search: Search, trials: Sequence[FrozenTrial]) -> Iterator[_Candidate]:
    """Yield candidates for the next proposal, best first."""
    if search.strategy.sampler != "grid":
        # With a constant seed, a reopened search would repeat its first draws.
        # Frozen: seeds of the draws. A search of an earlier version would go on with other points;
        # tests/sweeps/searching/test_proposals.py fails.
        seed = search.strategy.seed * 1_000_003 + len(trials) * 1_009
        seeds = [(seed + attempt) % 2**32 for attempt in range(2 * _TRIES)]
        for attempt in seeds[:_TRIES]:
            yield _drawn(search, trials, _sampler(search, attempt))
        if not search.space.is_countable:
            for attempt in seeds[_TRIES:]:
                yield _drawn(search, trials, RandomSampler(seed=attempt))
    if search.space.is_countable:
        for values in search.space.grid():
            yield values, {}


def _drawn(search: Search, trials: Sequence[FrozenTrial], sampler: BaseSampler) -> _Candidate:
    """Draw a candidate with an Optuna sampler, on an in-memory copy of the search."""
    copy = optuna.create_study(
        directions=["minimize"] * len(search.strategy.objectives), sampler=sampler
    )
    copy.add_trials(trials)
    values = search.space.draw(_Suggest(copy.ask()))
    return values, copy.get_trials(deepcopy=False)[-1].system_attrs


@dataclass(frozen=True, slots=True)
class _Suggest:
    """Draws the value of a search parameter from an Optuna trial."""

    trial: Trial

    def __call__(self, parameter: Parameter) -> Any:
        distribution = parameter.distribution
        if isinstance(distribution, Categorical):
            return self.trial.suggest_categorical(parameter.path, distribution.choices)
        if isinstance(distribution, Integer):
            low, high, step = distribution.low, distribution.high, distribution.step
            return self.trial.suggest_int(parameter.path, low, high, step=step)
        return self.trial.suggest_float(
            parameter.path, *distribution.extremes, log=distribution.is_log
        )


def _proposal(
    search: Search,
    values: Mapping[str, Any],
    system_attrs: Mapping[str, Any],
    objectives: Sequence[float] = (),
) -> FrozenTrial:
    """Return the Optuna trial to add for a point; running, or complete if objectives are given."""
    return create_trial(
        state=TrialState.COMPLETE if objectives else TrialState.RUNNING,
        values=list(objectives) or None,
        params=dict(values),
        distributions=distributions_of(search, values),
        user_attrs={"point": dict(values)} | ({KNOWN: True} if objectives else {}),
        system_attrs=dict(system_attrs),
    )


def _sampler(search: Search, seed: int) -> BaseSampler:
    match search.strategy.sampler:
        case "random":
            return RandomSampler(seed=seed)
        case "gp":
            return GPSampler(
                seed=seed, n_startup_trials=START_UP["gp"], warn_independent_sampling=False
            )
        case "cmaes":
            return CmaEsSampler(
                seed=seed, n_startup_trials=START_UP["cmaes"], warn_independent_sampling=False
            )
        case "tpe":
            return TPESampler(
                seed=seed,
                n_startup_trials=START_UP["tpe"],
                multivariate=True,
                constant_liar=True,
            )
        case "grid":
            raise AssertionError("a grid draws nothing")
        case _:
            assert_never(search.strategy.sampler)


def _content(config: Config) -> str:
    """Return the last stage key of a configuration; equal computations have equal keys."""
    return stage_keys(with_named_teacher(config))[-1]


def _name_objectives(opened: optuna.Study, search: Search) -> None:
    """Store the names of the objectives in Optuna's study, so that dashboards show them."""
    names = list(search.strategy.objectives)
    if opened.metric_names != names:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ExperimentalWarning)
            opened.set_metric_names(names)
