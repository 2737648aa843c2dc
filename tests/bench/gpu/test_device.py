"""Device: each part of the GPU bench, in a size that a CPU can run."""

import json
import math
import os
import platform
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from mixup_core.images.choices.models import Mlp
from mixup_core.records import EpochRecord
from tests.bench.gpu import device as bench
from tests.bench.gpu.device import PREDICTED, Figures
from tests.bench.gpu.rungs import LADDER, Rung
from tests.bench.gpu.workload import REHEARSAL, Size

pytestmark = [pytest.mark.long]

CPU = torch.device("cpu")
TINY = replace(
    REHEARSAL, batch=20, steps=1, matrix=16, seeds=3, processes=(), limit=50,
    model=Mlp(hidden=(8,)), small=Mlp(hidden=(4,)),
)  # fmt: skip


@pytest.fixture(autouse=True)
def _no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(bench, "REHEARSAL", TINY)
    monkeypatch.setattr(bench.os, "environ", dict(bench.os.environ))


def test_the_environment_names_versions_and_the_device() -> None:
    found = bench.environment(CPU)
    assert found["python"] == platform.python_version()
    assert found["torch"] == torch.__version__
    assert found["device"]
    assert "cuda" not in found


def test_product_and_copy_rates_are_computed_from_the_measured_seconds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bench, "timed", lambda *_, **__: 1e-6)
    product = pytest.approx(2 * 16**3 / 1e-6 / 1e12)
    assert bench.ceilings(TINY, CPU) == {
        **{f"{name}, TFLOP per second": product for name in ("float32", "tf32", "bfloat16")},
        "copy, GB read per second": pytest.approx(16 * 16 * 4 / 1e-6 / 1e9),
    }


def test_the_reference_pipeline_reports_rates_of_warm_up_erm_and_mixup() -> None:
    found = bench.reference_pipeline(TINY, CPU)
    assert list(found) == [
        f"{name}, images per second" for name in ("warm-up", "ERM", "mixup")
    ]  # fmt: skip
    assert all(0 < rate < math.inf for rate in found.values())


def test_each_rung_reports_a_rate_or_the_reason_for_its_absence() -> None:
    found = bench.ladder(TINY, CPU)
    assert not [name for name, rung in LADDER.items() if rung.graphed and name in found]
    found |= bench.graphs(TINY, CPU)
    for name, rung in LADDER.items():
        if rung.graphed:
            assert found[rung.without_graph] > 0
            assert "a CUDA graph needs a GPU" in found[f"{name}: absent"]
            assert name not in found
        else:
            assert found[name] > 0
            assert found[f"{name}: begin, seconds"] > 0


def test_a_failing_rung_reports_its_error_in_one_line_and_other_rungs_still_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    build = bench.build

    def fails(rung: Rung, size: Size, device: torch.device) -> Callable[[], object]:
        if rung.precision == "bfloat16":
            raise OSError("no bfloat16 " + 300 * "x" + "\nnor anything else")
        return build(rung, size, device)

    monkeypatch.setattr(bench, "build", fails)
    found = bench.ladder(TINY, CPU)
    assert found["float32, NCHW"] > 0
    assert found["+ fused Adam: absent"].startswith("OSError: no bfloat16 xxx")
    assert len(found["+ fused Adam: absent"]) == 200


def test_a_rung_that_fails_in_a_later_block_keeps_its_first_blocks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bench, "LADDER", {"a": Rung(), "b": Rung(mixes=False)})
    seconds = iter([10.0, 1.0, RuntimeError("illegal access"), 2.0, 4.0, 5.0, 20.0])

    def timed(*_: object, **__: object) -> float:
        if isinstance(found := next(seconds), RuntimeError):
            raise found
        return found

    monkeypatch.setattr(bench, "timed", timed)
    found = bench.ladder(TINY, CPU)
    assert (found["a"], found["b"]) == (20 / 10, 20 / 4)
    assert found["a: failed"] == "RuntimeError: illegal access"


