"""Machine: what this machine has for training and tracking, and what is missing."""

import os
import platform
import shutil
from collections.abc import Iterator

import torch

from mixup_core.numeric_settings import installed_version
from mixup_core.problem import all_data_needs
from sweeps.machine.home import Home
from sweeps.machine.resources import memory_of_machine, spell_lack_of_mps, usable_cpus
from sweeps.running.placement import LEAST_SHARE

_PACKAGES = ("torch", "torchvision", "ray", "optuna", "mlflow", "numpy", "pandas")
_LOW_DISK_GB = 2.0


def findings(home: Home) -> Iterator[str]:
    """Yield one line of text per check of this machine: its subject, such as GPUs, and the result.

    Args:
        home: The home, on whose disk free space is checked.
    """
    yield f"python       {platform.python_version()} on {platform.platform()}"
    yield "packages     " + ", ".join(
        f"{name} {installed_version(name) or 'missing'}" for name in _PACKAGES
    )
    total, used = memory_of_machine()
    yield (
        f"machine      {usable_cpus()} of {os.cpu_count()} CPUs, "
        f"{total / 1e9:.0f} GB memory ({(total - used) / 1e9:.0f} GB free)"
    )
    yield f"GPUs         {_gpus()}"
    yield f"bfloat16     {_bfloat16()}"
    existing = next(
        folder
        for folder in (home.folder.resolve(), *home.folder.resolve().parents)
        if folder.exists()
    )
    free = shutil.disk_usage(existing).free / 1e9
    yield f"home         {home.folder}, {free:.1f} GB free" + (
        "" if free > _LOW_DISK_GB else ": low"
    )
    for needs in all_data_needs().values():
        for found in needs.sets():
            here = found.place if found.is_present else f"missing; mixsweep data fetch {found.name}"
            size = found.num_bytes
            held = "" if size is None else f"; {size / 1e6:,.1f} MB in memory"
            yield f"data         {found.name}: {here}{held}"


def _gpus() -> str:
    if not torch.cuda.is_available():
        return "none; runs train on CPUs, one thread each"
    names = [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())]
    lack = spell_lack_of_mps(LEAST_SHARE)
    return "; ".join([", ".join(names), *([lack] if lack else [])])


def _bfloat16() -> str:
    if torch.cuda.is_available():
        return "fast on this GPU" if torch.cuda.is_bf16_supported() else "not on this GPU"
    fast = torch.cpu.get_capabilities().get("amx_bf16", False)
    return "fast on this CPU (AMX)" if fast else "no gain on this CPU (no AMX)"
