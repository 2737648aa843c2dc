import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

from mixup_core.seeding import stream
from mixup_core.theory.relu_network import ReluNetwork, adam_step

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
