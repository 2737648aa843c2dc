"""Networks: upload a trained network to MLflow in a form that loads without code of mixsweep."""

import logging
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sweeps.tracking.experiment import Entry, Experiment


def upload_network(experiment: Experiment, entry: Entry, network: Any, example: Any) -> str:
    """Upload a network as a traced graph, as the model of a run; return its address in MLflow.

    Loading the network runs no code of mixsweep and unpickles nothing (format `pt2`).
    """
    from mlflow.entities import LoggedModelOutput

    client = experiment.client
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "model"
        described = export_network(network, example, folder)
        logged = client.create_logged_model(
            experiment.experiment_id, name="model", source_run_id=entry.run_id
        )
        described.model_id, described.run_id = logged.model_id, entry.run_id
        described.save(str(folder / "MLmodel"))
        client.log_model_artifacts(logged.model_id, str(folder))
    client.finalize_logged_model(logged.model_id, "READY")
    client.log_outputs(entry.run_id, [LoggedModelOutput(logged.model_id, step=0)])
    return f"models:/{logged.model_id}"


def export_network(network: Any, example: Any, folder: Path) -> Any:
    """Write a network to a new folder as a traced graph; return its MLflow description (`Model`).

    Arguments as for `upload_network`.
    """
    import mlflow.pytorch
    import torch
    from mlflow.models import Model, infer_signature

    with torch.no_grad():
        signature = infer_signature(example.numpy(), network(example).numpy())
    described = Model()
    with _quiet():
        mlflow.pytorch.save_model(
            network,
            str(folder),
            mlflow_model=described,
            signature=signature,
            input_example=example.numpy(),
            pip_requirements=[f"torch=={torch.__version__.partition('+')[0]}"],
            serialization_format="pt2",
        )
    return described


@contextmanager
def _quiet() -> Iterator[None]:
    """Hide the messages that MLflow and torch print at each export."""
    loggers = [logging.getLogger(name) for name in ("mlflow", "torch.export", "torch.fx")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
