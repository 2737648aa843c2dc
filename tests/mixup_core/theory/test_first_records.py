"""First records: values of each synthetic problem, frozen so that the order of draws stays.

Run as a program, this file freezes the present values.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from mixup_core.config.building import built
from mixup_core.problem import PROBLEMS, problem_named

FROZEN = Path(__file__).with_name("first_records.json")
SMALL: dict[str, dict[str, Any]] = {
    "linear-views": {"nodes": 2, "quantity": {"gradients": {"draws": 1000}}},
    "mixup-expansion": {"first_points": 8, "rank": 2, "test_points": 20},
    "support-vectors": {"steps_per_epoch": 2},
    "moons": {"steps_per_epoch": 2, "resolution": 10},
}
"""Values of problems whose first record takes long by default."""
OTHERS: dict[str, dict[str, Any]] = {
    "linear-views, excess": {"nodes": 2, "quantity": {"excess": {"points": 20}}},
    "linear-views, gap": {"nodes": 2, "quantity": {"gap": {"draws": 100}}},
    "rare-features, cutmix": {"operation": "cutmix", "steps_per_epoch": 100},
    "rare-features, mask": {"operation": "mask", "steps_per_epoch": 100},
    "rare-features, two patches of feature noise": {"noise_features": 2, "steps_per_epoch": 100},
    "two-layer, cutmix": {"operation": "cutmix", "network": {"init": 0.5}},
    "two-layer, mask": {"operation": "mask", "network": {"init": 0.5}},
    "two-layer, three features": {"data": {"features": 3}, "network": {"init": 0.5}},
    "two-layer, more patches": {
        "data": {"signal_patches": 2, "noise_classes": 3}, "network": {"init": 0.5},
    },
}  # fmt: skip
"""Values with which a problem draws in other places, by name of the problem and what is special."""
NAMES = [name for name, place in PROBLEMS.items() if ".theory." in str(place)] + [*OTHERS]


def first_record(name: str) -> dict[str, float]:
    problem = problem_named(name.partition(",")[0])
    values = {"law": {"beta": 1.0}, "seed": 1} | (SMALL | OTHERS).get(name, {})
    process = problem.start(built(problem.config, values), None, "cpu")
    return dict(next(iter(process)).metrics)


@pytest.mark.parametrize("name", NAMES)
def test_the_first_record_is_as_frozen(name: str) -> None:
    """A draw that is added, left out or moved changes results without new keys."""
    frozen = json.loads(FROZEN.read_text())[name]
    assert first_record(name) == pytest.approx(frozen, rel=1e-6, abs=1e-9)


if __name__ == "__main__":
    found = {name: first_record(name) for name in NAMES}
    FROZEN.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")
