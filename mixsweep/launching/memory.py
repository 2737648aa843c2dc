"""Memory: placements of runs that fit into the memory of this machine and of its GPUs."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import click

from sweeps.machine.resources import sign_of_gpus
from sweeps.running.placement import Placement
from sweeps.study.study import Study

if TYPE_CHECKING:
    from sweeps.searching.sources import RunSource


def with_memory(placement: Placement, study: Study, runs: int) -> Placement:
    """Return a placement (CPUs and GPUs per run) with which parallel runs fit into memory.

    On CPUs it also reserves the memory of a run; for `--gpus-per-run auto`, it sets the part of a
    GPU. It is unchanged if all runs fit anyway, or if their memory is unknown. A warning is printed
    if a run needs more memory than is free.
    """
    from sweeps.running.run_memory import RunMemory

    on_gpu = placement.gpus_per_run != 0 and placement.device is None and sign_of_gpus()
    if on_gpu and not placement.is_auto:
        return placement  # the user has set the GPU share, or a run has a whole GPU
    at_once = min(placement.cpus_here(runs), max(1, runs))
    memory = RunMemory.of(study, at_once, "auto" if on_gpu else "cpu")
    if memory is None:
        return placement
    if warning := memory.warning(study):
        click.echo(warning, err=True)
    return memory.placed(placement)


def require_memory(study: Study, placement: Placement) -> None:
    """Check that this process can train a run on the CPU; print a warning if free memory is short.

    Raises:
        PlacementError: If a training step ran out of memory. It is tried in a child process, so
            that this process survives.
    """
    from sweeps.running.run_memory import RunMemory

    if placement.gpus_per_run != 0 and placement.device is None and sign_of_gpus():
        return  # a lack of GPU memory ends the run, not this process
    memory = RunMemory.of(study, 1, "cpu")
    if memory is None:
        return
    memory.placed(placement)
    if warning := memory.warning(study):
        click.echo(warning, err=True)


def with_room(
    source: "RunSource", again: "Callable[[], RunSource]", placement: Placement
) -> "Iterator[tuple[RunSource, Placement]]":
    """Yield the runs that a launch must train, with the CPUs and GPUs of each run.

    The caller trains the runs after each `yield`. If some of them lacked GPU memory, the runs that
    are still missing are yielded next, with a larger part of a GPU for each run. This ends when no
    run lacked memory, when a stop was requested, or when the part cannot grow, because it is a
    whole GPU or was set by the user.
    """
    while True:
        yield source, placement
        had = source.gpus_per_run
        goes_on = source.lacked_memory and not source.is_stopped
        roomier = placement.with_more_room(had) if goes_on else None
        if roomier is None:
            return
        click.echo(
            f"runs lacked memory with {had:g} of a GPU each; they continue with "
            f"{roomier.gpus_per_run:g} of a GPU each",
            err=True,
        )
        source, placement = again(), roomier
