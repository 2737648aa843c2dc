"""Sources: the object that gives out the runs of a launch, by the kind of study."""

from functools import partial
from typing import TYPE_CHECKING

import click

from mixsweep.request import Request
from sweeps.state.results import read_results
from sweeps.state.stages import Plan
from sweeps.state.statements import look
from sweeps.study.study import Study

if TYPE_CHECKING:
    from sweeps.searching.sources import RunSource


def source_of(request: Request, plan: Plan, keep_final_states: bool) -> "RunSource":
    """Return the source of the runs that a launch trains."""
    from sweeps.searching.search_source import SearchSource
    from sweeps.searching.sources import BudgetedSource, LooksSource, RunSource

    if request.study.until is not None:
        reach = partial(_reached_by_look, request)
        return LooksSource(request.study, request.store, reach, keep_final_states=keep_final_states)
    if request.study.search is None:
        if request.study.budget.limits:
            return BudgetedSource(request.study, plan, request.store)
        return RunSource(request.study, plan.pending)
    from sweeps.searching.proposals import Proposals

    owner = request.search_owner(is_writing=True)
    proposals = Proposals(request.study, request.home.optuna_url, owner)
    source = SearchSource(request.study, request.store, proposals)
    if source.num_known:
        points = "1 point is" if source.num_known == 1 else f"{source.num_known} points are"
        click.echo(f"{request.study.name}: {points} known from stored results", err=True)
    return source


def _reached_by_look(request: Request) -> Study:
    """Take a planned look; return the study with the seeds that its arms need so far."""
    from reports.numbers.looks import reached_study

    study = reached_study(request.study, request.store)
    look(study, request.store, read_results(study.runs(), request.store), is_report=False)
    return study
