"""Predictions: a finished run's logits on validation and test images, and their scores."""

import hashlib
import io
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mixup_core.archives import read_arrays
from mixup_core.records import AVERAGED


class PredictionsError(ValueError):
    """Error: bytes are not stored predictions, or their arrays have contradictory shapes."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Split:
    """Logits of the images of one split (validation or test), in the order of the images."""

    labels: NDArray[np.int64]
    """Labels, (images,)."""
    images: str
    """Digest of the raw images and labels. Predictions can be compared only if their digests are
    equal.
    """
    logits: Mapping[str, NDArray[np.float32]]
    """Logits, (images, classes), by weights: "" for the last weights, `AVERAGED` for averaged ones.
    """


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Predictions:
    """Logits of a finished run on validation and test images; its configuration determines them."""

    splits: Mapping[str, Split]
    """Splits by name: `val` and `test`, each only if the run has it."""

    def to_bytes(self) -> bytes:
        """Return these predictions as an NPZ archive; equal predictions give equal bytes."""
        arrays: dict[str, NDArray[np.generic]] = {}
        for name, split in self.splits.items():
            highest = int(split.labels.max(initial=0))
            # Frozen: names and types of these arrays. After a change, stored results cannot be
            # read; tests/contracts/test_homes.py fails.
            arrays[f"{name}/labels"] = split.labels.astype(np.min_scalar_type(highest))
            arrays[f"{name}/images"] = np.frombuffer(bytes.fromhex(split.images), np.uint8)
            for weights, logits in split.logits.items():
                arrays[f"{name}/logits{weights}"] = logits
        buffer = io.BytesIO()
        np.savez(buffer, **arrays)  # type: ignore[arg-type]
        return buffer.getvalue()

    @classmethod
    def from_bytes(cls, content: bytes) -> "Predictions":
        """Build predictions from the bytes that `to_bytes` returned, without unpickling."""
        try:
            arrays = read_arrays(content)
            names = dict.fromkeys(name.partition("/")[0] for name in arrays)
            splits = {name: _split(name, arrays) for name in names}
            _require_alike(splits)
        except (ValueError, KeyError) as error:
            raise PredictionsError(
                f"damaged predictions: {len(content)} bytes that cannot be read ({error})."
            ) from error
        return cls(splits=splits)


def images_digest(pixels: NDArray[np.uint8], labels: NDArray[np.int64]) -> str:
    """Return a digest (32 hexadecimal digits) of images, as raw pixels, and their labels."""
    digest = hashlib.sha256(f"{pixels.shape} {labels.shape}".encode())
    digest.update(np.ascontiguousarray(pixels).data)
    digest.update(np.ascontiguousarray(labels.astype("<i8")).data)
    return digest.hexdigest()[:32]


def _split(name: str, arrays: Mapping[str, NDArray[np.generic]]) -> Split:
    if name not in {"val", "test"}:
        raise ValueError(f"no split has the name {name}")
    head = f"{name}/logits"
    labels = _checked(arrays, f"{name}/labels", "iu", 1).astype(np.int64)
    logits = {
        path.removeprefix(head): _checked(arrays, path, "f", 2).astype(np.float32)
        for path in arrays
        if path.startswith(head)
    }
    if odd := logits.keys() - {"", AVERAGED}:
        raise ValueError(f"{name}: no logits have the name logits{min(odd)}")
    shapes = {array.shape for array in logits.values()}
    if len(shapes) != 1 or any(shape[:1] != labels.shape for shape in shapes):
        raise ValueError(
            f"{name}: logits must all be of shape ({len(labels)}, classes), as there are "
            f"{len(labels)} labels, got {sorted(shapes)}"
        )
    ((_, classes),) = shapes
    if not len(labels) or not 0 <= labels.min() <= labels.max() < classes:
        raise ValueError(f"{name}: there must be labels, from 0 to {classes - 1}")
    if not all(np.isfinite(array).all() for array in logits.values()):
        raise ValueError(f"{name}: logits must be finite")
    digest = _checked(arrays, f"{name}/images", "u", 1).astype(np.uint8)
    return Split(labels=labels, images=digest.tobytes().hex(), logits=logits)


def _require_alike(splits: Mapping[str, Split]) -> None:
    classes = [
        {name: array.shape[1] for name, array in split.logits.items()} for split in splits.values()
    ]
    if any(of_split != classes[0] for of_split in classes):
        raise ValueError("all splits must have logits of the same weights and number of classes")


def _checked(
    arrays: Mapping[str, NDArray[np.generic]], path: str, kinds: str, axes: int
) -> NDArray[np.generic]:
    """Return an array of an archive, after a check of its type and number of axes."""
    array = arrays[path]
    if array.dtype.kind not in kinds or array.ndim != axes:
        raise ValueError(f"{path}: has the type {array.dtype} and the shape {array.shape}")
    return array


Chances = NDArray[np.floating]
Labels = NDArray[np.int64]


def accuracy(chances: Chances, labels: Labels) -> float:
    """Return the share of images whose label has the largest probability or logit, in [0, 1]."""
    return float((chances.argmax(1) == labels).mean())


def balanced_accuracy(chances: Chances, labels: Labels) -> float:
    """Return the mean of the accuracies on the images of each class, in [0, 1].

    A class without images is left out.
    """
    counts = np.bincount(labels, minlength=chances.shape[1])
    right = np.bincount(labels[chances.argmax(1) == labels], minlength=chances.shape[1])
    return float((right[counts > 0] / counts[counts > 0]).mean())


def auroc(chances: Chances, labels: Labels) -> float | None:
    """Return the mean over classes of the one-against-rest area under the ROC curve, in [0, 1].

    The area of a class is the probability that one of its images gets a larger probability for the
    class than an image of another class; ties count as half. With two classes, both areas are
    equal. The result is None if some class has no image, or all images are of one class.
    """
    counts = np.bincount(labels, minlength=chances.shape[1])
    if (counts == 0).any() or len(counts) < 2:
        return None
    areas = []
    for label, count in enumerate(counts):
        column, others = chances[labels == label, label], np.sort(chances[labels != label, label])
        below = np.searchsorted(others, column)
        at_most = np.searchsorted(others, column, side="right")
        areas.append((below.sum() + at_most.sum()) / 2 / (count * len(others)))
    return float(np.mean(areas))
