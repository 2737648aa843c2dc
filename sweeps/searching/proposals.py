"""Proposals: the points of a search in Optuna's storage. The only module that imports Optuna.

A point is drawn on a copy of the search in memory and then added to the storage as a whole, with
its values: no kill can leave a point without them, so every open point of a dead driver can be
adopted, and proposals follow from the points alone, with or without kills between them.
"""

import os
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar, assert_never

import optuna
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.exceptions import ExperimentalWarning, OptunaError
from optuna.samplers import BaseSampler, CmaEsSampler, GPSampler, RandomSampler, TPESampler
from optuna.storages import BaseStorage, JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import FrozenTrial, Trial, TrialState, create_trial
from sqlalchemy.exc import SQLAlchemyError

from mixup_core.keys import stage_keys
from mixup_core.problem import Config, with_named_teacher
from mixup_core.store.files import UnreadableError, make_private_folder, read_regular
from sweeps.home import masked
from sweeps.search import Point, PointState, Search, SearchError, SearchHistory
from sweeps.space import MAX_GRID, Categorical, Integer, Parameter
from sweeps.sqlite_files import alone, database_file
from sweeps.study import Study

_TRIES = 50
"""Draws of a sampler that may repeat known points before other ways of finding one take over."""

_PATIENCE = 60
"""Seconds that a write to a database file waits for those who read it, dashboards for example."""

_STATES: Mapping[TrialState, PointState] = {
    TrialState.RUNNING: "open",
    TrialState.WAITING: "open",
    TrialState.COMPLETE: "complete",
    TrialState.PRUNED: "pruned",
    TrialState.FAIL: "failed",
}

optuna.logging.set_verbosity(optuna.logging.ERROR)


