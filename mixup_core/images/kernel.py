"""Kernel: the images of a batch in one compiled pass over memory; PyTorch makes five.

The machine's C compiler makes it anew in each process: a sixth of a second, no file that stays, and
instructions of the very processor it runs on. Who uses it looks first whether its bits are those of
PyTorch (`mixup_core.images.batches.proven_kernel`).
"""

import ctypes
import functools
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from mixup_core.images.augmentations.moves import PADDING
from mixup_core.images.views import TrainingImages
from mixup_core.temporary import temporary_folder

if TYPE_CHECKING:
    from mixup_core.images.batches import Draws

COMPILER = "cc"
"""POSIX's name of the C compiler."""

_SOURCE = Path(__file__).with_name("assembly.c")
_OPTIONS = ("-O3", "-march=native", "-ffp-contract=off", "-fPIC", "-shared")
_PIXELS = {torch.uint8: "uint8_t", torch.int16: "int16_t", torch.int32: "int32_t"}
_PATIENCE = 30.0
"""Seconds for the compiler, on a machine that does much else."""


class _Images(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("pixels", "chosen", "beside", "scale", "shift")),
        *((name, ctypes.c_int64) for name in ("channels", "height", "width", "padding")),
    )


class _Accesses(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_void_p) for name in ("indices", "gamma", "moves"))


class Kernel:
    """Assembles batches of images whose pixels are of one type, on a CPU."""

    def __init__(self, library: ctypes.CDLL) -> None:
        """Take `assemble` of what `assembly.c` was compiled to."""
        self._assemble = library.assemble
        self._assemble.restype = None

    def assemble(
        self, images: TrainingImages, draws: "Draws", along: slice, out: Tensor, *, is_mixed: bool
    ) -> None:
        """Write images as `TrainingImages.batch` and `mix` do.

        Args:
            images: On a CPU, of the kernel's type.
            draws: All that is random, in memory without gaps.
            along: The images, of `draws.order`.
            out: (images, channels or 2 channels, height, width), float32, without gaps.
            is_mixed: Whether partners are mixed in.
        """
        pixels = images.pixels
        channels, height, width = pixels.shape
        room = torch.empty(height, width)
        seen = _Images(
            pixels=pixels.values.data_ptr(),
            chosen=_address(pixels.chosen),
            beside=_address(images.view_partners),
            scale=pixels.scale.data_ptr(),
            shift=pixels.shift.data_ptr(),
            channels=channels,
            height=height,
            width=width,
            padding=PADDING,
        )
        # The views of `draws` keep nothing alive by themselves; `draws` does, until the return.
        own, partners = (
            _Accesses(
                indices=indices[along].data_ptr(),
                gamma=draws.scaling[side, along].data_ptr(),
                moves=None
                if draws.augmentation is None
                else draws.augmentation[side, along].data_ptr(),
            )
            for side, indices in enumerate((draws.order, draws.partners))
        )
        self._assemble(
            ctypes.byref(seen),
            ctypes.c_int64(len(out)),
            ctypes.byref(own),
            ctypes.byref(partners) if is_mixed else None,
            ctypes.c_void_p(draws.lam[along].data_ptr()),
            ctypes.c_void_p(room.data_ptr()),
            ctypes.c_void_p(out.data_ptr()),
        )


def kernel_for(images: TrainingImages) -> Kernel | None:
    """Return the kernel for images; None where they or the machine are not made for one."""
    values = images.pixels.values
    if values.device.type != "cpu" or not values.is_contiguous() or values.dtype not in _PIXELS:
        return None
    if not images.augmentation.is_compiled or images.views not in {"single", "concat"}:
        return None
    return _compiled(_PIXELS[values.dtype])


@functools.cache
def _compiled(pixel: str) -> Kernel | None:
    compiler = shutil.which(COMPILER)
    if compiler is None:
        return None
    try:
        with temporary_folder(Path(tempfile.gettempdir()), "mixsweep-kernel-") as folder:
            library = folder / "assembly.so"
            files = ("-o", str(library), str(_SOURCE))
            command = [compiler, *_OPTIONS, f"-DPIXEL={pixel}", *files, "-lm"]
            subprocess.run(command, check=True, capture_output=True, timeout=_PATIENCE)
            return Kernel(ctypes.CDLL(str(library)))
    except (OSError, subprocess.SubprocessError):  # PyTorch's passes do as well, only slower
        return None


def _address(tensor: Tensor | None) -> int | None:
    return None if tensor is None else tensor.data_ptr()
