"""Forty-five runs on a head and three nodes of two GPUs; one node is killed, one joins."""

import argparse
import time
from collections import Counter
from pathlib import Path
from typing import Any

from sweeps.results import RunResult
from tests.faults.invariants import assert_store_is_whole, assert_tracked
from tests.faults.launches import Launch, Task, wait_for
from tests.faults.nodes import Gpu, Nodes, busy_seconds, gpu_of
from tests.soak.findings import publish
from tests.soak.place import Place

MANY_RUNS = str(Path(__file__).parents[1] / "faults" / "many-runs.yaml")
GPUS_PER_NODE = 2
NUM_NODES = 3


def main() -> None:
    """Kill, add and publish; a broken promise is an AssertionError."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=60)
    options = parser.parse_args()
    place = Place()
    task = Task(MANY_RUNS, (f"base.epochs={options.epochs}", f"base.eval_every={options.epochs}"))
    num_runs = len(task.study.runs())
    with Nodes.started() as nodes:
        first = [nodes.add(cpus=GPUS_PER_NODE, gpus=GPUS_PER_NODE) for _ in range(NUM_NODES)]
        doomed = first[0]
        mixsweep = place.home("nodes", **nodes.environment)
        with Launch(mixsweep, task, "--device", "cpu", slots=None) as launch:
            before = wait_for(lambda: _once_finished(task, launch, num_runs // 3), timeout=240)
            lost = [
                result
                for result in before
                if result.stage is not None
                and result.outcome != "complete"
                and gpu_of(result)[0] == doomed.node_id
            ]
            killed_at = time.time()
            nodes.kill(doomed)
            late = nodes.add(cpus=GPUS_PER_NODE, gpus=GPUS_PER_NODE)
            joined_at = time.time()
            said = launch.end(0).stderr
    results = task.results(launch.store)
    assert [result.outcome for result in results] == ["complete"] * num_runs
    for was in before:
        (now,) = (result for result in results if result.run == was.run)
        assert now.facts[: len(was.facts)] == was.facts, f"trained again: {was.run}"
    assert_store_is_whole(launch.store)
    assert_tracked(results, mixsweep.home / "mlflow.db")

    began = min(_first_epoch_began(result) for result in results)
    ended = max(result.facts[-1].stored_at_ms / 1000 for result in results)
    names = {node.node_id: f"node {number}" for number, node in enumerate(first, start=1)}
    names[late.node_id] = "node that joined"
    stayed = [result for result in results if _ended_on(result, first[1:])]
    busy_before = busy_seconds(r for r in before if r.outcome == "complete")
    figures = {
        "runs": num_runs,
        "epochs_per_run": options.epochs,
        "runs_finished_exactly_once": num_runs,
        "stored_epochs_trained_again": 0,
        "runs_by_gpu": _named(Counter(gpu_of(result) for result in results), names),
        "busy_seconds_by_gpu_until_the_kill": _named(busy_before, names),
        "busy_max_over_min_until_the_kill": _max_over_min(busy_before),
        "busy_seconds_by_gpu_of_nodes_that_stayed": _named(busy_seconds(stayed), names),
        "busy_max_over_min_of_nodes_that_stayed": _max_over_min(busy_seconds(stayed)),
        "runs_stored_on_the_node_when_killed": len(lost),
        "seconds_from_kill_to_next_stored_epoch_of_a_lost_run": [
            round(_next_stored(was, results) - killed_at, 2) for was in lost
        ],
        "tries_after_a_lost_process": said.count("is tried again"),
        "seconds_from_kill_to_joined": joined_at - killed_at,
        "seconds_from_joined_to_first_epoch_there": min(
            (_first_epoch_began(r) for r in results if gpu_of(r)[0] == late.node_id),
            default=float("nan"),
        )
        - joined_at,
        "wall_seconds_of_training": ended - began,
    }
    publish(
        "nodes",
        f"{num_runs} runs on 1 head and {NUM_NODES} nodes x {GPUS_PER_NODE} counted GPUs",
        figures,
    )


def _once_finished(task: Task, launch: Launch, count: int) -> tuple[RunResult, ...] | None:
    """Return what is stored once so many runs are finished."""
    assert launch.process.poll() is None, f"ended early\n{launch.process.communicate()}"
    results = task.results(launch.store)
    done = sum(result.outcome == "complete" for result in results)
    return results if done >= count else None


def _first_epoch_began(result: RunResult) -> float:
    return result.facts[0].stored_at_ms / 1000 - result.facts[0].seconds


def _next_stored(was: RunResult, results: tuple[RunResult, ...]) -> float:
    (now,) = (result for result in results if result.run == was.run)
    return now.facts[len(was.facts)].stored_at_ms / 1000


def _ended_on(result: RunResult, nodes: list[Any]) -> bool:
    return gpu_of(result)[0] in {node.node_id for node in nodes}


def _named(by_gpu: dict[Gpu, float], names: dict[str, str]) -> dict[str, float]:
    return {f"{names[node]}, GPU {gpu}": by_gpu[node, gpu] for node, gpu in sorted(by_gpu)}


def _max_over_min(by_gpu: dict[Gpu, float]) -> float:
    return max(by_gpu.values()) / min(by_gpu.values())


if __name__ == "__main__":
    main()
