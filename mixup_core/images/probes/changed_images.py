"""ChangedImages: errors on test images after changes that do not occur in training."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from mixup_core.arrays import Tensor, functional, torch
from mixup_core.images.probes.probe import Probe, Subject
from mixup_core.problem import Metric
from mixup_core.seeding import stream

if TYPE_CHECKING:
    from mixup_core.images.views import EvaluationImages

CHANGES = ("noise", "blur", "contrast", "occlusion")

NOISE_SD = 0.5
"""Standard deviation of the noise, in units of normalised pixels."""
CONTRAST = 0.3
"""Factor that reduces contrast: normalised pixels are multiplied by it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ChangedImages(Probe):
    """Errors on the test images under four changes, each the same at every seed and epoch.

    The changes of normalised pixels are: noise of standard deviation 0.5; a mean over 3 x 3 pixels,
    taken twice; 0.3 times the contrast; a square of half the side set to the mean pixel. The probe
    needs no files, unlike `data.corruptions`, whose corrupted images exist for CIFAR alone.

    Source: Hendrycks and Dietterich 2019, arXiv:1903.12261, for the kinds of changes; the strengths
    are ours.

    Example:
        In a study file: `probes: [changed-images]`.

        >>> from mixup_core.images.probes.changed_images import CHANGES, ChangedImages
        >>> CHANGES, ChangedImages().views
        (('noise', 'blur', 'contrast', 'occlusion'), 'single')
    """

    # Frozen: each `tag` and metric name in this file. After a change, stored results are not found
    # or get another meaning; tests/golden/test_keys.py fails.
    tag: ClassVar = "changed-images"
    metrics: ClassVar = {
        "test/changed_error": Metric(
            label="test error on changed images, mean of four changes", unit="%"
        ),
        "test/changed_calibration_error": Metric(
            label="test calibration error on changed images, mean of four changes",
            unit="%",
            most=1.0,
        ),
        **{
            f"test/{name}_error": Metric(label=f"test error under {name}", unit="%")
            for name in CHANGES
        },
    }
    views: ClassVar = "single"

    def measure(self, subject: Subject) -> dict[str, float]:
        from mixup_core.images.evaluation import calibration_error

        images = subject.held_out.get("test")
        if images is None:
            return {}
        errors, gaps = [], []
        with torch.no_grad():
            for name in CHANGES:
                logits = torch.cat([subject.logits(part) for part in changed(images, name)])
                errors.append((logits.argmax(1) != images.labels).double().mean())
                gaps.append(calibration_error(logits, images.labels))
            values = torch.stack([*errors, *gaps]).tolist()
        count = len(CHANGES)
        return {
            "test/changed_error": sum(values[:count]) / count,
            "test/changed_calibration_error": sum(values[count:]) / count,
            **{f"test/{n}_error": v for n, v in zip(CHANGES, values[:count], strict=True)},
        }


def changed(images: "EvaluationImages", change: str) -> Iterator["Tensor"]:
    """Yield the test images after one of the changes in `CHANGES`, such as `noise`, in batches."""
    # Frozen: order, number and shape of this file's draws. After a change, new runs differ from
    # stored runs of the same key; tests/golden/test_draws.py fails.
    rng = stream(0, "probe images")
    for part in images.parts:
        pixels = images[part]
        if change == "noise":
            noise = rng.normal(scale=NOISE_SD, size=pixels.shape).astype("float32")
            yield pixels + torch.from_numpy(noise).to(pixels.device, non_blocking=True)
        elif change == "blur":
            for _ in range(2):
                pixels = functional.avg_pool2d(
                    pixels, 3, stride=1, padding=1, count_include_pad=False
                )
            yield pixels
        elif change == "contrast":
            yield CONTRAST * pixels
        else:
            yield pixels * _uncovered(pixels, torch.from_numpy(rng.random((2, len(pixels)))))


def _uncovered(pixels: "Tensor", corners: "Tensor") -> "Tensor":
    """Return a mask that is 0 in a square of half the side of each image and 1 elsewhere."""
    covered = []
    for side, corner in zip(pixels.shape[2:], corners, strict=True):
        half = side // 2
        first = (corner * (side - half + 1)).long().view(-1, 1)
        places = torch.arange(side).view(1, -1)
        covered.append((places >= first) & (places < first + half))
    kept: Tensor = ~(covered[0].unsqueeze(2) & covered[1].unsqueeze(1))
    return kept.float().unsqueeze(1).to(pixels.device, non_blocking=True)
