"""Retries: what happens to runs and devices, depending on the text of an error."""

import pickle

import pytest

from sweeps.reading.study_file import load_study
from sweeps.running.retries import DeviceFaultError, MachineFault, Retries

RUNS = load_study("digits").runs()
KILLED_BY_RAY = """1 worker(s) were killed due to the node running low on memory. Memory on the node
(IP: 127.0.0.1) was 3.54GB used / 23.54GB limit (0.15)
OOM kill reason: Memory usage 3741671424B exceeded threshold of 505530208B (2.0% of 25B limit)
Refer to the documentation on how to address the out of memory issue"""
ILLEGAL = "CUDA error: an illegal memory access was encountered"


def _device(number: int) -> MachineFault:
    error = DeviceFaultError(f"node/{number}", f"GPU {number} of node a", ILLEGAL)
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.device) == (str(error), error.device)
    text = (
        f"ray.exceptions.RayTaskError(x): trace\nsweeps.running.retries.DeviceFaultError: {error}"
    )
    return MachineFault.of(text)


@pytest.mark.parametrize(
    ("text", "kind", "cause"),
    [
        (KILLED_BY_RAY, "memory", "the node used 3.7 GB of memory and may use 0.5 GB"),
        ("Traceback\n  x\nMemoryError: no\nmemory: std::bad_alloc", "memory", "std::bad_alloc"),
        ("Traceback\ntorch.OutOfMemoryError: CUDA out of memory.", "memory", "CUDA out of memory."),
        (
            "The actor died because its node has died. Node Id: 0x",
            "node",
            "the node of the run was lost",
        ),
        ("x.KernelFaultError: RuntimeError: device-side assert\n", "kernel", "device-side assert"),
        ("The actor died unexpectedly.\nWorker exits.", "process", "Worker exits."),
        ("", "process", "Ray recorded no reason"),
    ],
)
def test_a_fault_is_classified_from_the_error_text_of_an_engine(
    text: str, kind: str, cause: str
) -> None:
    fault = MachineFault.of(text)
    assert (fault.kind, "\n" in fault.cause) == (kind, False)
    assert cause in fault.cause


def test_a_run_that_breaks_its_process_fails_but_a_preempted_run_is_retried() -> None:
    retries, broken = Retries(limit=2), MachineFault.of("KernelFaultError: device-side assert")
    for run in RUNS:
        decision = retries.judge(run, broken, beside=1, devices=2)
        assert (decision.again, decision.message) == (False, "device-side assert")
    assert not retries.sick, "no device is to blame"
    lost = MachineFault.of("The actor died because its node has died.")
    assert all(retries.judge(RUNS[0], lost, beside=1, devices=2).again for _ in range(50))


def test_a_run_whose_process_dies_four_times_fails() -> None:
    retries, died = Retries(limit=2), MachineFault.of("The actor died unexpectedly.\nWorker exits.")
    *before, last = (retries.judge(RUNS[0], died, beside=1, devices=2) for _ in range(4))
    assert all(decision.again for decision in before)
    assert not last.again
    assert last.message == "its process failed 4 times, the last time: Worker exits."


def test_a_device_that_fails_two_runs_in_a_row_is_excluded_and_reported() -> None:
    retries = Retries(limit=2)
    decision = retries.judge(RUNS[0], _device(1), beside=1, devices=2)
    assert (decision.again, decision.note, retries.sick) == (True, "", {})
    assert retries.avoided(RUNS[0]) == {"node/1"}
    assert retries.avoided(RUNS[1]) == frozenset()
    decision = retries.judge(RUNS[1], _device(1), beside=1, devices=2)
    assert decision.again
    assert decision.note.startswith(
        "GPU 1 of node a: 2 different runs in a row failed on this device"
    )
    assert retries.sick == {"node/1": "GPU 1 of node a"}
    assert retries.avoided(RUNS[2]) == {"node/1"}


def test_a_run_that_fails_on_two_devices_fails_without_blaming_a_device() -> None:
    retries = Retries(limit=2)
    assert retries.judge(RUNS[0], _device(0), beside=1, devices=2).again
    decision = retries.judge(RUNS[0], _device(1), beside=1, devices=2)
    assert not decision.again
    assert "failed on two different devices (GPU 0 of node a and GPU 1 of node a)" in (
        decision.message
    )
    for number in (0, 1):
        assert retries.judge(RUNS[1 + number], _device(number), beside=1, devices=2).again
    assert retries.sick == {}


def test_runs_that_lack_memory_together_are_retried_with_fewer_in_parallel() -> None:
    retries, killed = Retries(limit=3), MachineFault.of(KILLED_BY_RAY)
    decision = retries.judge(RUNS[0], killed, beside=2, devices=3)
    assert (decision.again, retries.limit) == (True, 2)
    assert decision.note == "memory is short: from now on at most 2 runs side by side"
    assert retries.judge(RUNS[1], killed, beside=1, devices=3).again
    assert retries.limit == 1
    decision = retries.judge(RUNS[0], killed, beside=0, devices=3)
    assert not decision.again
    assert decision.message.startswith("lacks memory even if it trains alone: Ray killed")
    assert "reduce batch_size" in decision.message
    assert retries.limit == 1


def test_each_lack_of_memory_halves_the_number_of_parallel_runs() -> None:
    retries, killed, limits = Retries(limit=64), MachineFault.of(KILLED_BY_RAY), []
    for number in range(6):
        assert retries.judge(RUNS[number], killed, beside=retries.limit - 1, devices=1).again
        limits.append(retries.limit)
    assert limits == [32, 16, 8, 4, 2, 1]


def test_a_run_that_lacks_gpu_memory_twice_fails_with_advice_on_its_share() -> None:
    retries, short = Retries(limit=4, on_gpu=True), MachineFault.of("CUDA out of memory.")
    assert retries.judge(RUNS[0], short, beside=3, devices=4).again
    decision = retries.judge(RUNS[0], short, beside=3, devices=4)
    assert (decision.again, retries.limit) == (False, 4)
    assert "--gpus-per-run" in decision.message
