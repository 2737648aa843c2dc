"""What holds after every fault, once the same command has finished the study.

Files and MLflow's tables are read here without the code under test: JSON, sha256 and SQL.
"""

import hashlib
import json
import sqlite3
from collections import Counter
from collections.abc import Collection, Mapping
from pathlib import Path

from mixup_core.checkpoints import EpochFacts
from sweeps.results import RunResult
from tests.conftest import CommandLine
from tests.faults.launches import Task

Facts = Mapping[str, tuple[EpochFacts, ...]]

EXPORTS = ("runs.csv", "table.csv")


def assert_nothing_was_lost(
    task: Task,
    mixsweep: CommandLine,
    undisturbed: CommandLine,
    *,
    acknowledged: Facts | None = None,
    store: Path | None = None,
    database: Path | None = None,
) -> None:
    """Assert that a study which met faults ended as the one that met none.

    Args:
        task: The study, finished in both homes.
        mixsweep: Where the faults were.
        undisturbed: Where none were.
        acknowledged: What was stored when a process was killed.
        store: The store of `mixsweep`, if not in its home.
        database: The database of MLflow, if not in its home.
    """
    store = store or mixsweep.home / "store"
    results = task.results(store)
    originals = task.results(undisturbed.home / "store")
    assert [result.outcome for result in results] == ["complete"] * len(results)
    for result, original in zip(results, originals, strict=True):
        assert result.records == original.records, result.run
        assert result.stage is not None
        assert original.stage is not None
        assert result.stage.state == original.stage.state, f"other weights: {result.run}"
    _assert_not_trained_again(results, acknowledged or {})
    assert_store_is_whole(store)
    assert_tracked(results, database or mixsweep.home / "mlflow.db")
    for name in EXPORTS:
        assert mixsweep.report(task.study.name, name) == undisturbed.report(task.study.name, name)


def assert_tracked(results: Collection[RunResult], database: Path) -> None:
    """Assert that MLflow shows each complete run once, finished, with every value at its step."""
    with sqlite3.connect(database) as connection:
        runs = connection.execute(
            "SELECT r.run_uuid, r.status, t.value FROM runs r JOIN tags t USING (run_uuid) "
            "WHERE r.lifecycle_stage = 'active' AND t.key = 'run_key'"
        ).fetchall()
        points = connection.execute(
            "SELECT run_uuid, key, step, timestamp, value FROM metrics"
        ).fetchall()
        running = connection.execute(
            "SELECT run_uuid FROM runs WHERE lifecycle_stage = 'active' AND status = 'RUNNING'"
        ).fetchall()
    connection.close()
    assert not running, "a run that nobody trains shows as RUNNING"
    finished = {key: run_id for run_id, status, key in runs if status == "FINISHED"}
    assert Counter(key for _, _, key in runs) == Counter(result.run.key for result in results)
    for result in results:
        run_id = finished[result.run.key]
        shown = sorted(row[1:] for row in points if row[0] == run_id)
        assert shown == sorted(
            (name, record.epoch, facts.stored_at_ms, value)
            for record, facts in zip(result.records, result.facts, strict=True)
            for name, value in record.metrics.items()
        ), result.run


def assert_store_is_whole(store: Path) -> None:
    """Assert that manifests and states name each other, and that every byte is as it was hashed."""
    states = {path.name: path for path in (store / "states").rglob("*") if path.is_file()}
    for path in (store / "stages").rglob("*"):
        if path.is_file():
            manifest = json.loads(path.read_bytes())
            if manifest["state"] is not None:
                name = f"{path.stem}-{manifest['state']['sha256']}.bin"
                content = states.pop(name).read_bytes()
                assert hashlib.sha256(content).hexdigest() == manifest["state"]["sha256"]
    assert not states, "states without a manifest"


def _assert_not_trained_again(results: Collection[RunResult], acknowledged: Facts) -> None:
    for result in results:
        before = acknowledged.get(result.run.key, ())
        assert result.facts[: len(before)] == before, f"stored epochs were trained again: {result}"
