"""Frozen losses: up to three epochs of each arm of `arms.yaml`. `make golden` writes them.

An arm keeps its frozen values unless they have moved, because the last bits differ from processor
to processor.
"""

import json
import math
import tempfile
from pathlib import Path

import torch

from tests.golden.arms import ELSEWHERE, put_arms
from tests.golden.project import fit, load, load_study

FILE = Path(__file__).with_name("losses.json")

TOLERANCES = {"bfloat16": 2e-2}
"""Relative tolerance by arm; bfloat16 keeps 8 bits, and processors round it in different places."""
TOLERANCE = 1e-3

Losses = dict[str, list[dict[str, float]]]
"""Metrics of each epoch, by arm."""


def losses() -> Losses:
    """Return the metrics of each epoch by arm, without the arm whose images must be downloaded."""
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        study = load_study(str(put_arms(Path(folder))))
        return {
            run.arm: [dict(record.metrics) for record in fit(run.config, load(run.config.data))]
            for run in study.runs()
            if run.arm != ELSEWHERE
        }


def moved(frozen: Losses, now: Losses) -> dict[str, list[str]]:
    """Return the differences of the frozen arms, one sentence each, by arm.

    Losses differ if they are not equal up to the tolerance. Other metrics are not compared.
    """
    found: dict[str, list[str]] = {}
    for arm, epochs in frozen.items():
        told = found.setdefault(arm, [])
        if len(now.get(arm, ())) != len(epochs):
            told.append(f"{arm}: {len(epochs)} epochs were frozen, now {len(now.get(arm, ()))}")
            continue
        tolerance = TOLERANCES.get(arm, TOLERANCE)
        for epoch, metrics in enumerate(epochs):
            for name, value in metrics.items():
                other = now[arm][epoch].get(name)
                if other is None or (
                    name.endswith(("loss", "nll"))
                    and not math.isclose(other, value, rel_tol=tolerance, abs_tol=1e-12)
                ):
                    told.append(f"{arm}, epoch {epoch}: {name} was {value}, is {other}")
    return {arm: told for arm, told in found.items() if told}


def frozen_again(frozen: Losses, now: Losses) -> Losses:
    """Return the losses to freeze: the frozen arms that have not moved, and the others as now."""
    changed = moved(frozen, now)
    return {
        arm: frozen[arm] if arm in frozen and arm not in changed else epochs
        for arm, epochs in now.items()
    }


if __name__ == "__main__":
    FILE.write_text(
        json.dumps(frozen_again(json.loads(FILE.read_text()), losses()), indent=1) + "\n"
    )
