"""Clocks: a GPU's clocks during a measurement, as nvidia-smi reports them, to detect throttling."""

import shutil
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
    """Record a GPU's clocks, temperature, power and reasons of throttling during a `with` block.

    A child process runs nvidia-smi, which queries the GPU twice a second.

    Yields:
        A dict that is filled when the block ends: it maps the name of each quantity to its range,
        as text (`210 to 1980`), and `throttling` to nvidia-smi's codes of the reasons. Without a
        GPU or nvidia-smi the dict stays empty.
    """
    found: dict[str, str] = {}
    if device.type != "cuda" or shutil.which("nvidia-smi") is None:
        yield found
        return
    command = _command(",".join([*_QUERY.values(), _THROTTLING]), "-lms", "500")
    watcher = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
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
    except ValueError:  # this GPU does not measure the quantity
        return ", ".join(sorted(set(values)))
    return f"{numbers[0]:g} to {numbers[-1]:g}"


def ask_nvidia_smi(names: str) -> str:
    """Return properties of the GPU as nvidia-smi prints them; nothing if it is not installed.

    Args:
        names: Property names as nvidia-smi's `--query-gpu` takes them, separated by commas.
    """
    if shutil.which("nvidia-smi") is None:
        return ""
    done = subprocess.run(_command(names), capture_output=True, text=True, check=False)
    return done.stdout.strip()


def _command(names: str, *options: str) -> list[str]:
    return ["nvidia-smi", f"--query-gpu={names}", "--format=csv,noheader,nounits", *options]
