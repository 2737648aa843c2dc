"""Autoscaler: find out from `ray status` whether a Ray cluster starts new nodes by itself."""

import re
import subprocess
import sys
import time

from sweeps.running.placement import Growth

_PATIENCE = 10.0
"""Seconds to wait for the first status of a Ray head that was just started."""
_NO_STATUS = "No cluster status"
"""Text that Ray prints before the first status is known, and always if the cluster has no
autoscaler."""
_TYPE = re.compile(r"^ \d+ (\S+)$", re.MULTILINE)
"""Line of `ray status` with a number of nodes and their type."""
_BY_HAND = re.compile(r"node_[0-9a-f]{16,}")
"""Type that Ray gives to nodes which were started by hand."""


def growth_of(address: str) -> Growth:
    """Return how nodes are added to the Ray cluster at an address: `by hand` or `autoscaler`.

    Without an answer it is `autoscaler`: a launch without GPUs then asks the user whether to wait.
    """
    give_up_at = time.monotonic() + _PATIENCE
    while _NO_STATUS in (status := _status(address)):
        if time.monotonic() > give_up_at:
            return "by hand"
        time.sleep(0.5)
    return growth_in(status)


def growth_in(status: str) -> Growth:
    """Return how nodes join a cluster, `by hand` or `autoscaler`, from the text of `ray status`."""
    types = _TYPE.findall(status)
    if types and all(map(_BY_HAND.fullmatch, types)):
        return "by hand"
    return "autoscaler"


def _status(address: str) -> str:
    command = [sys.executable, "-P", "-m", "ray.scripts.scripts", "status", "--address", address]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    except subprocess.TimeoutExpired:
        return ""
    return done.stdout
