"""Memory of this process, in MB; `getrusage` counts what began it too."""

from pathlib import Path


def resident_mb() -> float:
    """Return what it takes now."""
    return _of_status("VmRSS:")


def peak_mb() -> float:
    """Return the most that it has taken."""
    return _of_status("VmHWM:")


def _of_status(name: str) -> float:
    status = Path("/proc/self/status").read_text()
    return int(status.partition(name)[2].split()[0]) / 1024
