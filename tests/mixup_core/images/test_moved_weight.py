import numpy as np
import torch
from torch import nn

from mixup_core.images.choices.models import Mlp, NarrowResNet
from mixup_core.images.moved_weight import move_one_weight


def test_one_weight_of_one_layer_changes_by_one_ulp() -> None:
    before, after = (NarrowResNet().initialised(2, 10, 14, seed=0) for _ in range(2))
    move_one_weight(after, seed=5)
    moved = []
    for (name, old), new in zip(
        before.state_dict().items(), after.state_dict().values(), strict=True
    ):
        changed = (old != new).nonzero()
        moved += [(name, tuple(place.tolist())) for place in changed]
    ((name, place),) = moved
    layer = before.get_submodule(name.rpartition(".")[0])
    assert isinstance(layer, nn.Conv2d | nn.Linear)
    old, new = (np.float32(network.state_dict()[name][place]) for network in (before, after))
    assert new == np.nextafter(old, np.float32(np.inf), dtype=np.float32)


def test_seeds_reach_every_weight() -> None:
    reached = set()
    for seed in range(300):
        network = Mlp(hidden=(2,)).initialised(1, 2, 2, seed=0)
        weights = [part.weight.detach().clone() for part in network if isinstance(part, nn.Linear)]
        move_one_weight(network, seed)
        layers = [part for part in network if isinstance(part, nn.Linear)]
        for index, (old, layer) in enumerate(zip(weights, layers, strict=True)):
            reached |= {(index, int(at)) for at in (old != layer.weight).flatten().nonzero()}
    assert reached == {(0, place) for place in range(8)} | {(1, place) for place in range(4)}


def test_equal_seeds_change_the_same_weight() -> None:
    networks = [Mlp(hidden=(3,)).initialised(1, 2, 2, seed=0) for _ in range(2)]
    for network in networks:
        move_one_weight(network, seed=1)
    assert all(map(torch.equal, networks[0].parameters(), networks[1].parameters()))
