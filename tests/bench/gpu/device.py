"""Device: benchmarks image training on a GPU, in ten minutes, with PyTorch and without Ray.

    python -m tests.bench.gpu.device [FILE]

The runs are those of table 1 of arXiv:2210.13512. Training steps are timed in blocks of several
steps, after warm-up steps; the GPU is synchronised only before and after a block. If ways to
compute a step are compared, their blocks alternate. If a part of the benchmark fails, its error is
recorded and the other parts still run. On a machine without a GPU the same code runs at a small
size, as a rehearsal; the measured values then have no meaning.
"""

import io
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import redirect_stderr
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any, get_args

import torch

from mixup_core.images.forward import Precision, kernels
from mixup_core.images.training import TrainingState, fit
from mixup_core.laws import Beta, Erm, Law
from mixup_core.numeric_settings import fix_precision
from tests.bench.gpu import reference
from tests.bench.gpu.clocks import ask_nvidia_smi, watched_clocks
from tests.bench.gpu.rungs import LADDER, Rung, TrainingStep, build
from tests.bench.gpu.sharing import in_one_line, side_by_side
from tests.bench.gpu.timing import timed, wait
from tests.bench.gpu.workload import (
    TABLE_1_PRECISION,
    Size,
    config_of,
    images_of,
    network_of,
    size_and_device,
)

Figures = dict[str, Any]
_BLOCKS = 5


def measure(write: Callable[[Figures], None]) -> Figures:
    """Run all parts of the GPU benchmark and return their values: a mapping by name for each part.

    Each part has its own process, because some errors of a GPU make a process unusable.

    Args:
        write: Called after every part with all values measured so far.
    """
    fix_precision(os.environ)
    size, device = size_and_device()
    found: Figures = {
        "rehearsal": device.type != "cuda",
        "batch": size.batch,
        "blocks": _BLOCKS,
        "steps of a block": size.steps,
        "images": images_of(size.data[0])[1],
        "made_with": environment(device),
    }
    for name in PARTS:
        started = time.monotonic()
        with watched_clocks(device) as clocks:
            figures = _in_own_process(name)
        found[name] = {**figures, "took seconds": time.monotonic() - started, **clocks}
        write(found)
    return found


def _in_own_process(part: str) -> Figures:
    command = [sys.executable, "-m", "tests.bench.gpu.device", "--part", part]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        return {"failed": f"exit code {done.returncode}; stderr has the error"}
    figures: Figures = json.loads(done.stdout.splitlines()[-1])
    return figures


def environment(device: torch.device) -> Figures:
    """Return the date, the GPU or CPU, and the versions of Python, PyTorch and the driver."""
    found: Figures = {
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "device": platform.processor() or platform.machine(),
    }
    if device.type == "cuda":
        found |= {
            "device": torch.cuda.get_device_name(device),
            "cuda": torch.version.cuda,
            "cudnn": torch.backends.cudnn.version(),  # type: ignore[no-untyped-call]
            "driver and power limit": ask_nvidia_smi("driver_version,power.limit"),
        }
    return found


def reference_pipeline(size: Size, device: torch.device) -> Figures:
    """Return images per second of a conventional loop in a warm-up, an ERM and a mixup epoch."""
    data, _ = images_of(size.data[0])
    views = reference.ConcatenatedViews(data.train, data.info, seed=0)
    network = network_of(size.model, data.info).to(device)
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)
    found: Figures = {}
    laws: Mapping[str, Law] = {"warm-up": Erm(), "ERM": Erm(), "mixup": Beta(alpha=1.0)}
    for name, law in laws.items():
        started = time.perf_counter()
        reference.train_epoch(network, optimizer, views, size.batch, law, device)
        wait(device)
        found[f"{name}, images per second"] = len(views) / (time.perf_counter() - started)
    return found


