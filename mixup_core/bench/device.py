"""Device: what a GPU can do with the runs of table 1, in ten minutes, with PyTorch alone.

    python -m mixup_core.bench.device [FILE]

Images are noise, never zeros, which multiply faster. Steps are timed in blocks that go through the
variants in turn, after steps that are not timed; the device is waited for around a block only. On a
machine without a GPU the same code runs at a small size: a rehearsal, whose figures say nothing.
"""

import json
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from statistics import median
from typing import Any

import torch

from mixup_core.bench import reference
from mixup_core.images.batch import Batch
from mixup_core.images.batches import Draws, batches
from mixup_core.images.choices.models import Mlp, NarrowResNet, ResNet18
from mixup_core.images.config import TrainConfig
from mixup_core.images.data.catalog import CATALOG, DatasetInfo
from mixup_core.images.data.datasets import Images, Splits
from mixup_core.images.data_config import DataConfig
from mixup_core.images.forward import forward
from mixup_core.images.mix_config import MixConfig
from mixup_core.images.training import TrainingState, fit
from mixup_core.images.views import TrainingImages
from mixup_core.laws import Beta

Figures = dict[str, Any]
_BLOCKS = 5


@dataclass(frozen=True, kw_only=True, slots=True)
class Size:
    """The amount of work that is measured."""

    images: int
    """Images of an epoch."""
    batch: int
    steps: int
    """Steps of a block."""
    matrix: int
    """Side of the matrices multiplied."""
    epochs: int
    seeds: int
    processes: int
    """Largest number of processes that share the device."""
    model: ResNet18 | NarrowResNet | Mlp
    data: tuple[str, ...]


GPU = Size(
    images=60_000,
    batch=750,
    steps=40,
    matrix=8192,
    epochs=3,
    seeds=3,
    processes=3,
    model=ResNet18(),
    data=("fashion-mnist", "cifar10", "cifar100"),
)
REHEARSAL = Size(
    images=300,
    batch=100,
    steps=2,
    matrix=256,
    epochs=2,
    seeds=2,
    processes=1,
    model=NarrowResNet(),
    data=("digits",),
)


def measure(write: Callable[[Figures], None]) -> Figures:
    """Measure all and return it; what is known so far is written after every part."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    size = GPU if device.type == "cuda" else REHEARSAL
    found: Figures = {
        "rehearsal": device.type != "cuda",
        "batch": size.batch,
        "blocks": _BLOCKS,
        "steps of a block": size.steps,
        "made_with": environment(device),
    }
    parts: Mapping[str, Callable[[Size, torch.device], Figures]] = {
        "ceilings": ceilings,
        "reference": reference_pipeline,
        "ladder, images per second": ladder,
        "runs side by side, images per second of all": side_by_side,
        "bfloat16 minus float32, test error": precisions,
        "deterministic kernels": determinism,
        "epochs, seconds": epochs,
    }
    for name, part in parts.items():
        started = time.monotonic()
        found[name] = {**part(size, device), "took seconds": time.monotonic() - started}
        write(found)
    return found


def environment(device: torch.device) -> Figures:
    """Return device, driver and versions."""
    found: Figures = {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "device": platform.processor() or platform.machine(),
    }
    if device.type == "cuda":
        asked = ["nvidia-smi", "--query-gpu=name,driver_version,power.limit", "--format=csv"]
        said = subprocess.run(asked, capture_output=True, text=True, check=False).stdout
        found |= {
            "device": torch.cuda.get_device_name(device),
            "cuda": torch.version.cuda,
            "cudnn": torch.backends.cudnn.version(),  # type: ignore[no-untyped-call]
            "nvidia-smi": said.strip().splitlines()[-1:],
        }
    return found


def ceilings(size: Size, device: torch.device) -> Figures:
    """Return the rates of matrix products and of copies, which no step exceeds."""
    found: Figures = {}
    side = size.matrix
    for dtype in (torch.float32, torch.bfloat16):
        torch.backends.cuda.matmul.allow_tf32 = True
        one, other = (torch.randn(side, side, device=device, dtype=dtype) for _ in range(2))
        seconds = timed(partial(torch.matmul, one, other), 10, device)
        name = "TF32" if dtype == torch.float32 else "bfloat16"
        found[f"{name}, TFLOP per second"] = 2 * side**3 / seconds / 1e12
    torch.backends.cuda.matmul.allow_tf32 = False
    values = torch.randn(side, side, device=device)
    into = torch.empty_like(values)
    seconds = timed(lambda: into.copy_(values), 10, device)
    found["copy, GB read per second"] = values.numel() * 4 / seconds / 1e9
    return found


def reference_pipeline(size: Size, device: torch.device) -> Figures:
    """Return the images per second of the papers' kind of pipeline, restated."""
    images, info = _images(size, size.data[0]), CATALOG[size.data[0]]
    data = reference.ConcatenatedViews(images, info, seed=0)
    network = _network(size, info).to(device)
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)
    started = time.perf_counter()
    reference.train_epoch(network, optimizer, data, size.batch, Beta(alpha=1.0), device)
    _wait(device)
    return {"mixup, images per second": len(images) / (time.perf_counter() - started)}


