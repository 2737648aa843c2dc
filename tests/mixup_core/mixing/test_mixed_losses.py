import pytest
import torch

from mixup_core.mixing.mixed_losses import mixed_squared_errors


@pytest.mark.parametrize("lam", [torch.tensor(0.25), torch.tensor([0.0, 0.25, 1.0])])
def test_mixed_squared_errors_are_squared_distances_to_the_mixed_target(lam: torch.Tensor) -> None:
    logits = torch.tensor([[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.0, 2.0, 1.0]])
    labels, partners = torch.tensor([0, 1, 2]), torch.tensor([2, 1, 1])
    weights = lam.expand(3)
    expected = [
        sum(
            (float(logit) - float(w) * (c == own) - (1 - float(w)) * (c == other)) ** 2
            for c, logit in enumerate(row)
        )
        for row, own, other, w in zip(
            logits, labels.tolist(), partners.tolist(), weights, strict=True
        )
    ]
    found = mixed_squared_errors(logits, labels, partners, lam)
    assert found.tolist() == pytest.approx(expected)
