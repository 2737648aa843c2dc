"""Clocks: what nvidia-smi says of a GPU while it is measured; one that throttles is slower."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import torch

_QUERY = {
    "clock of processors, MHz": "clocks.sm",
    "clock of memory, MHz": "clocks.mem",
    "temperature, C": "temperature.gpu",
    "power, W": "power.draw",
}
_THROTTLING = "clocks_throttle_reasons.active"


@contextmanager
def watched_clocks(device: torch.device) -> Iterator[dict[str, str]]:
    """Yield a dict that has the range of each clock, and the reasons to throttle, afterwards.

    The GPU is asked twice a second by a process beside this one. Without a GPU the dict is empty.
    """
    found: dict[str, str] = {}
    if device.type != "cuda":
        yield found
        return
    command = _command(",".join([*_QUERY.values(), _THROTTLING]), "-lms", "500")
    try:
        watcher = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    except OSError as error:
        found["clocks: absent"] = str(error)
        yield found
        return
    try:
        yield found
    finally:
        watcher.terminate()
        rows = [line.split(", ") for line in watcher.communicate()[0].splitlines()]
        rows = [row for row in rows if len(row) == len(_QUERY) + 1]
        for name, values in zip([*_QUERY, "throttling"], zip(*rows, strict=True), strict=False):
            found[name] = _range(values) if name in _QUERY else ", ".join(sorted(set(values)))


def _range(values: tuple[str, ...]) -> str:
    try:
        numbers = sorted(map(float, values))
    except ValueError:  # a GPU without this sensor
        return ", ".join(sorted(set(values)))
    return f"{numbers[0]:g} to {numbers[-1]:g}"


def ask_nvidia_smi(names: str) -> str:
    """Return the values of properties of the GPU, or why there are none."""
    try:
        done = subprocess.run(_command(names), capture_output=True, text=True, check=False)
    except OSError as error:
        return str(error)
    return done.stdout.strip()


def _command(names: str, *options: str) -> list[str]:
    return ["nvidia-smi", f"--query-gpu={names}", "--format=csv,noheader,nounits", *options]
