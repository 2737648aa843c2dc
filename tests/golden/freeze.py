"""Frozen losses: up to three epochs of each arm of `arms.yaml`. `make golden` writes them."""

import json
import tempfile
from pathlib import Path

import torch

from tests.golden.arms import ELSEWHERE, put_arms
from tests.golden.project import fit, load, load_study

FILE = Path(__file__).with_name("losses.json")


def losses() -> dict[str, list[dict[str, float]]]:
    """Return the metrics of each epoch by arm, without the arm whose images must be downloaded."""
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        study = load_study(str(put_arms(Path(folder))))
        return {
            run.arm: [dict(record.metrics) for record in fit(run.config, load(run.config.data))]
            for run in study.runs()
            if run.arm != ELSEWHERE
        }


if __name__ == "__main__":
    FILE.write_text(json.dumps(losses(), indent=1) + "\n")
