from collections.abc import Mapping

import numpy as np
import pytest

from mixup_core.problem import DivergedError, StateError
from mixup_core.theory.synthetic import ArrayProcess, Arrays


def _doubling(epochs: int = 3, start: float = 1.0) -> ArrayProcess:
    def advance(epoch: int, state: Arrays) -> Mapping[str, float]:
        state["value"] = state["value"] * 2
        return {"value": float(state["value"][0])}

    return ArrayProcess(epochs=epochs, state={"value": np.array([start])}, advance=advance)


def test_a_non_finite_value_ends_the_run_at_its_epoch() -> None:
    with pytest.raises(DivergedError, match="value and value must be finite") as raised:
        list(_doubling(epochs=3, start=1e308))
    assert raised.value.epoch == 0


def test_arrays_of_another_shape_are_refused() -> None:
    other = ArrayProcess(epochs=1, state={"value": np.zeros(2)}, advance=lambda epoch, state: {})
    with pytest.raises(StateError, match="not a state of this run"):
        _doubling().load_bytes(other.to_bytes(), [])
