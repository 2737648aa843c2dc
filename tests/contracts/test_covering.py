"""The selection that `make test` takes of a product of values."""

import itertools
from collections.abc import Sequence

import pytest

from tests.covering import covering

AXES = ["abc", "12", "xyz", "!?"]


def _selected(axes: Sequence[str], together: int) -> list[tuple[str, ...]]:
    return [cell.values for cell in covering(*axes, together=together) if not cell.marks]


@pytest.mark.parametrize("together", [1, 2, 3])
def test_selected_cells_contain_every_combination_of_values_of_n_axes(together: int) -> None:
    cells = _selected(AXES, together)
    for places in itertools.combinations(range(len(AXES)), together):
        met = {tuple(cell[place] for place in places) for cell in cells}
        assert met == set(itertools.product(*(AXES[place] for place in places)))
