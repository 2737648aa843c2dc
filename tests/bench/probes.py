"""Cost of probes: CPU time of epochs with probes, divided by that of epochs without.

    python -m tests.bench.probes [--rounds N]

One evaluation is timed together with the epochs before it, for studies with one and with two views,
with and without probes in turn. Probes run at each evaluation (`eval_every`), unless the study sets
another interval for them.
"""

import dataclasses
import time
from collections.abc import Mapping
from typing import Any

import torch

from mixup_core.config.building import parsed
from mixup_core.images.data.datasets import load
from mixup_core.images.probes.probe import Probe
from mixup_core.images.training import fit
from sweeps.reading.study_file import load_study
from tests.bench.pairs import arguments_of, spread
from tests.soak.findings import publish

SETS: Mapping[str, tuple[str, ...]] = {
    "quickstart": ("multi-view-error", "spurious-error", "true-error", "weight-norm", "el2n"),
    "over-training": ("original-error", "mixup-loss", "gradient-norm", "weight-norm"),
}
"""Probes that are measured on the arm `uniform` of each bundled study."""


def main() -> None:
    """Measure and publish the costs."""
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
    """Return the time of the probes divided by that of the epochs between two measurements."""
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