class Proposals:
    """The points of one search. One writer at a time: the driver that holds the study's lease."""

    def __init__(self, study: Study, url: str) -> None:
        """Open the search, created with its storage if need be.

        Args:
            study: A study with a search.
            url: Database URL, or the path of a journal file.

        Raises:
            SearchError: If the sampler needs a package that is not installed, or the storage cannot
                be opened. Every method raises it if the storage does not answer.
        """
        assert study.search is not None
        self._search = study.search
        self._contents: dict[str, str] = {}
        self._taken = {_content(config) for config in study.arms.values()}
        if study.search.sampler == "cmaes" and find_spec("cmaes") is None:
            raise SearchError("sampler cmaes needs the package cmaes: pip install cmaes")
        self._answering = _Answering(url)
        with self._answering, alone(database_file(url)):
            self._storage = _storage(url)
            self._study = optuna.create_study(
                study_name=_name(study),
                storage=self._storage,
                directions=["minimize"] * len(study.search.objectives),
                load_if_exists=True,
            )
            _name_objectives(self._study, study.search)

    def history(self) -> SearchHistory:
        """Return everything the storage holds of the search."""
        with self._answering:
            return _history(self._study, self._search)

    def points(self) -> tuple[Point, ...]:
        """Return all points by number."""
        with self._answering:
            return _points(self._study)

    def ask(self) -> Point | None:
        """Propose a point and return it once it is stored; None if the space has no more.

        The proposal computes something that no arm and no earlier point does: at switch epoch 0,
        for example, every alpha is ERM. It depends on the search and the points so far alone, not
        on when or how often the storage was opened.

        Raises:
            SearchError: If a value of the space cannot stand beside another.
        """
        return next(iter(self._propose(1)), None)

    def ask_rest(self) -> tuple[Point, ...]:
        """Propose every point that a grid has left and return them, as `ask` does one by one."""
        return self._propose(MAX_GRID)

    def _propose(self, count: int) -> tuple[Point, ...]:
        with self._answering:
            trials = _own_trials(self._study)
            begun = len(self._study.get_trials(deepcopy=False))
        taken = self._taken | {self._content_of(trial.user_attrs["point"]) for trial in trials}
        points: list[Point] = []
        for values, system_attrs in _candidates(self._search, trials):
            content = self._content_of(values)
            if content in taken:
                continue
            with self._answering:
                self._study.add_trial(_proposal(self._search, values, system_attrs))
            taken.add(content)
            points.append(Point(number=begun + len(points), values=values, state="open"))
            if len(points) == count:
                break
        with self._answering:
            if self._study.user_attrs.get(_EXHAUSTED, False) == bool(points):
                self._study.set_user_attr(_EXHAUSTED, not points)
        return tuple(points)

    def elsewhere(self) -> tuple[Mapping[str, Any], ...]:
        """Return the values of all points of the other searches in the storage."""
        with self._answering:
            names = optuna.get_all_study_names(self._storage)
            others = [
                optuna.load_study(study_name=name, storage=self._storage)
                for name in names
                if name != self._study.study_name
            ]
            return tuple(t.user_attrs["point"] for other in others for t in _own_trials(other))

    def tell_known(self, known: Iterable[tuple[Mapping[str, Any], tuple[float, ...]]]) -> int:
        """Store points whose results are known already, and return how many are new.

        Args:
            known: Values of a point, and the mean over the seeds of each objective. Those that an
                arm or a point computes are left aside, and all once there are as many points as the
                search is to try, or it has ended.
        """
        with self._answering:
            trials = _own_trials(self._study)
            if _end(self._study, self._search, len(trials)) is not None:
                return 0
        taken = self._taken | {self._content_of(trial.user_attrs["point"]) for trial in trials}
        room = self._search.points - len(trials)
        told = 0
        for values, objectives in known:
            content = self._content_of(values)
            if told >= room:
                break
            if content not in taken:
                with self._answering:
                    self._study.add_trial(_proposal(self._search, values, {}, objectives))
                taken.add(content)
                told += 1
        return told

    def tell(self, point: Point) -> None:
        """Store how a point was closed: its state, and its objectives or the seeds it was given."""
        with self._answering:
            if point.num_seeds is not None:
                given = self._study.user_attrs.get(_NUM_SEEDS, {})
                self._study.set_user_attr(_NUM_SEEDS, {**given, str(point.number): point.num_seeds})
            if point.state == "complete":
                self._study.tell(point.number, list(point.objectives), skip_if_finished=True)
            else:
                ended = TrialState.PRUNED if point.state == "pruned" else TrialState.FAIL
                self._study.tell(point.number, state=ended, skip_if_finished=True)

    @property
    def hours(self) -> float:
        """Wall hours that drivers have spent on the search, as stored by `spend`."""
        with self._answering:
            return float(self._study.user_attrs.get("hours", 0.0))

    @property
    def gpu_hours(self) -> float:
        """GPU-hours that drivers have spent on the search, as stored by `spend`."""
        with self._answering:
            return float(self._study.user_attrs.get("gpu_hours", 0.0))

    def spend(self, hours: float, gpu_hours: float) -> None:
        """Store the wall hours and GPU-hours spent so far, those of earlier drivers included."""
        with self._answering:
            self._study.set_user_attr("hours", hours)
            if gpu_hours:
                self._study.set_user_attr("gpu_hours", gpu_hours)

    def settle(self) -> None:
        """Store that the last points gained nothing, by the rule of the search."""
        with self._answering:
            self._study.set_user_attr(_SETTLED, self._search.stop_after)

    def _content_of(self, values: Mapping[str, Any]) -> str:
        name = repr(values)
        if name not in self._contents:
            try:
                self._contents[name] = _content(self._search.config_of(values))
            except ValueError as error:
                raise SearchError(
                    f"the space holds values that exclude each other: {error}"
                ) from error
        return self._contents[name]


@dataclass(frozen=True, slots=True)
class _Answering:
    """A context in which everything that a storage raises becomes one line for the user."""

    url: str

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if not isinstance(error, _STORAGE_ERRORS):
            return
        cause: BaseException = error
        while cause.__cause__ is not None:
            cause = cause.__cause__
        reason = (str(cause).splitlines() or [type(cause).__name__])[0]
        raise SearchError(f"storage of the search, {masked(self.url)}: {reason}") from error


