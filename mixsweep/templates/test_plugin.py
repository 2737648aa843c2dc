"""Tests of the plugin; run them with pytest."""

import subprocess
import sys
from pathlib import Path

import torch

from mixsweep.plugins import use

PLUGIN = Path(__file__).with_name("plugin.py")


def test_the_plugin_keeps_the_contracts():
    command = [sys.executable, "-m", "mixsweep", "check", str(PLUGIN)]
    checked = subprocess.run(command, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_the_weight_of_the_label_is_the_share_of_rows_that_stay():
    use(PLUGIN)
    from mixsweep.plugins import Operation

    own, beside = torch.zeros(2, 1, 8, 8), torch.ones(2, 1, 8, 8)
    halves = Operation.catalogue["halves"]()
    mixed, weight = halves.mix(own, beside, torch.tensor([0.25, 1.0]), None)
    assert weight.tolist() == [0.25, 0.875]
    assert (1 - mixed.mean(dim=(1, 2, 3))).tolist() == weight.tolist()
