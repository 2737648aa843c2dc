import torch
from torch.nn.functional import cross_entropy, one_hot
from torchvision.transforms import v2

from mixup_core.mixing.linear import mix
from mixup_core.mixing.mixed_losses import mixed_cross_entropies


def test_mixing_and_its_loss_agree_with_torchvision_mixup() -> None:
    """v2.MixUp pairs by roll(1) and does not report its weight; a one-pixel image reveals it."""
    rng = torch.Generator().manual_seed(1)
    images = torch.rand(6, 3, 5, 5, generator=rng)
    images[0, 0, 0, 0], images[-1, 0, 0, 0] = 1.0, 0.0
    labels = torch.tensor([0, 1, 2, 3, 0, 1])
    logits = torch.randn(6, 4, generator=rng)
    mixed, targets = v2.MixUp(alpha=0.7, num_classes=4)(images, labels)
    lam = mixed[0, 0, 0, 0]

    torch.testing.assert_close(mix(images, images.roll(1, 0), lam), mixed)
    loss = mixed_cross_entropies(logits, labels, labels.roll(1, 0), lam).mean()
    torch.testing.assert_close(loss, cross_entropy(logits, targets))


def test_mixed_images_and_loss_with_one_weight_per_image_match_the_formula() -> None:
    rng = torch.Generator().manual_seed(0)
    images, partners = torch.rand(2, 4, 2, 3, 3, generator=rng)
    logits = torch.randn(4, 3, generator=rng)
    labels, partner_labels = torch.tensor([0, 1, 2, 0]), torch.tensor([1, 1, 0, 2])
    lam = torch.tensor([0.0, 0.25, 0.5, 1.0])
    mixed = mix(images, partners, lam)
    for index in range(4):
        expected = lam[index] * images[index] + (1 - lam[index]) * partners[index]
        torch.testing.assert_close(mixed[index], expected)
    soft = lam[:, None] * one_hot(labels, 3) + (1 - lam[:, None]) * one_hot(partner_labels, 3)
    loss = mixed_cross_entropies(logits, labels, partner_labels, lam).mean()
    torch.testing.assert_close(loss, cross_entropy(logits, soft))
