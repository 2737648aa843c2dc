import json
from functools import cache
from pathlib import Path

import pytest

from tests.golden.freeze_draws import FILE, draws_now

found = cache(draws_now)


def test_draws_are_as_frozen() -> None:
    """A draw that is added, left out or moved changes results without new keys."""
    now, frozen = found()[0], json.loads(FILE.read_text())
    moved = [
        f"{name}: {row} is now {now.get(name)}"
        for name, row in frozen.items()
        if now.get(name) != pytest.approx(row, rel=1e-9, abs=1e-4)
    ]
    assert not moved, "\n".join(moved)
    assert not now.keys() - frozen.keys(), "`make golden` freezes them"


def test_every_file_whose_draws_are_frozen_has_drawn() -> None:
    root = Path(__file__).parents[2] / "mixup_core"
    mark = "# Frozen: order, number and shape of this file's draws."
    says = {file for file in root.rglob("*.py") if mark in file.read_text()}
    left = {
        file.name for file in says if "theory" not in file.parts and str(file) not in found()[1]
    }
    assert left == {
        "networks.py",  # PyTorch draws
        "caltech101.py",  # needs a download; `test_sets.py` compares its split
        "cutmix.py", "gridmix.py", "resizemix.py", "smoothmix.py",  # `masks.py` draws for them
    }  # fmt: skip
