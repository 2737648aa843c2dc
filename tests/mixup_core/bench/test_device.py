"""Device: each part of the bench at a size of its own, small enough for a CPU."""

import json
import math
import platform
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from mixup_core.bench import device as bench
from mixup_core.bench.device import GPU, REHEARSAL, Figures, Size
from mixup_core.images.choices.models import Mlp
from mixup_core.images.data.catalog import CATALOG
from mixup_core.records import EpochRecord

CPU = torch.device("cpu")
TINY = Size(
    images=40, batch=20, steps=1, matrix=16, epochs=2, seeds=3, processes=0,
    model=Mlp(hidden=(8,)), data=("digits",),
)  # fmt: skip
PARTS = [
    "ceilings",
    "reference",
    "ladder, images per second",
    "runs side by side, images per second of all",
    "bfloat16 minus float32, test error",
    "deterministic kernels",
    "epochs, seconds",
]


@pytest.fixture
def rehearsal(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without a GPU, where what is rehearsed is tiny."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(bench, "REHEARSAL", TINY)


class Clock:
    """Stands still but where it is moved on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        monkeypatch.setattr(time, "perf_counter", lambda: self.now)

    def stepper(self, seconds: list[float]) -> Callable[[], None]:
        waiting = iter(seconds)

        def step() -> None:
            self.now += next(waiting)

        return step


@pytest.mark.parametrize(
    ("seconds", "times", "options", "mean"),
    [
        ([50.0, 2.0, 4.0, 9.0], 3, {}, 5.0),
        ([50.0, 60.0, 70.0, 1.0, 2.0], 2, {"warm_up": 3}, 1.5),
        ([8.0], 1, {"warm_up": 0}, 8.0),
    ],
)
def test_a_step_takes_the_mean_of_those_that_are_timed_once_some_are_not(
    monkeypatch: pytest.MonkeyPatch,
    seconds: list[float],
    times: int,
    options: dict[str, int],
    mean: float,
) -> None:
    step = Clock(monkeypatch).stepper(seconds)
    assert bench.timed(step, times, CPU, **options) == mean
    with pytest.raises(StopIteration):
        step()


@pytest.mark.parametrize("size", [GPU, REHEARSAL], ids=["gpu", "rehearsal"])
def test_a_size_has_whole_batches_of_published_images_and_more_than_one_epoch(size: Size) -> None:
    assert size.images % size.batch == 0
    assert set(size.data) <= set(CATALOG)
    assert size.epochs >= 2, "a run is cut after the first and goes on"
    assert size.processes >= 1
    assert size.images // 6 >= 1


def test_on_a_gpu_the_data_sets_and_the_images_are_those_of_table_1() -> None:
    assert GPU.data == ("fashion-mnist", "cifar10", "cifar100")
    assert GPU.images == CATALOG["fashion-mnist"].num_train


def test_the_environment_names_versions_and_the_device() -> None:
    found = bench.environment(CPU)
    assert found["python"] == platform.python_version()
    assert found["torch"] == torch.__version__
    assert found["device"]
    assert not found.keys() & {"cuda", "cudnn", "nvidia-smi"}


def test_rates_of_products_and_copies_follow_from_their_seconds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bench, "timed", lambda *_, **__: 1e-6)
    found = bench.ceilings(TINY, CPU)
    product = 2 * 16**3 / 1e-6 / 1e12
    assert found == {
        "TF32, TFLOP per second": pytest.approx(product),
        "bfloat16, TFLOP per second": pytest.approx(product),
        "copy, GB read per second": pytest.approx(16 * 16 * 4 / 1e-6 / 1e9),
    }


def test_after_the_ceilings_products_are_as_exact_as_before() -> None:
    found = bench.ceilings(TINY, CPU)
    assert all(rate > 0 for rate in found.values())
    assert not torch.backends.cuda.matmul.allow_tf32


def test_the_papers_kind_of_pipeline_has_a_rate() -> None:
    (rate,) = bench.reference_pipeline(TINY, CPU).values()
    assert 0 < rate < math.inf


def test_each_rung_has_a_rate_or_says_why_it_is_absent() -> None:
    found = bench.ladder(TINY, CPU)
    present = {"float32", "bfloat16", "bfloat16, fused Adam"}
    absent = {"bfloat16, fused Adam, compiled": "compiling can only be measured on a GPU",
              "bfloat16, fused Adam, CUDA graph": "a CUDA graph needs a GPU"}  # fmt: skip
    for name in present:
        assert found.pop(name) > 0
        assert found.pop(f"{name}: begin, seconds") > 0
    assert found == {
        f"{name}: absent": f"RuntimeError: {rule}, got (device=cpu)."
        for name, rule in absent.items()
    }


def test_a_rung_whose_steps_fail_says_why_on_one_line_and_stops_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loss = bench._loss

    def fails(config: Any, *others: Any) -> torch.Tensor:
        if config.precision == "bfloat16":
            raise OSError("no bfloat16 " + 300 * "x" + "\nnor anything else")
        return loss(config, *others)

    monkeypatch.setattr(bench, "_loss", fails)
    found = bench.ladder(TINY, CPU)
    assert found["float32"] > 0
    assert found.keys() - {"float32", "float32: begin, seconds"} == {
        f"bfloat16{rest}: absent"
        for rest in ("", ", fused Adam", ", fused Adam, compiled", ", fused Adam, CUDA graph")
    }
    said = found["bfloat16: absent"]
    assert said.startswith("OSError: no bfloat16 xxx")
    assert len(said) == 200


def test_the_rate_of_a_rung_is_the_median_of_its_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = iter([float(n) for n in (10, 10, 20, 1, 2, 4, 5, 5, 10, 2, 4, 8, 4, 8, 16)])
    monkeypatch.setattr(bench, "timed", lambda *_, **__: next(seconds))
    found = bench.ladder(TINY, CPU)
    # Seconds by rung, block by block: 10 1 5 2 4, then twice 10 2 5 4 8 and 20 4 10 8 16.
    assert found["float32"] == 20 / 4
    assert found["bfloat16"] == 20 / 5
    assert found["bfloat16, fused Adam"] == 20 / 10


def worker(tmp_path: Path, says: str) -> str:
    """Return a program in the place of Python that notes how it was called."""
    program = tmp_path / "python"
    program.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/calls\nprintf "{says}"\n')
    program.chmod(0o700)
    return str(program)


def test_processes_side_by_side_add_their_rates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", worker(tmp_path, "12.5\\n"))
    found = bench.side_by_side(replace(TINY, processes=3), CPU)
    assert found == {"1": 12.5, "2": 25.0, "3": 37.5}
    assert (tmp_path / "calls").read_text() == "-P -m mixup_core.bench.device --steps\n" * 6


def test_a_process_that_says_nothing_leaves_no_rate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", worker(tmp_path, ""))
    (rate,) = bench.side_by_side(replace(TINY, processes=1), CPU).values()
    assert math.isnan(rate)


def test_precisions_differ_seed_by_seed_by_a_difference_of_errors() -> None:
    found = bench.precisions(TINY, CPU)
    assert len(found["by seed"]) == 3
    held_out = 40 - 40 * 5 // 6
    for difference in found["by seed"]:
        assert -1 <= difference <= 1
        assert difference * held_out == pytest.approx(round(difference * held_out), abs=1e-6)
    assert found["mean"] == pytest.approx(sum(found["by seed"]) / 3)


def test_what_is_told_of_precisions_is_the_last_error_of_bfloat16_minus_float32(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fit(config: Any, data: Any, *, device: torch.device) -> list[EpochRecord]:
        assert (len(data.train), len(data.test)) == (33, 7)
        last = 0.5 + config.seed / 10 if config.precision == "bfloat16" else 0.25
        errors = (0.9, last)
        return [EpochRecord(epoch=n, metrics={"test/error": e}) for n, e in enumerate(errors)]

    monkeypatch.setattr(bench, "fit", fit)
    found = bench.precisions(TINY, CPU)
    assert found["by seed"] == pytest.approx([0.25, 0.35, 0.45])
    assert found["mean"] == pytest.approx(0.35)


def test_a_resumed_run_has_equal_bits_and_kernels_are_free_again_afterwards() -> None:
    found = bench.determinism(TINY, CPU)
    assert found["resumed with equal bits"] is True
    assert found["time as a multiple"] > 0
    assert not torch.are_deterministic_algorithms_enabled()


def test_kernels_are_free_again_where_a_run_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        assert torch.are_deterministic_algorithms_enabled()
        raise MemoryError("no memory for it")

    monkeypatch.setattr(bench, "fit", fail)
    with pytest.raises(MemoryError):
        bench.determinism(TINY, CPU)
    assert not torch.are_deterministic_algorithms_enabled()


def test_epochs_are_timed_without_the_first_and_table_1_is_45_runs_of_100(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = Clock(monkeypatch)

    def fit(config: Any, data: Any, *, device: torch.device) -> Any:
        assert (config.epochs, len(data.train), len(data.test)) == (2, 40, 6)
        for seconds in (500.0, 3.0 if config.data.name == "digits" else 5.0):
            clock.now += seconds
            yield None

    monkeypatch.setattr(bench, "fit", fit)
    one = bench.epochs(TINY, CPU)
    assert one == {"digits, with the test images": 3.0}
    assert bench.epochs(replace(TINY, data=("digits", "mnist")), CPU) == {
        **one,
        "mnist, with the test images": 5.0,
        "table 1 on this device, hours": pytest.approx((3 + 5) * 15 * 100 / 3600),
    }


def test_an_epoch_of_each_data_set_is_really_trained() -> None:
    found = bench.epochs(replace(TINY, data=("digits", "mnist")), CPU)
    assert all(value > 0 for value in found.values())


@pytest.mark.usefixtures("rehearsal")
def test_all_parts_are_measured_and_what_is_known_is_written_after_each() -> None:
    written: list[Figures] = []
    found = bench.measure(lambda so_far: written.append(dict(so_far)))
    head = ["rehearsal", "batch", "blocks", "steps of a block", "made_with"]
    assert list(found) == head + PARTS
    assert (found["rehearsal"], found["batch"], found["steps of a block"]) == (True, 20, 1)
    assert [list(part) for part in written] == [
        head + PARTS[:number] for number in range(1, len(PARTS) + 1)
    ]
    assert all(found[part]["took seconds"] >= 0 for part in PARTS)
    assert json.loads(json.dumps(found)) == found


@pytest.mark.usefixtures("rehearsal")
@pytest.mark.parametrize("named", [True, False])
def test_the_figures_are_written_to_a_file_and_said(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    named: bool,
) -> None:
    figures = {"a": 1.5}

    def measure(write: Callable[[Figures], None]) -> Figures:
        write({"half": True})
        assert json.loads(file.read_text()) == {"half": True}
        write(figures)
        return figures

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(bench, "measure", measure)
    file = tmp_path / ("other.json" if named else "device.json")
    bench.main([str(file)] if named else [])
    assert file.read_text() == capsys.readouterr().out == json.dumps(figures, indent=2) + "\n"


@pytest.mark.usefixtures("rehearsal")
def test_a_process_of_several_says_its_rate_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = []

    def timed(step: Callable[[], object], times: int, device: torch.device, warm_up: int) -> float:
        asked.append((times, warm_up))
        step()
        return 0.5

    monkeypatch.setattr(bench, "timed", timed)
    bench.main(["--steps"])
    assert capsys.readouterr().out == "40.0\n"
    assert asked == [(5, 3)]
