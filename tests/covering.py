"""Selections of a product of values, for tests that would take too long with every combination."""

import itertools
from collections.abc import Sequence
from typing import Any

import pytest


def covering(*axes: Sequence[Any], together: int = 2) -> list[Any]:
    """Return every combination of one value per axis; all but a small selection is marked `long`.

    The selection is made greedily. Any values of `together` different axes occur together in it.

    Args:
        axes: Values of each axis.
        together: Number of axes whose values must have met; 1 selects each value once.
    """
    cells = list(itertools.product(*(range(len(axis)) for axis in axes)))
    met = {cell: set(itertools.combinations(enumerate(cell), together)) for cell in cells}
    missing = set().union(*met.values())
    selected = set()
    while missing:
        best = max(cells, key=lambda cell: len(met[cell] & missing))
        selected.add(best)
        missing -= met[best]
    return [
        pytest.param(
            *(axis[index] for axis, index in zip(axes, cell, strict=True)),
            marks=[] if cell in selected else [pytest.mark.long],
        )
        for cell in cells
    ]
