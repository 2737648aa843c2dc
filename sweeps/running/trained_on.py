"""Facts about the machine that trains a run, for the record of its stages."""

import os
import platform
import re
from pathlib import Path
from typing import Any

import numpy as np

from mixup_core.numeric_settings import installed_version, recorded_settings
from mixup_core.problem import problem_of
from sweeps.machine.resources import processor

_ONEDNN_LIMITS = ("ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA")
"""Environment variables that limit oneDNN's instruction set; the current name comes first."""


def device_name(device: str) -> str:
    import torch

    return torch.cuda.get_device_name(device) if device == "cuda" else processor()


def environment_of(device: str, config: Any) -> dict[str, str]:
    """Return facts about the machine that can change the last bits of results, by name.

    No credentials are included; of the environment variables, only those that change numbers.
    """
    import torch  # a cluster's driver imports this module without torch

    is_gpu = device == "cuda"
    # Frozen: these keys in stored stages. A resumed run would count as moved to another machine;
    # tests/sweeps/running/test_storing.py fails.
    return {
        "host": platform.node(),
        "pid": str(os.getpid()),
        "device": device_name(device),
        **(_gpu_libraries(config) if is_gpu else _instructions()),
        "torch": torch.__version__,
        "numpy": np.__version__,
        **{package: installed_version(package) or "" for package in _packages(config)},
        "threads": str(torch.get_num_threads()),
        **({"settings": settings} if (settings := recorded_settings(os.environ)) else {}),
    }


def _packages(config: Any) -> tuple[str, ...]:
    """Return the packages, besides torch and numpy, whose versions can change results of a run."""
    of_model = getattr(getattr(config, "model", None), "packages", ())
    return ("scipy", *problem_of(config).packages, *of_model)


def _gpu_libraries(config: Any) -> dict[str, str]:
    """Return the versions of the GPU libraries and the options in force, by name."""
    import torch

    cudnn: Any = torch.backends.cudnn  # its functions have no types
    allowed = {
        "tf32": getattr(config, "precision", None) == "tf32",
        "deterministic": getattr(config, "deterministic", False),
        "benchmark": cudnn.benchmark,
    }
    return {
        "cuda": str(torch.version.cuda),
        "cudnn": str(cudnn.version()),
        "gpu_driver": _gpu_driver(),
        "gpu_allowed": " ".join(name for name, is_on in allowed.items() if is_on) or "nothing",
    }


def _gpu_driver() -> str:
    try:
        described = Path("/proc/driver/nvidia/version").read_text()
    except OSError:
        return ""
    match = re.search(r"Kernel Module.*?\b(\d+\.[\d.]+)", described)
    return match[1] if match else ""


def _instructions() -> dict[str, str]:
    """Return the vector instructions that PyTorch (ATen) uses, and a limit set for oneDNN, if any.

    With other instructions the same seed gives other bits, and after many steps another test error.
    """
    import torch

    limit = next(filter(None, map(os.environ.get, _ONEDNN_LIMITS)), None)
    return {
        "instructions": torch.backends.cpu.get_cpu_capability(),
        **({} if limit is None else {"onednn_at_most": limit}),
    }
