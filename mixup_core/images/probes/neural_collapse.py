"""NeuralCollapse: how close the last layer's features are to one point per class."""

from dataclasses import dataclass
from typing import ClassVar

from mixup_core.arrays import Tensor, nn, torch
from mixup_core.images.probes.probe import Probe, Subject
from mixup_core.problem import Metric


@dataclass(frozen=True, kw_only=True, slots=True)
class NeuralCollapse(Probe):
    """Five measures of the last layer's input features; all tend to 0 under neural collapse.

    mu_c is the mean feature of class c minus the average of all class means, M the matrix of all
    mu_c, and k the number of classes that have images. S_W and S_B are the scatter matrices within
    and between classes, W the weight of the last layer:

        nc1_variability  tr(S_W S_B^+) / k, with the pseudo-inverse of S_B
        nc2_norms        standard deviation of |mu_c| over its mean
        nc2_angles       mean over pairs of classes of |cos(mu_c, mu_d) + 1 / (k - 1)|
        nc3_duality      | W / |W| - M / |M| |, with Frobenius norms
        nc4_disagreement fraction of images whose nearest class mean is not the predicted class

    Source: Papyan, Han and Donoho 2020, arXiv:2008.08186, figures 2 to 7.

    Example:
        In a study file: `probes: [neural-collapse]`.

        >>> from mixup_core.images.probes.neural_collapse import NeuralCollapse
        >>> for name in NeuralCollapse().metrics:
        ...     print(name)
        train/nc1_variability
        train/nc2_norms
        train/nc2_angles
        train/nc3_duality
        train/nc4_disagreement
    """

    # Frozen: each `tag` and metric name in this file. After a change, stored results are not found
    # or get another meaning; tests/golden/test_keys.py fails.
    tag: ClassVar = "neural-collapse"
    metrics: ClassVar = {
        "train/nc1_variability": Metric(label="NC1, within-class variability", least=0.0),
        "train/nc2_norms": Metric(label="NC2, spread of the norms of class means", least=0.0),
        "train/nc2_angles": Metric(
            label="NC2, deviation of the angles between class means", least=0.0
        ),
        "train/nc3_duality": Metric(label="NC3, distance of weights from class means", least=0.0),
        "train/nc4_disagreement": Metric(
            label="NC4, disagreement with the nearest class mean", unit="%"
        ),
    }

    def measure(self, subject: Subject) -> dict[str, float]:
        layers = [part for part in subject.network.modules() if isinstance(part, nn.Linear)]
        if not layers:
            raise ValueError(f"the probe {self.tag} needs a network that has a linear layer")
        layer = layers[-1]
        features: list[Tensor] = []
        hook = layer.register_forward_pre_hook(
            lambda _, inputs: features.append(inputs[0].double())
        )
        try:
            logits, labels = subject.asked()
        finally:
            hook.remove()
        h = torch.cat(features)
        classes, index = torch.unique(labels, return_inverse=True)
        k = len(classes)
        counts = torch.bincount(index).double().unsqueeze(1)
        means = torch.zeros(k, h.shape[1], dtype=h.dtype, device=h.device).index_add_(0, index, h)
        means /= counts
        centred = means - means.mean(0)
        norms = centred.norm(dim=1)
        if k < 2 or not bool((norms > 0).all()):
            return {}
        _, scale, axes = torch.linalg.svd(centred, full_matrices=False)
        is_axis = scale > scale[0] * 1e-10
        within = ((h - means[index]) @ axes[is_axis].T).square().mean(0)
        units = centred / norms.unsqueeze(1)
        cosines = (units @ units.T)[~torch.eye(k, dtype=torch.bool, device=h.device)]
        weight = layer.weight.detach().double()[classes]
        duality = (weight / weight.norm() - centred / centred.norm()).norm()
        nearest = classes[torch.cdist(h, means).argmin(1)]
        return {
            "train/nc1_variability": float((within / scale[is_axis].square()).sum()),
            "train/nc2_norms": float(norms.std(correction=0) / norms.mean()),
            "train/nc2_angles": float((cosines + 1 / (k - 1)).abs().mean()),
            "train/nc3_duality": float(duality),
            "train/nc4_disagreement": float((nearest != logits.argmax(1)).double().mean()),
        }
