"""OutsideImages: how well confidence separates test images from images that belong to no class."""

from dataclasses import dataclass
from typing import ClassVar

from mixup_core.arrays import Tensor, torch
from mixup_core.images.probes.probe import Probe, Subject
from mixup_core.problem import Metric
from mixup_core.seeding import stream

OUTSIDE = ("noise", "shuffled", "mosaic")


@dataclass(frozen=True, kw_only=True, slots=True)
class OutsideImages(Probe):
    """AUROC with which the largest class probability separates test images from images of no class.

    Images of no class are made without another dataset: Gaussian noise with the mean and variance
    of normalised pixels; test images with one fixed permutation of their pixels; mosaics of
    quarters of four test images. An AUROC of 1/2 is chance. The mean of the largest probability on
    images of no class is recorded too. Test images are evaluated in
    batches of at most 1,000, and each batch gets the same noise images.

    Source: Hendrycks and Gimpel 2017, arXiv:1610.02136, for the score; Thulasidasan et al. 2019,
    arXiv:1905.11001, for noise.

    Example:
        In a study file: `probes: [outside-images]`.

        >>> from mixup_core.images.probes.outside_images import OUTSIDE, OutsideImages
        >>> OUTSIDE, OutsideImages().views
        (('noise', 'shuffled', 'mosaic'), 'single')
    """

    # Frozen: each `tag` and metric name in this file. After a change, stored results are not found
    # or get another meaning; tests/golden/test_keys.py fails.
    tag: ClassVar = "outside-images"
    metrics: ClassVar = {
        "test/outside_auroc": Metric(
            label="AUROC for out-of-distribution images, mean of three kinds",
            is_lower_better=False,
            least=0.0,
            most=1.0,
        ),
        "test/outside_confidence": Metric(
            label="confidence on out-of-distribution images", unit="%", least=0.0, most=1.0
        ),
        **{
            f"test/{name}_auroc": Metric(
                label=f"AUROC for out-of-distribution images, {name}",
                is_lower_better=False,
                least=0.0,
                most=1.0,
            )
            for name in OUTSIDE
        },
    }
    views: ClassVar = "single"

    def measure(self, subject: Subject) -> dict[str, float]:
        images = subject.held_out.get("test")
        if images is None:
            return {}
        inside: list[Tensor] = []
        outside: dict[str, list[Tensor]] = {name: [] for name in OUTSIDE}
        with torch.no_grad():
            for part in images.parts:
                pixels = images[part]
                inside.append(_confidence(subject.logits(pixels)))
                for name, found in outside.items():
                    found.append(_confidence(subject.logits(of_no_class(pixels, name))))
            own = torch.cat(inside)
            others = {name: torch.cat(found) for name, found in outside.items()}
            areas = [area_above(own, other) for other in others.values()]
            confidence = torch.cat(tuple(others.values())).mean()
            *values, mean = torch.stack([*areas, confidence]).tolist()
        return {
            "test/outside_auroc": sum(values) / len(values),
            "test/outside_confidence": mean,
            **{f"test/{n}_auroc": v for n, v in zip(OUTSIDE, values, strict=True)},
        }


def of_no_class(pixels: "Tensor", kind: str) -> "Tensor":
    """Make images that belong to no class, as many as there are test images, in the same shape."""
    # Frozen: order, number and shape of this file's draws. After a change, new runs differ from
    # stored runs of the same key; tests/golden/test_draws.py fails.
    rng = stream(0, "probe images")
    if kind == "noise":
        noise = rng.normal(size=pixels.shape).astype("float32")
        return torch.from_numpy(noise).to(pixels.device, non_blocking=True)
    if kind == "shuffled":
        order = torch.from_numpy(rng.permutation(pixels[0, 0].numel()))
        order = order.to(pixels.device, non_blocking=True)
        return pixels.flatten(2).index_select(2, order).view(pixels.shape)
    height, width = (side // 2 for side in pixels.shape[2:])
    rolled = [pixels, *(pixels.roll(step, 0) for step in (1, 2, 3))]
    upper = torch.cat([rolled[0][:, :, :height, :width], rolled[1][:, :, :height, width:]], 3)
    lower = torch.cat([rolled[2][:, :, height:, :width], rolled[3][:, :, height:, width:]], 3)
    return torch.cat([upper, lower], 2)


def area_above(own: "Tensor", others: "Tensor") -> "Tensor":
    """Return the probability that a random value of `own` exceeds one of `others` (AUROC)."""
    ordered = others.sort().values
    below = torch.searchsorted(ordered, own)
    at_most = torch.searchsorted(ordered, own, right=True)
    return (below + at_most).double().mean() / (2 * len(others))


def _confidence(logits: "Tensor") -> "Tensor":
    return logits.double().softmax(1).amax(1)
