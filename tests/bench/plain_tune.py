"""The same search written directly with Ray Tune, OptunaSearch, Repeater and MLflow's callback.

Started by `tests.bench.search`: plain_tune.py HOME POINTS SEEDS EPOCHS. Each trained epoch appends
a line to HOME/epochs.txt. A second start restores the first, as Ray's guide describes.
"""

import os
import sys
from pathlib import Path
from typing import Any

os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")

import ray
from ray import tune
from ray.air.integrations.mlflow import MLflowLoggerCallback
from ray.tune.search import Repeater
from ray.tune.search.optuna import OptunaSearch
from ray.tune.search.repeater import TRIAL_INDEX


def train(parameters: dict[str, Any]) -> None:
    """Train one seed of one point and report its last validation error."""
    from mixup_core.images.choices.models import Mlp
    from mixup_core.images.config import TrainConfig
    from mixup_core.images.data.data_config import DataConfig
    from mixup_core.images.data.datasets import load
    from mixup_core.images.mix_config import MixConfig
    from mixup_core.images.training import fit
    from mixup_core.laws import Beta

    config = TrainConfig(
        data=DataConfig(name="digits", val_size=300, test=False),
        model=Mlp(),
        mix=MixConfig(law=Beta(alpha=parameters["alpha"]), switch_epoch=parameters["switch_epoch"]),
        epochs=parameters["epochs"],
        batch_size=64,
        eval_every=parameters["epochs"],
        seed=parameters[TRIAL_INDEX],
    )
    for record in fit(config, load(config.data)):
        with Path(parameters["log"]).open("a") as log:
            log.write(f"{record.epoch}\n")
    tune.report({"error": record.metrics["val/error"]})


def main(home: Path, points: int, seeds: int, epochs: int) -> None:
    """Run the search, or restore it after the driver was killed."""
    ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    left = home / "results" / "plain"
    if left.exists() and tune.Tuner.can_restore(str(left)):
        tuner = tune.Tuner.restore(
            str(left), trainable=train, resume_unfinished=True, restart_errored=True
        )
    else:
        space = {
            "alpha": tune.loguniform(0.1, 32.0),
            "switch_epoch": tune.randint(0, epochs + 1),
            "epochs": epochs,
            "log": str(home / "epochs.txt"),
        }
        search = OptunaSearch(metric="error", mode="min", seed=0)
        tuner = tune.Tuner(
            train,
            param_space=space,
            tune_config=tune.TuneConfig(
                metric="error",
                mode="min",
                search_alg=Repeater(search, repeat=seeds),
                num_samples=points * seeds,
                max_concurrent_trials=1,
            ),
            run_config=tune.RunConfig(
                name="plain",
                storage_path=str(home / "results"),
                verbose=0,
                callbacks=[
                    MLflowLoggerCallback(
                        tracking_uri=f"sqlite:///{home}/plain.db", experiment_name="plain"
                    )
                ],
            ),
        )
    results = tuner.fit()
    done = sum(1 for result in results if result.metrics and "error" in result.metrics)
    sys.stdout.write(f"trials={len(results)} with_result={done}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:]))
