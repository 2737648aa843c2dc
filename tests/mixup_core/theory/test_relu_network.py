from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

from mixup_core.laws import Beta
from mixup_core.seeding import stream
from mixup_core.theory.relu_network import ReluNetwork, adam_step, trained

NETWORK = ReluNetwork(inputs=3, hidden=7, classes=4)


def test_training_steps_match_adam_of_torch() -> None:
    state = NETWORK.initial(stream(0, "initial weights"))
    twin = torch.nn.Sequential(torch.nn.Linear(3, 7), torch.nn.ReLU(), torch.nn.Linear(7, 4))
    for parameter, part in zip(twin.parameters(), NETWORK.parts(state["weights"]), strict=True):
        parameter.data = torch.from_numpy(part.T.copy())
    optimizer = torch.optim.Adam(twin.parameters(), lr=0.01)
    rng = np.random.default_rng(0)
    for _ in range(20):
        inputs, targets = rng.normal(size=(5, 3)), rng.dirichlet(np.ones(4), 5)
        expected = cross_entropy(twin(torch.from_numpy(inputs)), torch.from_numpy(targets))
        loss, gradient = NETWORK.gradient(state["weights"], inputs, targets)
        assert loss == pytest.approx(float(expected.detach()), rel=1e-12)
        optimizer.zero_grad()
        expected.backward()
        optimizer.step()
        adam_step(state, gradient, 0.01)
    for parameter, part in zip(twin.parameters(), NETWORK.parts(state["weights"]), strict=True):
        np.testing.assert_allclose(parameter.detach().numpy().T, part, rtol=1e-9, atol=1e-12)


def test_mixed_steps_follow_the_gradient_of_the_mixed_loss() -> None:
    rng = np.random.default_rng(0)
    inputs, targets = rng.normal(size=(5, 3)), np.eye(4)[[0, 1, 2, 3, 0]]
    config = SimpleNamespace(law=Beta(alpha=0.5), steps_per_epoch=3, lr=1e-2, epochs=1, seed=0)
    process = trained(
        config, NETWORK, inputs, targets.argmax(axis=1), lambda _, loss: {"loss": loss}
    )
    (metrics,) = (record.metrics for record in process)
    by_hand = NETWORK.initial(stream(0, "initial weights"))
    draws = stream(0, "mixing", 0)
    partners, lams = draws.integers(5, size=(3, 5)), draws.beta(0.5, 0.5, 3)
    losses = []
    for partner, lam in zip(partners, lams, strict=True):
        mixed = [lam * part + (1 - lam) * part[partner] for part in (inputs, targets)]
        value, gradient = NETWORK.gradient(by_hand["weights"], *mixed)
        losses.append(value)
        adam_step(by_hand, gradient, 1e-2)
    assert metrics == {"step": 3, "loss": pytest.approx(np.mean(losses), rel=1e-12)}
    np.testing.assert_array_equal(process.state["weights"], by_hand["weights"])
