"""logs: show the epochs of runs, and the full error of a failed run."""

from collections.abc import Iterator
from datetime import datetime

import click

from mixsweep.cli.request import DONE, Request, on_study
from mixsweep.cli.why import chosen_results
from sweeps.machine.terminal_text import fitted_text
from sweeps.state.failures import spell_attempts
from sweeps.state.results import RunResult


@click.command()
@on_study
@click.argument("arm", required=False)
@click.argument("seed", type=int, required=False)
def logs(request: Request, arm: str | None, seed: int | None) -> int:
    """Show every stored epoch of runs with its time, and the full error of a failed run.

    Shows all runs of STUDY, of one ARM, or one run of the ARM by its SEED. For the epochs in
    training, see `mixsweep status`.
    """
    request.require_store()
    shown = ("train/loss", *request.study.problem.headline)
    for result in chosen_results(request, arm, seed):
        run = result.run
        click.echo(fitted_text(f"{run.arm} seed {run.seed}, run {run.key}"))
        for line in (*_epochs(result, shown), *_failure(result)):
            click.echo(fitted_text(f"  {line}"))
    return DONE


def _epochs(result: RunResult, metrics: tuple[str, ...]) -> Iterator[str]:
    if not result.records:
        yield "no epoch is stored"
    for record, facts in zip(result.records, result.facts, strict=True):
        at = datetime.fromtimestamp(facts.stored_at_ms / 1000).astimezone()
        found = [f"{m} {record.metrics[m]:.4f}" for m in metrics if m in record.metrics]
        head = f"{at:%Y-%m-%d %H:%M:%S}  epoch {record.epoch + 1:<4} {facts.seconds:7.1f} s"
        yield "  ".join((head, *found))


def _failure(result: RunResult) -> Iterator[str]:
    failure = result.failure
    if failure is None or result.outcome == "complete":
        return
    yield f"{failure.kind} after {spell_attempts(failure)}: {failure.message}"
    yield from failure.trace.splitlines()
