"""The example study of carried moments: its optimizer against torch's Adam."""

from pathlib import Path
from typing import Any

import pytest
import torch

from sweeps.reading.study_file import load_study

FOLDER = Path(__file__).parents[2] / "examples" / "carried_moments"


@pytest.fixture
def settings() -> dict[str, Any]:
    """Return the optimizers of the example, by arm."""
    arms = load_study(str(FOLDER / "study.yaml"), ("base.optimizer.restart=4",)).arms
    return {name: config.optimizer for name, config in arms.items()}


def _train(optimizer: torch.optim.Optimizer, weight: torch.Tensor, steps: range) -> None:
    for step in steps:
        weight.grad = torch.sin(weight.detach() + step)
        optimizer.step()


@pytest.mark.parametrize(("arm", "is_carried"), [("erm", False), ("erm-carried", True)])
def test_weights_start_again_with_old_or_new_moments(
    settings: dict[str, Any], arm: str, is_carried: bool
) -> None:
    weight = torch.nn.Parameter(torch.linspace(-1, 1, 5))
    _train(settings[arm].over([weight]), weight, range(9))

    expected = torch.nn.Parameter(torch.linspace(-1, 1, 5))
    optimizer = torch.optim.Adam([expected], lr=settings[arm].lr)
    _train(optimizer, expected, range(4))
    with torch.no_grad():
        expected.copy_(torch.linspace(-1, 1, 5))
    if not is_carried:
        optimizer = torch.optim.Adam([expected], lr=settings[arm].lr)
    _train(optimizer, expected, range(4, 9))
    assert torch.allclose(weight, expected, atol=1e-7)


def test_the_weights_start_again_in_the_middle_of_each_run() -> None:
    for config in load_study(str(FOLDER / "study.yaml")).arms.values():
        steps = config.data.num_train / config.batch_size * config.epochs
        assert config.optimizer.restart == steps / 2
