"""Plan summary: the runs that `mixsweep run` would train and their cost, also as JSON."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from statistics import median
from typing import Any, assert_never

from mixsweep.cli.claim_power import ClaimPower, claim_powers, spell_power
from mixsweep.cli.hardware import Hardware
from mixsweep.cli.looks_cost import LooksCost, Totals, looks_cost
from mixsweep.launching.costs import (
    bytes_of_data,
    bytes_of_predictions,
    bytes_to_keep,
    most_bytes_of_a_run,
    seconds_to_train,
    used_gpus,
    work_to_train,
)
from mixup_core.problem import Config
from mixup_core.store.checkpoints import Store
from sweeps.searching.selection import foreseen_study
from sweeps.state.results import (
    RunResult,
    added_runs,
    ended_on_budget,
    read_results,
    sound_stages,
)
from sweeps.state.stages import Plan, plan_study, spare_bytes
from sweeps.study.search import Search, SearchHistory, confirming
from sweeps.study.space import Categorical, Distribution, Integer, Parameter, Real
from sweeps.study.study import Study


# Frozen: the fields of these records are the keys of `plan --json`, which scripts read by name;
# tests/mixsweep/cli/test_plan_summary.py fails.
@dataclass(frozen=True, kw_only=True, slots=True)
class ArmRuns:
    """The numbers of runs of an arm."""

    runs: int
    stored: int
    to_run: int


@dataclass(frozen=True, kw_only=True, slots=True)
class DivergedRun:
    """A run that diverged."""

    arm: str
    seed: int
    message: str


@dataclass(frozen=True, kw_only=True, slots=True)
class SearchPlan:
    """The points of a search and their runs, if it proposes all its points."""

    adaptive: bool
    """False for a grid, True if later points depend on results."""
    points: int
    points_known: int
    """Number of points that were proposed so far."""
    runs_to_ask: int
    """Runs of the points that are not proposed yet."""
    runs_to_confirm: int
    budget: Mapping[str, float]
    """Limits after which no points are proposed, by name."""
    space: tuple[Parameter, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class SeedBudget:
    """The limits after which a study starts no new seed."""

    limits: Mapping[str, float]
    ended: str | None
    """The limit that ended the study, as text; None if none did."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PlanSummary:
    """The runs that `mixsweep run` would train, and their cost.

    Numbers of a search are the highest that are possible. Values not measured yet are None.
    """

    study: str
    plugins: tuple[str, ...]
    """Plugin files that the study file names."""
    runs: int
    stored: int
    to_run: int
    added: str
    """The number of runs that came from archives, as text; empty if none did."""
    epochs_naive: int
    """Epochs of all runs, added up."""
    epochs_planned: int
    """Epochs that are neither stored nor shared with another run."""
    arms: Mapping[str, ArmRuns]
    slots: int
    """Number of runs trained in parallel."""
    seconds: float | None
    """Wall-clock seconds of training."""
    kept_bytes: int | None
    """Bytes of states that are kept for other runs."""
    prediction_bytes: int
    last_state_bytes: int
    """Most bytes of last states, from which longer runs continue."""
    memory_bytes: Mapping[str, int]
    """Bytes of each dataset, needed once per machine."""
    run_bytes: int
    """Most bytes of memory of one run, without its data; 0 if runs are small."""
    codes: Mapping[str, str]
    """Grid values that arm names show as a code, by code."""
    remarks: tuple[str, ...]
    claims: tuple[ClaimPower, ...]
    claims_decide: tuple[str, ...]
    """The power of each claim as text."""
    diverged: tuple[DivergedRun, ...]
    search: SearchPlan | None
    budget: SeedBudget | None
    looks: LooksCost | None
    gpu_hours: float | None
    cost: float | None
    free_bytes: int | None = None
    """Memory that this machine has for runs; None if runs train elsewhere."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Unproposed:
    """The runs that a search still proposes at most; each point has as many epochs as any can."""

    points: int = 0
    runs: int = 0
    """Number of runs, also of the confirmation."""
    confirming: int = 0
    """Number of these runs that are of the confirmation."""
    epochs: int = 0
    states: int = 0
    """Number of states that are kept for other runs."""
    prediction_bytes: int = 0


def plan_summary(
    study: Study, history: SearchHistory, store: Store, hardware: Hardware
) -> PlanSummary:
    """Return the runs of a study that `mixsweep run` would train, and their cost."""
    if study.search is not None and history.asks(study.search):
        study = foreseen_study(study)
    search, limits = study.search, study.budget.limits
    results = read_results(study.runs(), store)
    planned = plan_study(study, store, sound=sound_stages(results))
    stored = Counter(run.arm for run in planned.finished)
    to_run = Counter(pending.run.arm for pending in planned.pending)
    if hardware.gpus_per_run is None and used_gpus(results):
        hardware = replace(hardware, gpus_per_run=1.0)
    more = _Unproposed() if search is None else _unproposed(study, search, history)
    seconds, busy = _times(planned, results, more.epochs, hardware.slots)
    predictions = bytes_of_predictions(pending.run.config for pending in planned.pending)
    powers = claim_powers(study, results)
    return PlanSummary(
        study=study.name,
        plugins=tuple(study.plugins),
        runs=len(results) + more.runs,
        stored=len(planned.finished),
        to_run=len(planned.pending) + more.runs,
        added=added_runs(results),
        epochs_naive=sum(result.run.config.epochs for result in results) + more.epochs,
        epochs_planned=planned.epochs_planned + more.epochs,
        arms={
            arm: ArmRuns(runs=len(study.seeds_of(arm)), stored=stored[arm], to_run=to_run[arm])
            for arm in study.arms
        },
        slots=hardware.slots,
        seconds=seconds,
        kept_bytes=bytes_to_keep(planned, results, more.states),
        prediction_bytes=predictions + more.prediction_bytes,
        last_state_bytes=len(planned.pending) * spare_bytes(len(results)),
        memory_bytes=bytes_of_data(study),
        run_bytes=most_bytes_of_a_run(study),
        codes=study.codes,
        remarks=study.remarks(),
        claims=powers,
        claims_decide=tuple(spell_power(study, power) for power in powers),
        diverged=tuple(
            DivergedRun(arm=result.run.arm, seed=result.run.seed, message=result.failure.message)
            for result in results
            if result.outcome == "diverged" and result.failure is not None
        ),
        search=None if search is None else _search_plan(study, search, history, more),
        budget=SeedBudget(limits=limits, ended=ended_on_budget(study, results))
        if search is None and limits
        else None,
        looks=None if study.until is None else looks_cost(study, store, hardware),
        gpu_hours=hardware.gpu_hours(busy),
        cost=hardware.cost(busy),
    )


def _times(
    planned: Plan, results: Sequence[RunResult], more_epochs: int, slots: int
) -> tuple[float | None, float | None]:
    """Return the wall-clock seconds of training, and the seconds added over all runs."""
    seconds, work = seconds_to_train(planned, results, slots), work_to_train(planned, results)
    if seconds is None or work is None:
        return None, None
    typical = median(facts.seconds for result in results for facts in result.facts)
    most = seconds + more_epochs * typical / slots
    return most, sum(work) + (most - seconds) * slots


def _unproposed(study: Study, search: Search, history: SearchHistory) -> _Unproposed:
    asks = history.asks(search)
    points = 0
    if asks and search.strategy.sampler != "grid":
        points = search.points - len(history.points)
    corners = [search.config_of(values) for values in search.space.corners()]
    longest = max(corners, key=lambda config: config.epochs)
    runs = points * len(study.seeds)
    epochs = runs * longest.epochs
    predicted = runs * max(bytes_of_predictions([config]) for config in corners)
    confirmed: list[Config] = []
    is_open = asks or any(point.state == "open" for point in history.points)
    if is_open and study.confirmation() is None:
        confirmed = [*(study.arms[arm] for arm in study.fixed), longest]
    seeds = len(search.strategy.confirm_seeds)
    return _Unproposed(
        points=points,
        runs=runs + seeds * len(confirmed),
        confirming=seeds * len(confirmed),
        epochs=epochs + seeds * sum(config.epochs for config in confirmed),
        states=runs * max(len(search.fork_epochs(values)) for values in search.space.corners()),
        prediction_bytes=predicted + seeds * bytes_of_predictions(map(confirming, confirmed)),
    )


def _search_plan(
    study: Study, search: Search, history: SearchHistory, more: _Unproposed
) -> SearchPlan:
    known, in_study = len(history.points), len(study.points())
    return SearchPlan(
        adaptive=search.strategy.sampler != "grid",
        points=in_study + more.points,
        points_known=known,
        runs_to_ask=(in_study + more.points - known) * len(study.seeds),
        runs_to_confirm=more.confirming,
        budget=search.budget.limits,
        space=tuple(search.space.parameters),
    )


_OPTIONAL = {"search", "budget", "looks", "expected", "expected_by_sd"}
"""Keys that are left out, instead of null, if the study has no such part."""


def spell_json(summary: PlanSummary) -> str:
    """Return the JSON of `mixsweep plan --json`; its keys are the fields of the records."""
    return json.dumps(summary, indent=2, default=_json_object)


def _json_object(record: Any) -> dict[str, Any]:
    match record:
        case Mapping():
            return dict(record)
        case SeedBudget(limits=limits, ended=ended):
            return {**limits, "ended": ended}
        case Parameter(path=path, distribution=distribution):
            return {"path": path, **distribution_value(distribution)}
        case Totals(runs=runs, to_run=to_run, seconds=None):
            return {"runs": runs, "to_run": to_run, "seconds": None}
        case _:
            values = {field.name: getattr(record, field.name) for field in fields(record)}
            return {
                key: value
                for key, value in values.items()
                if value is not None or key not in _OPTIONAL
            }


def distribution_value(distribution: Distribution) -> dict[str, Any]:
    match distribution:
        case Real(low=low, high=high, is_log=is_log):
            return {"kind": "log_uniform" if is_log else "uniform", "low": low, "high": high}
        case Integer(low=low, high=high, step=step):
            return {"kind": "int", "low": low, "high": high, "step": step}
        case Categorical(choices=choices):
            return {"kind": "categorical", "choices": list(choices)}
        case _:
            assert_never(distribution)
