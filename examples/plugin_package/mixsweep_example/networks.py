"""A small network with initial weights of its own."""

from dataclasses import dataclass

from mixsweep.plugins import Count, Model


@dataclass(frozen=True, kw_only=True, slots=True)
class TwoLayerNorm(Model):
    """Two linear layers behind a LayerNorm, the second with initial weights 0."""

    name = "two-layer-norm"
    has_batch_norm = False

    hidden: Count = 32
    """Units of the hidden layer."""

    def network(self, in_channels, num_classes, image_size):
        """Return the network; its initial weights are kept as they are drawn here."""
        from torch import nn

        inputs = in_channels * image_size**2
        last = nn.Linear(self.hidden, num_classes)
        nn.init.zeros_(last.weight)
        return nn.Sequential(
            nn.Flatten(), nn.LayerNorm(inputs), nn.Linear(inputs, self.hidden), nn.GELU(), last
        )
