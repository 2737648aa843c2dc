"""ASHA over the parameter of the mixing law, in your own `Tuner`: `python examples/asha.py`.

ASHA stops the trials whose validation error is high after few epochs. This is fast, and it prefers
laws that learn fast at first: use it to look around, and `mixsweep run` to compare laws.
"""

import argparse
import tempfile

import ray
from ray import tune
from ray.tune.schedulers import ASHAScheduler

from mixsweep.tune import trainable


def main() -> None:
    """Search alpha of Beta(alpha, alpha) on the digits dataset, and print the best trial."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--samples", type=int, default=8)
    parser.add_argument("--epochs", type=int, default=9)
    given = parser.parse_args()
    # A cluster of this process alone. Leave the arguments out to join your own.
    ray.init(address="local", num_cpus=2, include_dashboard=False)
    overrides = "base.data.val_size=200", f"base.epochs={given.epochs}", "base.eval_every=1"
    tuner = tune.Tuner(
        tune.with_resources(trainable("digits", "uniform", *overrides), {"cpu": 1}),
        param_space={"mix.law.alpha": tune.loguniform(0.1, 8.0), "seed": tune.randint(0, 100)},
        tune_config=tune.TuneConfig(
            metric="val/error",
            mode="min",
            num_samples=given.samples,
            scheduler=ASHAScheduler(grace_period=1, reduction_factor=3),
        ),
        run_config=tune.RunConfig(storage_path=tempfile.mkdtemp()),
    )
    results = tuner.fit()
    best = results.get_best_result()
    print(f"best alpha  {best.config['mix.law.alpha']:.3g}")
    print(f"val/error   {best.metrics['val/error']:.4f}")
    print(results.get_dataframe()[["config/mix.law.alpha", "config/seed", "epoch", "val/error"]])
    ray.shutdown()


if __name__ == "__main__":
    main()
