"""Networks: a trained network as a folder that MLflow loads, without code of ours."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


def export_network(network: Any, example: Any, folder: Path) -> Any:
    """Write a network as a traced graph with its signature, and return MLflow's description of it.

    Loading it runs no code of ours and unpickles nothing (format `pt2`).

    Args:
        network: A torch module in evaluation mode.
        example: What it takes, a tensor of at least two, so that the batch size stays free.
        folder: Made here.
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
    """Keep what MLflow and torch say of each export out of the console."""
    loggers = [logging.getLogger(name) for name in ("mlflow", "torch.export", "torch.fx")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