def ladder(size: Size, device: torch.device) -> Figures:
    """Return the images per second of whole steps, data included, rung by rung.

    The rung that the product stands on is `bfloat16, fused Adam`. A rung that fails
    says why, and has no figure.
    """
    steps: dict[str, Callable[[], object]] = {}
    found: Figures = {}
    rungs: Mapping[str, Callable[[], Callable[[], object]]] = {
        "float32": lambda: _stepper(size, device, precision="float32", fused=False),
        "bfloat16": lambda: _stepper(size, device, precision="bfloat16", fused=False),
        "bfloat16, fused Adam": lambda: _stepper(size, device, precision="bfloat16"),
        "bfloat16, fused Adam, compiled": lambda: _stepper(
            size, device, precision="bfloat16", compiled=True
        ),
        "bfloat16, fused Adam, CUDA graph": lambda: _graphed(size, device),
    }
    for name, build in rungs.items():
        try:
            started = time.perf_counter()
            steps[name] = step = build()
            for _ in range(3):
                step()
            _wait(device)
            found[f"{name}: begin, seconds"] = time.perf_counter() - started
        except Exception as error:  # a rung that this device or build has not got
            steps.pop(name, None)
            found[f"{name}: absent"] = f"{type(error).__name__}: {error}".splitlines()[0][:200]
    rates: dict[str, list[float]] = {name: [] for name in steps}
    for _ in range(_BLOCKS):
        for name, step in steps.items():
            rates[name].append(size.batch / timed(step, size.steps, device))
    return found | {name: median(rate) for name, rate in rates.items()}


def side_by_side(size: Size, device: torch.device) -> Figures:
    """Return the images per second of 1, 2 and 3 processes that share the device."""
    del device  # each process finds its own
    found: Figures = {}
    for processes in range(1, size.processes + 1):
        command = [sys.executable, "-P", "-m", "mixup_core.bench.device", "--steps"]
        workers = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(processes)]
        rates = [float(worker.communicate()[0] or "nan") for worker in workers]
        found[str(processes)] = sum(rates)
    return found


def precisions(size: Size, device: torch.device) -> Figures:
    """Return the difference in test error, seed by seed, after some epochs on easy images."""
    data = _learnable(size)
    differences = []
    for seed in range(size.seeds):
        errors = [
            _trained(replace(_config(size, size.data[0], precision), seed=seed), data, device)
            for precision in ("bfloat16", "float32")
        ]
        differences.append(errors[0] - errors[1])
    return {"by seed": differences, "mean": sum(differences) / len(differences)}


