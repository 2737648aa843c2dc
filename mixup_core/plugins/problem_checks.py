"""problem_checks: the checks that a problem of a plugin must pass."""

from contextlib import suppress
from pathlib import Path
from typing import Any

from mixup_core.config.building import built
from mixup_core.config.possible_values import spellings
from mixup_core.config.spelling_errors import SpellingError
from mixup_core.plugins.suite import BrokenError, Checks, Trial, first_checks, later_checks
from mixup_core.problem import Problem
from mixup_core.rules import RuleError


def checks_of_problem(problem: Problem) -> Checks:
    """Yield the checks of a problem, of its smallest configuration."""
    config = smallest(problem)
    if problem.data is not None:
        needs = problem.data()
        config = needs.prepare(config, Path.cwd())
        if missing := needs.missing(config):
            yield f"not checked: {missing}", lambda: None
            return
    trial = Trial(
        config=config,
        start=lambda config: problem.start(config, None, "cpu"),
        of=config,
        holding=lambda config: config,
        is_left_out=lambda path: path in {*problem.keying.never, *problem.keying.stands_for},
        metrics=problem.metrics,
    )
    yield from first_checks(trial)
    yield from later_checks(trial)
    yield "it records the metrics that it declares", lambda: _declared(problem, trial)


def smallest(problem: Problem) -> Any:
    """Return a valid configuration of a problem: of 3 epochs, else 2, else as many as by default.

    Raises:
        BrokenError: If none of the configurations that are tried is valid.
    """
    for epochs in ({"epochs": 3}, {"epochs": 2}, {}):
        for given in spellings(problem.config):
            with suppress(RuleError, SpellingError, KeyError):
                config: Any = built(problem.config, {**given, **epochs})
                if not any(True for _ in problem.reading.feasibility(config)):
                    return config
    raise BrokenError(
        f"no configuration of {problem.config.__name__} is valid; give the class a class variable "
        "`example` with valid values of its required fields"
    )


def _declared(problem: Problem, trial: Trial) -> str:
    records = [record for record, _ in trial.trained()]
    if len(records) != trial.config.epochs:
        raise BrokenError(
            f"a run of {trial.config.epochs} epochs yielded {len(records)} records; yield one per "
            "epoch"
        )
    names = {name for record in records for name in record.metrics}
    heads = tuple(f"{series.head}/" for series in problem.presentation.series)
    unknown = [n for n in sorted(names - problem.metrics.keys()) if not n.startswith(heads)]
    if unknown:
        raise BrokenError(
            f"records metrics that its `metrics` does not declare: {', '.join(unknown)}"
        )
    if names.isdisjoint(problem.headline):
        raise BrokenError(f"none of the headline metrics {', '.join(problem.headline)} is recorded")
    return f" ({', '.join(sorted(names))})"
