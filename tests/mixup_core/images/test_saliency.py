"""Saliency: gradient norms against differences of the loss; the network is not changed."""

import torch
from torch import nn

from mixup_core.images.forward import gradient_norms
from mixup_core.images.losses import CrossEntropy


def test_gradient_norms_match_the_gradient_of_the_loss_at_each_pixel() -> None:
    torch_rng = torch.Generator().manual_seed(0)
    network = nn.Sequential(nn.Flatten(), nn.Linear(8, 3), nn.BatchNorm1d(3)).train()
    images = torch.rand(4, 2, 2, 2, generator=torch_rng)
    labels = torch.tensor([0, 1, 2, 0])
    before = {name: value.clone() for name, value in network.state_dict().items()}
    with torch.no_grad():
        found = gradient_norms(network, CrossEntropy(), "float32", images, labels)
    assert network.training
    assert all(torch.equal(value, before[name]) for name, value in network.state_dict().items())
    assert all(part.grad is None for part in network.parameters())
    network.eval()
    own = images.clone().requires_grad_()
    nn.functional.cross_entropy(network(own), labels, reduction="sum").backward()  # type: ignore[no-untyped-call]
    assert own.grad is not None
    assert torch.allclose(found, own.grad.square().mean(1).sqrt(), atol=1e-7)
