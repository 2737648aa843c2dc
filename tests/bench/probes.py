"""What probes cost: processor time of epochs with them over the same epochs without.

    python -m tests.bench.probes [--rounds N]

One evaluation is measured, with all epochs up to it, for studies of one and of two views, with and
without their probes in turn. A probe is due when a run is evaluated (`eval_every`), unless the
study gives it a cadence of its own.
"""

import dataclasses
import time
from collections.abc import Mapping
from typing import Any

import torch

from mixup_core.images.data.datasets import load
from mixup_core.images.probes.probe import Probe
from mixup_core.images.training import fit
from mixup_core.tree.building import parsed
from sweeps.reading.study_file import load_study
from tests.bench.pairs import arguments_of, spread
from tests.soak.findings import publish

SETS: Mapping[str, tuple[str, ...]] = {
    "quickstart": ("multi-view-error", "spurious-error", "true-error", "weight-norm", "el2n"),
    "over-training": ("original-error", "mixup-loss", "gradient-norm", "weight-norm"),
}
"""Bundled study to the probes measured on its arm `uniform`, those of its sources."""


def main() -> None:
    """Measure and publish."""
    parser = arguments_of(__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--epochs", type=int, help="of a measurement; default: the study's own")
    options = parser.parse_args()
    rounds = options.rounds
    torch.set_num_threads(1)
    figures: dict[str, Any] = {"rounds": rounds}
    for study, tags in SETS.items():
        config: Any = load_study(study).arms["uniform"]
        epochs = options.epochs or config.eval_every
        config = dataclasses.replace(config, probes=(), epochs=epochs, eval_every=epochs)
        probes = tuple(parsed(Probe, tag) for tag in tags)
        ratios = [_ratio(config, probes) for _ in range(rounds)]
        figures[study] = {
            "probes": ", ".join(tags),
            "epochs_per_measurement": config.eval_every,
            "cost_over_epochs": spread(ratios),
        }
    publish(
        "probes",
        "processor time of probes over that of the epochs",
        figures,
        kind="bench",
        out=options.out,
    )


def _ratio(config: Any, probes: tuple[Probe, ...]) -> float:
    """Return the cost of the probes over that of the epochs between two measurements."""
    without = _seconds(config)
    return (_seconds(dataclasses.replace(config, probes=probes)) - without) / without


def _seconds(config: Any) -> float:
    data = load(config.data)
    records = fit(config, data)
    started = time.process_time()
    for _ in records:
        pass
    return time.process_time() - started


if __name__ == "__main__":
    main()