def test_the_rate_of_a_rung_is_the_median_of_its_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "LADDER", {"a": Rung(), "b": Rung(mixes=False)})
    # Seconds block by block, the rungs in turn: a takes 10 5 2 4 8, b takes 1 2 4 5 20.
    seconds = iter([10.0, 1.0, 5.0, 2.0, 2.0, 4.0, 4.0, 5.0, 8.0, 20.0])
    monkeypatch.setattr(bench, "timed", lambda *_, **__: next(seconds))
    found = bench.ladder(TINY, CPU)
    assert (found["a"], found["b"]) == (20 / 5, 20 / 4)


def test_the_reported_cost_of_bfloat16_is_its_last_error_minus_that_of_float32(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fit(config: Any, data: Any, *, device: torch.device) -> list[EpochRecord]:
        assert (len(data.train), len(data.test)) == (50, 10)
        last = 0.5 + config.seed / 10 if config.precision == "bfloat16" else 0.25
        errors = (0.9, last)
        return [EpochRecord(epoch=n, metrics={"test/error": e}) for n, e in enumerate(errors)]

    monkeypatch.setattr(bench, "fit", fit)
    found = bench.precisions(TINY, CPU)
    assert found["by seed"] == pytest.approx([0.25, 0.35, 0.45])
    assert found["mean"] == pytest.approx(0.35)
    assert found["images"] == "published images"


def test_the_determinism_part_resumes_with_equal_bits_and_restores_the_kernels() -> None:
    found = bench.determinism(TINY, CPU)
    assert found["resumed with equal bits"] is True
    assert found["time as a multiple"] > 0
    assert not torch.are_deterministic_algorithms_enabled()


def test_the_checkpoint_part_measures_the_size_and_the_time_to_write() -> None:
    found = bench.checkpoint(TINY, CPU)
    assert found["MB"] > 0
    assert found["bytes made, seconds"] > 0
    assert found["written, seconds"] > 0


def test_estimated_hours_leave_out_the_first_epoch_and_count_15_runs_of_100_epochs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [100.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    speeds = {"float32": 4.0, "tf32": 2.0, "bfloat16": 1.0}

    def fit(config: Any, data: Any, *, device: torch.device) -> Any:
        assert (config.epochs, len(data.train)) == (2, 50)
        for seconds in (500.0, speeds[config.precision]):
            now[0] += seconds
            yield None

    monkeypatch.setattr(bench, "fit", fit)
    found = bench.hours(replace(TINY, data=("digits", "digits")), CPU)
    for precision, seconds in speeds.items():
        assert found[f"{precision}, digits, seconds of an epoch"] == seconds
        assert found[precision] == pytest.approx(2 * seconds * 15 * 100 / 3600)


def test_measure_runs_every_part_and_writes_the_figures_after_each() -> None:
    written: list[Figures] = []
    found = bench.measure(lambda so_far: written.append(dict(so_far)))
    head = ["rehearsal", "batch", "blocks", "steps of a block", "images", "made_with"]
    parts = list(bench.PARTS)
    assert list(found) == head + parts
    assert (found["rehearsal"], found["batch"]) == (True, 20)
    assert [list(part) for part in written] == [
        head + parts[:number] for number in range(1, len(parts) + 1)
    ]
    assert all(found[part]["took seconds"] >= 0 and "failed" not in found[part] for part in parts)
    assert json.loads(json.dumps(found)) == found


def _fails(size: Size, device: torch.device) -> Figures:
    raise MemoryError("no memory for it")


def _ends_the_process(size: Size, device: torch.device) -> Figures:
    os._exit(7)


def test_a_part_that_fails_or_ends_its_process_is_reported_and_later_parts_still_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    parts = {"a": _fails, "b": _ends_the_process, "c": bench.ceilings}
    monkeypatch.setattr(bench, "PARTS", parts)
    found = bench.measure(lambda so_far: None)
    assert found["a"]["failed"] == "MemoryError: no memory for it"
    assert found["b"]["failed"].endswith("the process of _ends_the_process ended with exit code 7.")
    assert found["c"]["tf32, TFLOP per second"] > 0


def test_every_prediction_refers_to_a_measured_figure() -> None:
    assert {part for part, _ in PREDICTED} <= set(bench.PARTS)
    rungs = {name.split(" / ")[0] for part, name in PREDICTED if part.startswith("ladder")}
    assert rungs <= set(LADDER)


@pytest.mark.parametrize("named", [True, False])
def test_the_figures_are_written_to_a_file_and_to_standard_output(
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
