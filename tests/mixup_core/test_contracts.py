from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from mixup_core.contracts import ContractError, require_quantiles, weights_of
from mixup_core.laws.beta import Beta
from mixup_core.rules import RuleError


@dataclass(frozen=True)
class Given(Beta):
    """A law that draws given weights, which are its quantiles too."""

    weights: tuple[float, ...] = ()

    def draw(self, shape: Any, rng: Any) -> Any:
        return np.array(self.weights)

    def quantiles(self, levels: Any) -> Any:
        return np.interp(levels, np.linspace(0, 1, len(self.weights)), self.weights)


@pytest.mark.parametrize(
    ("weights", "worst"), [((-5e-6, 2.0), "2"), ((-3.0, 1.5), "-3"), ((0.5, np.nan), "nan")]
)
def test_the_drawn_weight_that_is_furthest_outside_is_named(
    weights: tuple[float, ...], worst: str
) -> None:
    with pytest.raises(ContractError, match=f"such as {worst}$"):
        weights_of(Given(alpha=1.0, weights=weights), 2, np.random.default_rng(0))


def test_a_quantile_outside_between_the_ends_is_named_with_its_level() -> None:
    with pytest.raises(RuleError, match=r"it is 1\.\d+ at level 0\.\d+; correct"):
        require_quantiles(Given(alpha=1.0, weights=(0.0, 1.5, 1.0)))
