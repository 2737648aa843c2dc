"""Nodes: 45 runs on a head and three nodes of two GPUs; one node is killed, one joins."""

import argparse
import os
import time
from collections import Counter
from collections.abc import Iterable

from mixup_core.store.manifests import EpochFacts
from sweeps.state.results import RunResult
from tests.faults.invariants import assert_store_is_whole, assert_tracked
from tests.faults.launches import Launch, Task, is_ray_worker, wait_for
from tests.faults.nodes import MANY_RUNS, Gpu, Nodes, gpu_of
from tests.soak.findings import publish
from tests.soak.place import Place

GPUS_PER_NODE = 2
NUM_NODES = 3

Results = tuple[RunResult, ...]


def main() -> None:
    """Kill and add nodes, and publish; a broken guarantee raises AssertionError."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=300)
    options = parser.parse_args()
    place = Place()
    task = Task(MANY_RUNS, (f"base.epochs={options.epochs}", f"base.eval_every={options.epochs}"))
    num_runs = len(task.study.runs())
    with Nodes.started() as nodes:
        first = [nodes.add(cpus=GPUS_PER_NODE, gpus=GPUS_PER_NODE) for _ in range(NUM_NODES)]
        doomed = first[0]
        mixsweep = place.home("nodes", **nodes.environment)
        with Launch(mixsweep, task, "--device", "cpu", slots=None) as launch:
            before = wait_for(
                lambda: _midway(task, launch, num_runs // 3, doomed.node_id), timeout=900
            )
            lost = _underway(before, doomed.node_id)
            killed_at = time.time()
            nodes.kill(doomed)
            wait_for(lambda: not any(map(is_ray_worker, map(_pid, lost))))
            gone_at = time.time()
            late = nodes.add(cpus=GPUS_PER_NODE, gpus=GPUS_PER_NODE)
            joined_at = time.time()
            said = launch.end(0, timeout=1800).stderr
    results = task.results(launch.store)
    assert [result.outcome for result in results] == ["complete"] * num_runs
    for was, now in zip(before, results, strict=True):
        assert now.facts[: len(was.facts)] == was.facts, f"trained again: {was.run}"
    assert_store_is_whole(launch.store)
    assert_tracked(results, mixsweep.home / "mlflow.db")

    began = min(_began(result.facts[0]) for result in results)
    ended = max(result.facts[-1].stored_at_ms / 1000 for result in results)
    names = {node.node_id: f"node {number}" for number, node in enumerate(first, start=1)}
    names[late.node_id] = "node that joined"
    busy_before, busy = _busy_seconds(before, before), _busy_seconds(before, results)
    stayed = {node.node_id for node in first[1:]}
    busy_stayed = {gpu: seconds for gpu, seconds in busy.items() if gpu[0] in stayed}
    joined_facts = [
        facts for result in results if gpu_of(result)[0] == late.node_id for facts in result.facts
    ]
    figures = {
        "runs": num_runs,
        "epochs_per_run": options.epochs,
        "runs_finished_exactly_once": num_runs,
        "stored_epochs_trained_again": 0,
        "runs_side_by_side_per_core": NUM_NODES * GPUS_PER_NODE / (os.cpu_count() or 1),
        "runs_by_gpu_that_ended_them": _named(Counter(map(gpu_of, results)), names),
        "busy_seconds_by_gpu_until_the_kill": _named(busy_before, names),
        "busy_max_over_min_until_the_kill": _max_over_min(busy_before),
        "busy_seconds_by_gpu": _named(busy, names),
        "busy_max_over_min_of_nodes_that_stayed": _max_over_min(busy_stayed),
        "runs_under_way_on_the_node_when_killed": len(lost),
        "epochs_stored_of_them_when_killed": [len(was.facts) for was in lost],
        "tries_after_a_lost_process": said.count("is tried again"),
        "seconds_from_kill_to_its_processes_gone": gone_at - killed_at,
        "seconds_from_kill_to_next_epoch_of_a_lost_run": [
            round(_first_ended_after(gone_at, _same(was, results).facts) - killed_at, 2)
            for was in lost
        ],
        "seconds_from_kill_to_joined": joined_at - killed_at,
        "seconds_from_joined_to_first_epoch_there": _first_ended_after(joined_at, joined_facts)
        - joined_at,
        "wall_seconds_of_training": ended - began,
    }
    publish(
        "nodes",
        f"{num_runs} runs on 1 head and {NUM_NODES} nodes x {GPUS_PER_NODE} counted GPUs, which "
        "compute on the cores of one machine: busy seconds are wall seconds of epochs there",
        figures,
    )


def _midway(task: Task, launch: Launch, count: int, node: str) -> Results | None:
    """Return what is stored once enough runs are finished and all GPUs of a node are busy again."""
    assert launch.process.poll() is None, f"ended early\n{launch.process.communicate()}"
    results = task.results(launch.store)
    done = sum(result.outcome == "complete" for result in results)
    return results if done >= count and len(_underway(results, node)) == GPUS_PER_NODE else None


def _underway(results: Results, node: str) -> Results:
    """Return the runs of which a node has stored some epochs but not all."""
    return tuple(
        result for result in results if result.outcome == "partial" and gpu_of(result)[0] == node
    )


def _pid(result: RunResult) -> int:
    assert result.stage is not None
    return int(result.stage.environment["pid"])


def _busy_seconds(before: Results, results: Results) -> dict[Gpu, float]:
    """Return the training seconds of stored epochs, by GPU.

    The store has the GPU of a run's last epoch only. Runs move only because of the kill, so epochs
    stored before the kill belong to the earlier GPU, and later ones to the present GPU.
    """
    busy: Counter[Gpu] = Counter()
    for was, now in zip(before, results, strict=True):
        for result, facts in ((was, was.facts), (now, now.facts[len(was.facts) :])):
            if facts:
                busy[gpu_of(result)] += sum(epoch.seconds for epoch in facts)
    return dict(busy)


def _began(epoch: EpochFacts) -> float:
    return epoch.stored_at_ms / 1000 - epoch.seconds


def _first_ended_after(moment: float, facts: Iterable[EpochFacts]) -> float:
    """Return the end of the first epoch after a given time; NaN if there is none."""
    ended = (epoch.stored_at_ms / 1000 for epoch in facts)
    return min((end for end in ended if end > moment), default=float("nan"))


def _same(was: RunResult, results: Results) -> RunResult:
    (now,) = (result for result in results if result.run == was.run)
    return now


def _named(by_gpu: dict[Gpu, float], names: dict[str, str]) -> dict[str, float]:
    return {f"{names[node]}, GPU {gpu}": by_gpu[node, gpu] for node, gpu in sorted(by_gpu)}


def _max_over_min(by_gpu: dict[Gpu, float]) -> float:
    return max(by_gpu.values()) / min(by_gpu.values())


if __name__ == "__main__":
    main()
