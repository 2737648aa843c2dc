"""Counted randomness: every draw comes from a generator named by (seed, purpose, epoch)."""

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import numpy as np

Purpose = Literal[
    "initial weights",
    "digits split",
    "caltech101 split",
    "validation split",
    "training subset",
    "class pairing",
    "label noise",
    "label noise map",
    "view partners",
    "batch order",
    "view scaling",
    "augmentation",
    "training points",
    "test points",
    "mixing",
    "mixing choice",
    "mixing operation",
    "second mixing",
    "label mixing",
    "mixed pairs",
    "rounding",
    "probe view scaling",
    "probe mixing",
    "probe mixing choice",
    "probe mixing operation",
    "probe second mixing",
    "probe label mixing",
    "probe images",
]
"""Streams never consume from each other and none depends on the law, so at one seed every arm sees
the same weights, images and batches."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Seeds:
    """A seed that names the draws of some purposes, while those of the others stay the same."""

    own: int
    purposes: frozenset[Purpose]
    """Purposes that draw by `own`."""
    others: int = 0
    """Seed of the draws of all other purposes."""

    def of(self, purpose: Purpose) -> int:
        """Return the seed of a purpose."""
        return self.own if purpose in self.purposes else self.others


def stream_seed(seed: int | Seeds, purpose: Purpose, epoch: int = 0) -> int:
    """Return a 63-bit integer that names one stream: the head of sha256("seed/purpose/epoch")."""
    number = seed.of(purpose) if isinstance(seed, Seeds) else seed
    digest = hashlib.sha256(f"{number}/{purpose}/{epoch}".encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1


def stream(seed: int | Seeds, purpose: Purpose, epoch: int = 0) -> "np.random.Generator":
    """Return the NumPy generator (Philox) of one stream.

    Philox, NumPy's `random`, `integers`, `permutation` and `beta` give the same draws on every
    platform of one NumPy version; the version is part of the environment record of a run.
    """
    import numpy as np  # configurations name purposes, and are read without it

    return np.random.Generator(np.random.Philox(stream_seed(seed, purpose, epoch)))
