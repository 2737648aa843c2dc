"""Reference: a conventional training loop for mixup, with which mixsweep's own loop is compared.

It is written from published descriptions of mixup. As in arXiv:2210.13512, the classes are paired
at random, and before training each image is concatenated with an image of the class paired with its
own. A `DataLoader` without workers fetches one such double image at a time and scales its halves
by random factors. A second batch of double images, the partners, is mixed in. The optimizer is
PyTorch's default Adam, in float32.
"""

from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

from mixup_core.images.data.datasets import Images
from mixup_core.images.data.facts import DatasetInfo
from mixup_core.images.views import draw_view_partners, pair_classes
from mixup_core.laws import Law


class ConcatenatedViews(Dataset[tuple[Tensor, int]]):
    """Dataset of pairs of normalised images; each access scales both images by random factors.

    The factors add up to 1. The channels of both images are concatenated; the label is that of the
    first image.
    """

    def __init__(self, images: Images, info: DatasetInfo, seed: int) -> None:
        beside = draw_view_partners(images.labels, pair_classes(info.num_classes, seed), seed)
        mean, std = (torch.tensor(part).view(-1, 1, 1) for part in (info.mean, info.std))
        floats = (images.pixels.float() / 255 - mean) / std
        self.channels = info.channels
        self.images = torch.cat([floats, floats[beside]], dim=1)
        self.labels = images.labels.tolist()

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        image = self.images[index].clone()
        gamma = float(torch.rand(()))
        image[: self.channels] *= gamma
        image[self.channels :] *= 1 - gamma
        return image, self.labels[index]


def batches(
    data: ConcatenatedViews, batch_size: int, law: Law
) -> Iterator[tuple[Tensor, Tensor, Tensor, float]]:
    """Yield (mixed images, labels, labels of the partners, lam) for each batch of an epoch.

    Each batch has one lam, drawn from `law`.
    """
    for images, labels in DataLoader(data, batch_size=batch_size, shuffle=True):
        lam = _weight(law)
        if not law.mixes:
            yield images, labels, labels, lam
            continue
        drawn = torch.randint(len(data), (len(labels),)).tolist()
        partners, partner_labels = torch.utils.data.default_collate([data[i] for i in drawn])
        yield lam * images + (1 - lam) * partners, labels, partner_labels, lam


def _weight(law: Law) -> float:
    return float(law.quantiles(torch.rand((), dtype=torch.float64).numpy()))


def train_epoch(
    network: nn.Module,
    optimizer: torch.optim.Optimizer,
    data: ConcatenatedViews,
    batch_size: int,
    law: Law,
    device: torch.device,
) -> float:
    """Train a network for one epoch and return the mean loss per image.

    Each batch is copied to the device.
    """
    network.train()
    loss_of = nn.CrossEntropyLoss()
    total = 0.0
    for images, *both, lam in batches(data, batch_size, law):
        labels, partner_labels = (part.to(device) for part in both)
        optimizer.zero_grad()
        logits = network(images.to(device))
        loss = lam * loss_of(logits, labels) + (1 - lam) * loss_of(logits, partner_labels)
        loss.backward()
        optimizer.step()
        total += float(loss.detach()) * len(labels)
    return total / len(data)
