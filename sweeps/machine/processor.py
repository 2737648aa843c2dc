"""Processor: what the CPU of this machine is called. No torch."""

import platform
import re
from pathlib import Path


def processor() -> str:
    """Return the model of the CPU, where Linux tells it, else its architecture."""
    try:
        described = Path("/proc/cpuinfo").read_text()
    except OSError:
        return platform.machine()
    models = re.findall(r"^model name\s*: (.+)$", described, flags=re.MULTILINE)
    return models[0] if models else platform.machine()
