"""Global generators: the process-wide random generators. No result may depend on them."""

import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch

PYTHON, NUMPY, TORCH = "random", "numpy.random", "torch"
"""Modules with a process-wide generator. Threads of some libraries draw from the generator of
`random`, so use of that generator can be checked only in a process without such threads.
"""


@contextmanager
def seeded_globally(seed: int) -> Iterator[None]:
    """Context manager: seed the global random generators of Python, NumPy and PyTorch.

    At exit, their earlier states are restored.
    """
    before = random.getstate(), np.random.get_state(), torch.default_generator.get_state()  # noqa: NPY002
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002, TID251  the generator that must not matter
    torch.default_generator.manual_seed(seed)
    try:
        yield
    finally:
        random.setstate(before[0])
        np.random.set_state(before[1])  # noqa: NPY002
        torch.default_generator.set_state(before[2])


@contextmanager
def watched(device: str = "cpu", *, may_use_python: bool = False) -> Iterator[list[str]]:
    """Context manager: find out which global random generators the code in its block uses.

    It yields an empty list. At exit, the names of the modules whose generator was used are appended
    to the list: `random` (unless `may_use_python`), `numpy.random`, `torch`.
    """
    drawn: list[str] = []
    before = _positions(device, may_use_python)
    yield drawn
    after = _positions(device, may_use_python)
    drawn += [name for name in before if before[name] != after[name]]


def _positions(device: str, may_use_python: bool) -> dict[str, object]:
    _, words, *rest = np.random.get_state()  # noqa: NPY002
    of_torch = [torch.default_generator.get_state().numpy().tobytes()]
    if device == "cuda":
        of_torch.append(torch.cuda.get_rng_state().numpy().tobytes())
    found: dict[str, object] = {NUMPY: (np.asarray(words).tobytes(), *rest), TORCH: tuple(of_torch)}
    return found if may_use_python else {PYTHON: random.getstate(), **found}
