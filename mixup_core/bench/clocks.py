"""Clocks: nvidia-smi's readings of a GPU during a measurement, to detect throttling."""

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
    """Yield a dict that is filled at exit with the GPU's clocks and reasons of throttling.

    A child process queries the GPU twice a second. The dict maps each clock, the temperature and
    the power to its range. Without a GPU it stays empty.
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
    """Return nvidia-smi's values of some GPU properties, or the error message if it cannot run.

    Args:
        names: Property names as nvidia-smi's `--query-gpu` takes them, separated by commas.
    """
    try:
        done = subprocess.run(_command(names), capture_output=True, text=True, check=False)
    except OSError as error:
        return str(error)
    return done.stdout.strip()


def _command(names: str, *options: str) -> list[str]:
    return ["nvidia-smi", f"--query-gpu={names}", "--format=csv,noheader,nounits", *options]
