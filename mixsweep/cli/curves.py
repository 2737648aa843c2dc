"""Curves: write the metrics of runs, epoch by epoch, for TensorBoard and Weights & Biases.

The step of a value is the number of epochs trained, as in MLflow and in the file that `mixsweep
export` writes.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

from sweeps.state.results import RunResult
from sweeps.study.study import Study

Writer = Callable[[Study, Sequence[RunResult], Path], None]


def to_tensorboard(study: Study, results: Sequence[RunResult], folder: Path) -> None:
    """Write the metrics of every epoch as TensorBoard events; each run to `folder/ARM/seed SEED`.

    Each event has the time at which its epoch ended.

    Raises:
        ImportError: If TensorBoard is not installed.
    """
    del study
    from torch.utils.tensorboard import SummaryWriter

    for result in results:
        place = folder / result.run.arm.replace("/", "-") / f"seed {result.run.seed}"
        with SummaryWriter(str(place)) as writer:
            for record, facts in zip(result.records, result.facts, strict=True):
                for name, value in record.metrics.items():
                    at = facts.stored_at_ms / 1000
                    writer.add_scalar(name, value, record.epoch + 1, walltime=at)


def to_wandb(study: Study, results: Sequence[RunResult], folder: Path) -> None:
    """Write the metrics of each run, epoch by epoch, as an offline run of Weights & Biases.

    The runs are written to `folder/wandb/offline-run-*`; `wandb sync` uploads them. The project is
    the study, the group is the arm, and the id is the key of the run.

    Raises:
        ImportError: If wandb is not installed.
    """
    import wandb

    from mixup_core.config.written_forms import flatten

    for result in results:
        run = wandb.init(
            mode="offline",
            dir=str(folder),
            project=study.name,
            group=result.run.arm,
            name=f"{result.run.arm} seed {result.run.seed}",
            id=result.run.key,
            config={path: str(value) for path, value in flatten(result.run.config).items()},
            settings=wandb.Settings(silent=True, console="off", x_disable_stats=True),
        )
        for record, facts in zip(result.records, result.facts, strict=True):
            at = facts.stored_at_ms / 1000
            run.log({**record.metrics, "_timestamp": at}, step=record.epoch + 1)
        run.finish()


CURVES: dict[str, Writer] = {"tensorboard": to_tensorboard, "wandb": to_wandb}
"""Functions that write the files, by name of the program that reads them. Each program is an
optional dependency (extra) of mixsweep."""
