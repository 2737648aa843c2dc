"""The same study written directly with Ray Tune and MLflow's callback, for comparison.

Started by `tests.bench.overhead`: plain_study LOG SLOTS STUDY [PATH=VALUE ...]. Each run has its
own actor and appends a line to LOG: the Unix times at which its training began and ended, and the
seconds in between.
"""

import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")

import ray
from ray import tune
from ray.air.integrations.mlflow import MLflowLoggerCallback

from sweeps.reading.study_file import load_study


def train(parameters: dict[str, Any]) -> None:
    """Train one run and report every epoch to Tune."""
    import torch

    from mixup_core.images.data.datasets import load
    from mixup_core.images.training import fit

    torch.set_num_threads(1)
    config = parameters["config"]
    data = load(config.data)
    begun, seconds = time.time(), 0.0
    started = time.monotonic()
    for record in fit(config, data):
        seconds += time.monotonic() - started
        tune.report(dict(record.metrics))
        started = time.monotonic()
    with Path(parameters["log"]).open("a") as log:
        log.write(f"{begun} {time.time()} {seconds}\n")


def main(log: str, slots: int, study: str, *overrides: str) -> None:
    """Train every run of a study."""
    runs = load_study(study, overrides).runs()
    ray.init(num_cpus=slots, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    with tempfile.TemporaryDirectory() as results:
        tune.Tuner(
            tune.with_resources(train, {"cpu": 1}),
            param_space={"config": tune.grid_search([run.config for run in runs]), "log": log},
            tune_config=tune.TuneConfig(reuse_actors=False),
            run_config=tune.RunConfig(
                name="plain",
                storage_path=results,
                verbose=0,
                callbacks=[
                    MLflowLoggerCallback(
                        tracking_uri=f"sqlite:///{results}/mlflow.db", experiment_name="plain"
                    )
                ],
            ),
        ).fit()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), *sys.argv[3:])
