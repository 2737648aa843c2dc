"""Global generators: the process-wide random generators. No result may depend on them."""

import ctypes
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
def watched(
    device: str = "cpu", *, may_use_python: bool = False, is_quick: bool = False
) -> Iterator[list[str]]:
    """Context manager: find out which global random generators the code in its block uses.

    It yields an empty list. At exit, the names of the modules whose generator was used are appended
    to the list: `random` (unless `may_use_python`), `numpy.random`, `torch`.

    Args:
        device: `cpu`, or `cuda` for PyTorch's generator of a GPU, too.
        may_use_python: If True, use of `random` is no fault.
        is_quick: If True, one normal number that NumPy has computed earlier may be used.
    """
    drawn: list[str] = []
    before = _positions(device, may_use_python, is_quick)
    yield drawn
    after = _positions(device, may_use_python, is_quick)
    drawn += [name for name in before if before[name] != after[name]]


def _positions(device: str, may_use_python: bool, is_quick: bool) -> dict[str, object]:
    of_torch = [torch.default_generator.get_state().numpy().tobytes()]
    if device == "cuda":
        of_torch.append(torch.cuda.get_rng_state().numpy().tobytes())
    found: dict[str, object] = {NUMPY: _of_numpy(is_quick), TORCH: tuple(of_torch)}
    return found if may_use_python else {PYTHON: random.getstate(), **found}


def _of_numpy(is_quick: bool) -> object:
    generator = np.random.get_bit_generator()  # type: ignore[attr-defined]  # not in its stubs
    if is_quick and type(generator) is np.random.MT19937:  # `get_state` takes 50 times as long
        return ctypes.string_at(generator.ctypes.state_address, _BYTES)
    _, words, *rest = np.random.get_state()  # noqa: NPY002
    return np.asarray(words).tobytes(), *rest


_BYTES = 4 * (624 + 1)
"""Size of the state of NumPy's MT19937: 624 words, and the place in them."""
