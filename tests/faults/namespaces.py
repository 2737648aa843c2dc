"""Namespaces: the processes and mounts of faults end with those of `in_namespace.sh`."""

import os
from pathlib import Path


def is_in_namespace() -> bool:
    """Return whether this process runs in a process namespace started by `in_namespace.sh`."""
    outer = os.environ.get("OUTER_PIDNS")
    return outer is not None and str(Path("/proc/self/ns/pid").readlink()) != outer