def ladder(size: Size, device: torch.device) -> Figures:
    """Return images per second (with data loading) and peak memory of each way to compute a step.

    `LADDER` lists these ways to compute a training step, such as `float32, NCHW`. One that cannot
    run on this device gets an error message in place of its speed.
    """
    steps: dict[str, TrainingStep] = {}
    found: Figures = {}
    for name, rung in LADDER.items():
        try:
            started = time.perf_counter()
            if device.type == "cuda":
                torch.cuda.reset_peak_memory_stats(device)
                held = torch.cuda.memory_allocated(device)
            with redirect_stderr(io.StringIO()):  # the compiler prints every kernel that it tries
                steps[name] = step = build(rung, size, device)
                for _ in range(3):
                    step()
                wait(device)
            found[f"{name}: begin, seconds"] = time.perf_counter() - started
            if device.type == "cuda":
                peak = torch.cuda.max_memory_allocated(device) - held
                found[f"{name}: peak MB"] = peak / 1e6
        except Exception as error:  # a variant that this device or build does not support
            steps.pop(name, None)
            found[f"{name}: absent"] = in_one_line(error)
    rates: dict[str, list[float]] = {name: [] for name in steps}
    for _ in range(_BLOCKS):
        for name, step in steps.items():
            rates[name].append(size.batch / timed(step, size.steps, device))
    return found | {name: median(rate) for name, rate in rates.items()}


def checkpoint(size: Size, device: torch.device) -> Figures:
    """Return the seconds to serialise a training state and write it to disk, and its size in MB."""
    config, (data, _) = config_of(size, size.data[0]), images_of(size.data[0])
    state = TrainingState.initial(config, data.info, device)
    list(islice(fit(config, data, state, device=device), 1))
    wait(device)
    started = time.perf_counter()
    content = state.to_bytes()
    made = time.perf_counter()
    with tempfile.NamedTemporaryFile() as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    written = time.perf_counter()
    return {
        "bytes made, seconds": made - started,
        "written, seconds": written - made,
        "MB": len(content) / 1e6,
    }


def determinism(size: Size, device: torch.device) -> Figures:
    """Return the time of a step with deterministic kernels, as a multiple of that without them."""
    free = timed(build(Rung(), size, device), size.steps, device, warm_up=3)
    with kernels(deterministic=True):
        fixed = timed(build(Rung(), size, device), size.steps, device, warm_up=3)
    return {"time as a multiple": fixed / free}


def hours(size: Size, device: torch.device) -> Figures:
    """Return seconds per epoch on each dataset, and hours of a whole study, for each precision.

    The study has 15 runs of 100 epochs on each dataset, as the bundled study `table1` has. Its
    hours are the sum over all runs, one after another. A timed epoch is complete: all training
    images with the smaller last batch, and the evaluation on test images. The precision of the
    bundled studies is returned, too.
    """
    found: Figures = {"precision of the bundled studies": TABLE_1_PRECISION}
    for precision in get_args(Precision):
        total = 0.0
        for name in size.data:
            run = fit(config_of(size, name, precision), images_of(name)[0], device=device)
            next(run)  # the first epoch is slower: it allocates memory and chooses kernels
            started = time.perf_counter()
            next(run)
            found[f"{precision}, {name}, seconds of an epoch"] = time.perf_counter() - started
            total += 15 * 100 * found[f"{precision}, {name}, seconds of an epoch"]
        found[precision] = total / 3600
    return found


PARTS: Mapping[str, Callable[[Size, torch.device], Figures]] = {
    "reference": reference_pipeline,
    "ladder, images per second": ladder,
    "runs side by side, images per second of all": side_by_side,
    "deterministic kernels": determinism,
    "checkpoint": checkpoint,
    "hours of table 1": hours,
}


def main(arguments: list[str]) -> None:
    """Run the GPU benchmark; write its results to a file (default `device.json`) and print them."""
    if arguments[:1] == ["--part"]:
        sys.stdout.write(json.dumps(PARTS[arguments[1]](*size_and_device())) + "\n")
        return
    file = Path(arguments[0]) if arguments else Path("device.json")

    def write(so_far: Figures) -> None:
        file.write_text(json.dumps(so_far, indent=2) + "\n")

    found = measure(write)
    sys.stdout.write(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
