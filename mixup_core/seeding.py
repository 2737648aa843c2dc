"""Random streams: each draw uses a generator that (seed, purpose, epoch) alone determine.

A purpose is the name of a kind of draw, such as `batch order` or `initial weights`. No result may
depend on the global generators of this process, which `watched` watches.
"""

import hashlib
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

from mixup_core.arrays import np, torch

# Frozen: these names and `stream_seed`, because draws depend on them. After a change, new runs
# differ from stored runs of the same key; tests/golden/test_draws.py fails.
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
"""Names of the independent random streams of a run.

No stream consumes draws of another, and none depends on the mixing law. At one seed, every arm
therefore sees the same weights, images and batches.
"""


APART = 2**64
"""Number that is added to the seed of draws in `Seeds.apart`; larger than any other seed."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Seeds:
    """Two seeds for one run: `own` for the kinds of draws in `purposes`, `others` for the rest.

    To measure how much one source of randomness matters, vary `own` and keep `others` fixed.
    """

    own: int
    purposes: frozenset[Purpose]
    """Purposes whose draws use `own`."""
    others: int = 0
    """Seed of the draws of all other purposes."""
    apart: frozenset[Purpose] = frozenset()
    """Purposes whose draws use neither seed itself, but the seed plus 2^64."""

    def of(self, purpose: Purpose) -> int:
        """Return the seed that a kind of draw, such as `batch order`, uses."""
        seed = self.own if purpose in self.purposes else self.others
        return seed + APART if purpose in self.apart else seed


def stream_seed(seed: int | Seeds, purpose: Purpose, epoch: int = 0) -> int:
    """Return the seed of one random stream: the first 63 bits of sha256("seed/purpose/epoch")."""
    number = seed.of(purpose) if isinstance(seed, Seeds) else seed
    digest = hashlib.sha256(f"{number}/{purpose}/{epoch}".encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1


def stream(seed: int | Seeds, purpose: Purpose, epoch: int = 0) -> "np.random.Generator":
    """Return the NumPy generator (Philox) for a seed, a purpose (kind of draw) and an epoch.

    Philox, NumPy's `random`, `integers`, `permutation` and `beta` give the same draws on every
    platform for one NumPy version; the version is part of the environment record of a run.

    Args:
        seed: Seed of the run, or two seeds.
        purpose: Name of the kind of draw, one of `Purpose`.
        epoch: The epoch (0-based) of the draw; 0 for draws before training.

    Example:
        >>> from mixsweep.plugins import stream
        >>> first, again, other = (stream(0, "mixing", epoch).random() for epoch in (1, 1, 2))
        >>> first == again, first == other
        (True, False)
    """
    return np.random.Generator(np.random.Philox(stream_seed(seed, purpose, epoch)))


PYTHON, NUMPY, TORCH = "random", "numpy.random", "torch"
"""Modules with a process-wide generator. Threads of some libraries draw from the generator of
`random`, so use of that generator can be checked only in a process without such threads.
"""


@contextmanager
def seeded_globally(seed: int) -> Iterator[None]:
    """Seed the global random generators of Python, NumPy and PyTorch; restore them at exit."""
    before = random.getstate(), np.random.get_state(), torch.default_generator.get_state()
    random.seed(seed)
    np.random.seed(seed)
    torch.default_generator.manual_seed(seed)
    try:
        yield
    finally:
        random.setstate(before[0])
        np.random.set_state(before[1])
        torch.default_generator.set_state(before[2])


@contextmanager
def watched(device: str = "cpu", *, may_use_python: bool = False) -> Iterator[list[str]]:
    """Context manager: find out which global random generators the code in its block uses.

    It yields an empty list. At exit, the names of the modules whose generator was used are appended
    to the list: `random` (unless `may_use_python`), `numpy.random`, `torch`.

    Args:
        device: `cpu`, or `cuda` for PyTorch's generator of a GPU, too.
        may_use_python: If True, use of `random` is no fault.
    """
    drawn: list[str] = []
    before = _positions(device, may_use_python)
    yield drawn
    after = _positions(device, may_use_python)
    drawn += [name for name in before if before[name] != after[name]]


def _positions(device: str, may_use_python: bool) -> dict[str, object]:
    of_torch = [torch.default_generator.get_state().numpy().tobytes()]
    if device == "cuda":
        of_torch.append(torch.cuda.get_rng_state().numpy().tobytes())
    _, words, *rest = np.random.get_state()
    of_numpy = np.asarray(words).tobytes(), *rest
    found: dict[str, object] = {NUMPY: of_numpy, TORCH: tuple(of_torch)}
    return found if may_use_python else {PYTHON: random.getstate(), **found}
