"""Find out from `ray status` if a Ray cluster starts nodes by itself."""

import re
import subprocess
import sys
import time

from sweeps.running.placement import Growth

_PATIENCE = 10.0
"""Seconds in which a head that was just started writes its first status."""
_NO_STATUS = "No cluster status"
"""Text that Ray prints before that, and always without an autoscaler."""
_TYPE = re.compile(r"^ \d+ (\S+)$", re.MULTILINE)
"""Count and type of the nodes that are active or idle."""
_BY_HAND = re.compile(r"node_[0-9a-f]{16,}")
"""The type that Ray makes up for a node without one: it was started by hand."""


def growth_of(address: str) -> Growth:
    """Return how nodes join the Ray cluster at an address.

    If Ray does not answer, an autoscaler is assumed: then the user decides where runs go.
    """
    give_up_at = time.monotonic() + _PATIENCE
    while _NO_STATUS in (status := _status(address)):
        if time.monotonic() > give_up_at:
            return "by hand"
        time.sleep(0.5)
    return growth_in(status)


def growth_in(status: str) -> Growth:
    """Return how nodes join the cluster that a text of `ray status` describes."""
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