_STORAGE_ERRORS = (OptunaError, SQLAlchemyError, ImportError, OSError, RuntimeError, ValueError)

_NUM_SEEDS = "num_seeds"
"""Attribute of Optuna's study: number of a point that was closed early to its seeds."""

_EXHAUSTED = "exhausted"
"""Attribute of Optuna's study: whether the space had no more when a point was last asked for."""


_KNOWN = "known"
"""Attribute of a trial: its results were in the store before the search had the point."""

_SETTLED = "settled"
"""Attribute of Optuna's study: number of points in a row that had gained nothing when it ended."""


_Told = TypeVar("_Told")
"""What is asked of a storage."""


def read_history(study: Study, url: str) -> SearchHistory:
    """Return what a storage holds of a study's search, unweighed; nothing is created."""
    return _read(study, url, _history) or SearchHistory()


def read_importances(study: Study, url: str) -> dict[str, float]:
    """Return `SearchHistory.importances` of a study's search, which takes seconds to find."""
    return _read(study, url, _importances) or {}


def _read(study: Study, url: str, what: Callable[[optuna.Study, Search], _Told]) -> _Told | None:
    """Return something of what a storage holds of a search; None if it does not know it."""
    assert study.search is not None
    file = database_file(url) if "://" in url else Path(url)
    if file is not None and not os.path.lexists(file):
        return None
    with _Answering(url), alone(database_file(url)):
        storage = _storage(url)
        if _name(study) not in optuna.get_all_study_names(storage):
            return None
        return what(optuna.load_study(study_name=_name(study), storage=storage), study.search)


_Candidate = tuple[dict[str, Any], Mapping[str, Any]]
"""Values of a point, and what its sampler wants to find beside them when it draws the next."""


def _candidates(search: Search, trials: Sequence[FrozenTrial]) -> Iterator[_Candidate]:
    """Yield what may be proposed next, the best first; to the last point of a countable space."""
    if search.sampler != "grid":
        # TRAP 17: a reopened search with the seed it began with would repeat its first draws.
        seed = search.seed * 1_000_003 + len(trials) * 1_009
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
    """Return a draw on a copy of the search in memory."""
    copy = optuna.create_study(directions=["minimize"] * len(search.objectives), sampler=sampler)
    copy.add_trials(trials)
    values = search.space.draw(_Suggest(copy.ask()))
    return values, copy.get_trials(deepcopy=False)[-1].system_attrs


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


def _proposal(
    search: Search,
    values: Mapping[str, Any],
    system_attrs: Mapping[str, Any],
    objectives: Sequence[float] = (),
) -> FrozenTrial:
    """Return a trial to be added: open, or complete if its objectives are known."""
    distributions = {p.path: _distribution(p) for p in search.space.parameters if p.path in values}
    return create_trial(
        state=TrialState.COMPLETE if objectives else TrialState.RUNNING,
        values=list(objectives) or None,
        params=dict(values),
        distributions=distributions,
        user_attrs={"point": dict(values)} | ({_KNOWN: True} if objectives else {}),
        system_attrs=dict(system_attrs),
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
        case "random":
            return RandomSampler(seed=seed)
        case "gp":
            return GPSampler(seed=seed, warn_independent_sampling=False)
        case "cmaes":
            return CmaEsSampler(seed=seed, warn_independent_sampling=False)
        case "tpe":
            return TPESampler(seed=seed, multivariate=True, constant_liar=True)
        case "grid":
            raise AssertionError("a grid draws nothing")
        case _:
            assert_never(search.sampler)


def _content(config: Config) -> str:
    """Return what a configuration computes: equal schedules are equal however they are spelled."""
    return stage_keys(with_named_teacher(config))[-1]


def _name(study: Study) -> str:
    assert study.search is not None
    return f"{study.name}-{study.search.fingerprint(study.seeds)}"


def _name_objectives(opened: optuna.Study, search: Search) -> None:
    """Let dashboards call the objectives by their names."""
    names = list(search.objectives)
    if opened.metric_names != names:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ExperimentalWarning)
            opened.set_metric_names(names)


