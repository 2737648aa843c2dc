"""Counted randomness: every draw comes from a generator named by (seed, purpose, epoch)."""

import hashlib
from typing import Literal

import numpy as np

Purpose = Literal[
    "initial weights",
    "digits split",
    "caltech101 split",
    "validation split",
    "training subset",
    "class pairing",
    "label noise",
    "view partners",
    "batch order",
    "view scaling",
    "augmentation",
    "training points",
    "test points",
    "mixing",
    "mixed pairs",
    "probe view scaling",
    "probe mixing",
]
"""Streams never consume from each other and none depends on the law, so at one seed every arm sees
the same weights, images and batches."""


def stream_seed(seed: int, purpose: Purpose, epoch: int = 0) -> int:
    """Return a 63-bit integer that names one stream: the head of sha256("seed/purpose/epoch")."""
    digest = hashlib.sha256(f"{seed}/{purpose}/{epoch}".encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1


def stream(seed: int, purpose: Purpose, epoch: int = 0) -> np.random.Generator:
    """Return the NumPy generator (Philox) of one stream.

    Philox, NumPy's `random`, `integers`, `permutation` and `beta` give the same draws on every
    platform of one NumPy version; the version is part of the environment record of a run.
    """
    return np.random.Generator(np.random.Philox(stream_seed(seed, purpose, epoch)))
