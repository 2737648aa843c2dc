"""Networks: export a trained network to a folder that MLflow can load without code of mixsweep."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


def export_network(network: Any, example: Any, folder: Path) -> Any:
    """Write a network to a folder as a traced graph; return its MLflow description (`Model`).

    Loading the network runs no code of mixsweep and unpickles nothing (format `pt2`).

    Args:
        network: A torch module in evaluation mode.
        example: An input batch of at least two images, so that the batch size stays variable.
        folder: Folder for the files; it is created.
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