def _storage(url: str) -> BaseStorage:
    if url.removeprefix("sqlite://") in {"", "/", "/:memory:"}:
        raise ValueError("a database in memory forgets the search")
    if "://" in url:
        waits = {"connect_args": {"timeout": _PATIENCE}} if database_file(url) else {}
        return RDBStorage(url, engine_kwargs=waits)
    file = Path(url)
    _require_journal(file)
    make_private_folder(file.resolve().parent)
    try:
        return JournalStorage(JournalFileBackend(url))
    except (AssertionError, AttributeError, LookupError, TypeError) as error:
        raise ValueError(
            f"no journal of Optuna, or damaged ({type(error).__name__}: {error})"
        ) from None


def _require_journal(file: Path) -> None:
    """Check what a file, if it is there, holds of a journal: opening a FIFO would wait for ever.

    Raises:
        ValueError: If it is no journal, or its last line is cut off: Optuna would pass over that
            line, and then write the next one behind it.
    """
    for tries_left in reversed(range(_LOOKS)):
        try:
            content = read_regular(file)
        except FileNotFoundError:
            return
        except UnreadableError as error:
            raise ValueError(f"it {error}") from None
        if content[: len(_JOURNAL)] not in {b"", _JOURNAL}:
            raise ValueError("no journal of Optuna; a database is named by its URL")
        if not content or content.endswith(b"\n"):
            return
        if tries_left:
            time.sleep(_LOOK_AGAIN)
    raise ValueError("its last line is cut off: remove that line, and the search goes on before it")


_JOURNAL = b'{"op_code"'
"""The first bytes of every journal."""
_LOOKS, _LOOK_AGAIN = 5, 0.1
"""Times that a journal without a last line is looked at, and seconds between: it may be written."""


def _points(opened: optuna.Study) -> tuple[Point, ...]:
    num_seeds = opened.user_attrs.get(_NUM_SEEDS, {})
    return tuple(
        Point(
            number=trial.number,
            values=trial.user_attrs["point"],
            state=_STATES[trial.state],
            num_seeds=num_seeds.get(str(trial.number)) if trial.state.is_finished() else None,
            objectives=tuple(trial.values) if trial.state == TrialState.COMPLETE else (),
            is_known=trial.user_attrs.get(_KNOWN, False),
        )
        for trial in _own_trials(opened)
    )


def _own_trials(opened: optuna.Study) -> list[FrozenTrial]:
    """Return the trials that this program added; what others enqueue is no point of a search."""
    return [trial for trial in opened.get_trials(deepcopy=False) if "point" in trial.user_attrs]


def _history(opened: optuna.Study, search: Search) -> SearchHistory:
    points = _points(opened)
    return SearchHistory(
        points=points,
        ended=None if len(points) >= search.points else _end(opened, search, len(points)),
    )


def _end(opened: optuna.Study, search: Search, num_points: int) -> str | None:
    """Return why no point follows; a budget counts as it is today, not as it was back then."""
    attrs = opened.user_attrs
    if attrs.get(_EXHAUSTED):
        return f"ended with its space, which has no more than {num_points} different points"
    if search.stop_after is not None and attrs.get(_SETTLED) == search.stop_after:
        return (
            f"ended after {num_points} points: the last {search.stop_after} gained less than the "
            "noise of the seeds"
        )
    reason = search.budget.exceeded(attrs.get("hours", 0.0), attrs.get("gpu_hours", 0.0))
    return None if reason is None else f"{reason}, after {num_points} points"


def _importances(opened: optuna.Study, search: Search) -> dict[str, float]:
    complete = [trial for trial in _own_trials(opened) if trial.state == TrialState.COMPLETE]
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