def determinism(size: Size, device: torch.device) -> Figures:
    """Return the price of deterministic kernels, and whether a resumed run then has equal bits."""
    free = timed(_stepper(size, device, precision="bfloat16"), size.steps, device, warm_up=3)
    torch.use_deterministic_algorithms(mode=True)
    try:
        fixed = timed(_stepper(size, device, precision="bfloat16"), size.steps, device, warm_up=3)
        config, data = _config(size, size.data[0], "bfloat16"), _learnable(size)
        straight = TrainingState.initial(config, data.info, device)
        list(fit(config, data, straight, device=device))
        half = TrainingState.initial(config, data.info, device)
        list(islice(fit(config, data, half, device=device), 1))
        resumed = TrainingState.initial(config, data.info, device)
        resumed.load_bytes(half.to_bytes(), half.records)
        list(fit(config, data, resumed, device=device))
        weights = (state.network.state_dict() for state in (straight, resumed))
        equal = all(torch.equal(a, b) for a, b in zip(*(w.values() for w in weights), strict=True))
    finally:
        torch.use_deterministic_algorithms(mode=False)
    return {"time as a multiple": fixed / free, "resumed with equal bits": equal}


def epochs(size: Size, device: torch.device) -> Figures:
    """Return the seconds of an epoch of each data set of table 1, and the hours of its 45 runs."""
    found: Figures = {}
    total = 0.0
    for name in size.data:
        config = replace(_config(size, name, "bfloat16"), epochs=2)
        images = _images(size, name)
        test = Images(
            pixels=images.pixels[: size.images // 6], labels=images.labels[: size.images // 6]
        )
        data = Splits(info=CATALOG[name], train=images, val=None, test=test)
        run = fit(config, data, device=device)
        next(run)  # memory is taken and kernels are chosen
        started = time.perf_counter()
        next(run)
        found[f"{name}, with the test images"] = time.perf_counter() - started
        total += 15 * 100 * found[f"{name}, with the test images"]
    if len(size.data) > 1:
        found["table 1 on this device, hours"] = total / 3600
    return found


def timed(
    step: Callable[[], object], times: int, device: torch.device, *, warm_up: int = 1
) -> float:
    """Return the seconds of a step, the mean of some; the device is waited for at both ends."""
    for _ in range(warm_up):
        step()
    _wait(device)
    started = time.perf_counter()
    for _ in range(times):
        step()
    _wait(device)
    return (time.perf_counter() - started) / times


def _stepper(
    size: Size, device: torch.device, *, precision: str, fused: bool = True, compiled: bool = False
) -> Callable[[], object]:
    """Return a training step that takes its next batch from an endless row of epochs.

    Raises:
        RuntimeError: If a compiled step is asked of a CPU.
    """
    name = size.data[0]
    config, info = _config(size, name, precision), CATALOG[name]
    network = _network(size, info).to(device, memory_format=torch.channels_last)  # type: ignore[call-overload]
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3, fused=fused)
    images = TrainingImages(_images(size, name), info, config.data, 0, device)
    rows = _endless(config, images)
    if compiled and device.type != "cuda":
        raise RuntimeError("compiling can only be measured on a GPU, got (device=cpu).")
    seen = torch.compile(network) if compiled else network

    def step() -> object:
        batch = next(rows)
        optimizer.zero_grad(set_to_none=True)
        loss = _loss(config, seen, batch)
        loss.backward()  # type: ignore[no-untyped-call]
        return optimizer.step()

    return step


