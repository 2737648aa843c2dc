"""Predictions: the logits of the validation and test images that a finished run leaves."""

import hashlib
import io
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mixup_core.archives import read_arrays

AVERAGED = "_averaged"
"""Stands behind the name of a split for the logits of the averaged weights, as behind metrics."""


class PredictionsError(ValueError):
    """Bytes are no predictions, or ones whose parts contradict each other."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Split:
    """What networks say of the images of one split, in their order."""

    labels: NDArray[np.int64]
    """(images,)."""
    images: str
    """Digest of raw images and labels: predictions compare only where it is equal."""
    logits: Mapping[str, NDArray[np.float32]]
    """Of the last weights under "", of averaged ones under `AVERAGED`; each (images, classes)."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Predictions:
    """The logits of a run after its last epoch. A function of its configuration alone."""

    splits: Mapping[str, Split]
    """`val` and `test`, where the run has them."""

    def to_bytes(self) -> bytes:
        """Return them as an archive of NumPy; equal predictions give equal bytes."""
        arrays: dict[str, NDArray[np.generic]] = {}
        for name, split in self.splits.items():
            highest = int(split.labels.max(initial=0))
            arrays[f"{name}/labels"] = split.labels.astype(np.min_scalar_type(highest))
            arrays[f"{name}/images"] = np.frombuffer(bytes.fromhex(split.images), np.uint8)
            for weights, logits in split.logits.items():
                arrays[f"{name}/logits{weights}"] = logits
        buffer = io.BytesIO()
        np.savez(buffer, **arrays)  # type: ignore[arg-type]
        return buffer.getvalue()

    @classmethod
    def from_bytes(cls, content: bytes) -> "Predictions":
        """Return what `to_bytes` wrote; no code in the bytes runs.

        Raises:
            PredictionsError: If the bytes are none.
        """
        try:
            arrays = read_arrays(content)
            names = dict.fromkeys(name.partition("/")[0] for name in arrays)
            splits = {name: _split(name, arrays) for name in names}
        except (ValueError, KeyError) as error:
            raise PredictionsError(
                f"`bytes are predictions` must hold, got ({len(content)} bytes: {error})."
            ) from error
        return cls(splits=splits)


def images_digest(pixels: NDArray[np.uint8], labels: NDArray[np.int64]) -> str:
    """Return 32 hexadecimal digits that stand for raw images and their labels."""
    digest = hashlib.sha256(f"{pixels.shape} {labels.shape}".encode())
    digest.update(np.ascontiguousarray(pixels).data)
    digest.update(np.ascontiguousarray(labels.astype("<i8")).data)
    return digest.hexdigest()[:32]


def _split(name: str, arrays: Mapping[str, NDArray[np.generic]]) -> Split:
    head = f"{name}/logits"
    labels = arrays[f"{name}/labels"].astype(np.int64)
    logits = {
        path.removeprefix(head): array.astype(np.float32)
        for path, array in arrays.items()
        if path.startswith(head)
    }
    shapes = {array.shape for array in logits.values()}
    if len(shapes) != 1 or any(shape[:1] != labels.shape or len(shape) != 2 for shape in shapes):
        raise ValueError(f"{name}: logits of shapes {sorted(shapes)} for {labels.shape} labels")
    return Split(
        labels=labels,
        images=arrays[f"{name}/images"].astype(np.uint8).tobytes().hex(),
        logits=logits,
    )
