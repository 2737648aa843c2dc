"""A small gradient flow of a two-layer network with three neurons."""

from mixup_core.laws import Midpoint
from mixup_core.theory.two_layer.config import PatchData, PatchNetwork, TwoLayerConfig
from mixup_core.theory.two_layer.network import Landscape
from mixup_core.theory.two_layer.points import training_points, training_set


def small_flow() -> tuple[TwoLayerConfig, Landscape]:
    config = TwoLayerConfig(
        epochs=1,
        data=PatchData(classes=3, points_per_class=10),
        network=PatchNetwork(neurons=1, power=4, init=0.3),
        law=Midpoint(),
        pairs_per_class=10,
    )
    return config, Landscape(training_set(config, training_points(config)), config)
