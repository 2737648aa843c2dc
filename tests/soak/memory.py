"""Memory of this process in MB; `getrusage` would include its parent's."""

from pathlib import Path


def resident_mb() -> float:
    """Return the present memory."""
    return _of_status("VmRSS:")


def peak_mb() -> float:
    """Return the peak memory."""
    return _of_status("VmHWM:")


def _of_status(name: str) -> float:
    status = Path("/proc/self/status").read_text()
    return int(status.partition(name)[2].split()[0]) / 1024