def _graphed(size: Size, device: torch.device) -> Callable[[], object]:
    """Return a step whose network, loss and optimizer are one CUDA graph over copied batches.

    Raises:
        RuntimeError: If the device has no graphs.
    """
    if device.type != "cuda":
        raise RuntimeError("a CUDA graph needs a GPU, got (device=cpu).")
    name = size.data[0]
    config, info = _config(size, name, "bfloat16"), CATALOG[name]
    network = _network(size, info).to(device, memory_format=torch.channels_last)  # type: ignore[call-overload]
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3, fused=True, capturable=True)
    rows = _endless(config, TrainingImages(_images(size, name), info, config.data, 0, device))
    held = next(rows)

    def compute() -> None:
        optimizer.zero_grad(set_to_none=True)
        _loss(config, network, held).backward()  # type: ignore[no-untyped-call]
        optimizer.step()

    aside = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    aside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(aside):
        for _ in range(3):
            compute()
    torch.cuda.current_stream().wait_stream(aside)
    graph = torch.cuda.CUDAGraph()
    optimizer.zero_grad(set_to_none=True)
    with torch.cuda.graph(graph):
        compute()

    def step() -> None:
        batch = next(rows)
        for part in ("mixed", "labels", "partner_labels", "lam"):
            getattr(held, part).copy_(getattr(batch, part))
        graph.replay()

    return step


def _loss(config: TrainConfig, network: Any, batch: Batch) -> torch.Tensor:
    logits = batch.logits(partial(forward, network, precision=config.precision))
    losses = config.loss.per_image(logits, batch.labels, batch.partner_labels, batch.lam)
    return losses.mean()


def _endless(config: TrainConfig, images: TrainingImages) -> Iterator[Batch]:
    """Yield whole batches for ever: the draws of an epoch are made and copied at its begin."""
    how = config.in_epoch(0)
    for epoch in cycle(range(1000)):
        for batch in batches(images, Draws.for_training(config, epoch, how, images), how):
            if len(batch) == config.batch_size:
                yield batch


def _trained(config: TrainConfig, data: Splits, device: torch.device) -> float:
    return list(fit(config, data, device=device))[-1].metrics["test/error"]


def _config(size: Size, name: str, precision: Any) -> TrainConfig:
    return TrainConfig(
        data=DataConfig(name=name, views="concat"),
        model=size.model,
        mix=MixConfig(law=Beta(alpha=1.0)),
        epochs=size.epochs,
        batch_size=size.batch,
        precision=precision,
    )


def _network(size: Size, info: DatasetInfo) -> torch.nn.Module:
    return size.model.initialised(
        in_channels=2 * info.channels,
        num_classes=info.num_classes,
        image_size=info.image_size,
        seed=0,
    )


def _images(size: Size, name: str) -> Images:
    info, rng = CATALOG[name], torch.Generator().manual_seed(0)
    shape = (size.images, info.channels, info.image_size, info.image_size)
    pixels = torch.randint(0, 256, shape, dtype=torch.uint8, generator=rng)
    return Images(pixels=pixels, labels=torch.arange(size.images) % info.num_classes)


def _learnable(size: Size) -> Splits:
    """Return images of noise around one pattern per class, which a network tells apart."""
    info = CATALOG[size.data[0]]
    noise, rng = _images(size, size.data[0]), torch.Generator().manual_seed(1)
    patterns = torch.randint(
        0, 256, (info.num_classes, *noise.pixels.shape[1:]), dtype=torch.uint8, generator=rng
    )
    pixels = (noise.pixels // 4) * 3 + patterns[noise.labels] // 4
    cut = size.images * 5 // 6
    train, test = (
        Images(pixels=pixels[part], labels=noise.labels[part])
        for part in (slice(None, cut), slice(cut, None))
    )
    return Splits(info=info, train=train, val=None, test=test)


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def main(arguments: list[str]) -> None:
    """Measure all into a file; with `--steps` print the rate of this process alone."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    size = GPU if device.type == "cuda" else REHEARSAL
    if arguments == ["--steps"]:
        step = _stepper(size, device, precision="bfloat16")
        seconds = timed(step, _BLOCKS * size.steps, device, warm_up=3)
        sys.stdout.write(f"{size.batch / seconds}\n")
        return
    file = Path(arguments[0]) if arguments else Path("device.json")

    def write(so_far: Figures) -> None:
        file.write_text(json.dumps(so_far, indent=2) + "\n")

    found = measure(write)
    sys.stdout.write(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
