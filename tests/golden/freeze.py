"""The frozen losses: three laws, three epochs. `make golden` writes them anew."""

import json
from pathlib import Path

import torch

from mixup_core.images.config import DataConfig, NarrowResNet, TrainConfig
from mixup_core.images.data.datasets import load
from mixup_core.images.training import fit
from mixup_core.tree import with_values

FILE = Path(__file__).parent / "losses.json"
LAWS = {"erm": "erm", "midpoint": "midpoint", "uniform": {"beta": 1.0}}


def losses() -> dict[str, list[dict[str, float]]]:
    """Return the metrics of each epoch of a small run on digits, law by law."""
    torch.set_num_threads(1)
    config = TrainConfig(
        data=DataConfig(name="digits", views="concat", num_train=500, val_size=100),
        model=NarrowResNet(),
        epochs=3,
        batch_size=64,
    )
    data = load(config.data)
    return {
        name: [dict(record.metrics) for record in fit(with_values(config, {"mix.law": law}), data)]
        for name, law in LAWS.items()
    }


if __name__ == "__main__":
    FILE.write_text(json.dumps(losses(), indent=1) + "\n")
