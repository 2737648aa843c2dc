"""Transport of patches, compared with all permutations."""

import itertools

import numpy as np
import pytest

from mixup_core.mixing.transport import least_cost_transport


def test_the_transport_has_the_least_cost_of_all_permutations() -> None:
    rng = np.random.default_rng(0)
    place = [(at // 3, at % 3) for at in range(6)]
    for cost in (0.0, 0.1, 0.8) * 4:
        shares = rng.dirichlet(np.ones(6)).reshape(2, 3)
        shown = rng.choice([0.0, 0.5, 1.0], size=(2, 3))

        def total(
            sources: object, cost: float = cost, shares: object = shares, shown: object = shown
        ) -> float:
            share, seen = np.asarray(shares).ravel(), np.asarray(shown).ravel()
            return sum(
                cost * ((place[at][0] - place[to][0]) ** 2 + (place[at][1] - place[to][1]) ** 2) / 4
                - share[at] * (seen[to] > 0)
                for to, at in enumerate(np.asarray(sources).tolist())
            )

        found = least_cost_transport(shares, shown, cost)
        assert sorted(found.tolist()) == list(range(6))
        assert total(found) == pytest.approx(min(map(total, itertools.permutations(range(6)))))


def test_no_patch_moves_if_moving_costs_more_than_it_gains() -> None:
    shares = np.arange(4.0).reshape(2, 2) / 6
    assert least_cost_transport(shares, np.array([[1.0, 0], [0, 0]]), 10).tolist() == [0, 1, 2, 3]
    assert least_cost_transport(shares, np.array([[1.0, 0], [0, 0]]), 0.01)[0] == 3
