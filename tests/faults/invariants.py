"""Invariants: statements that hold after every fault, once the same command has finished the study.

Files and MLflow's tables are read here without the code under test: with JSON, sha256 and SQL.
"""

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import fsspec.core
import sqlalchemy

from mixup_core.store.manifests import EpochFacts
from sweeps.state.results import RunResult
from sweeps.tracking.rows import SECONDS
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
    store: Path | str | None = None,
    database: Path | str | None = None,
) -> None:
    """Assert that a study which met faults has the same results as one without faults.

    Args:
        task: The study, finished in both homes.
        mixsweep: Command line on the home with faults.
        undisturbed: Home without faults.
        acknowledged: Epochs that were stored when a process was killed.
        store: Store of `mixsweep`, a path or a URL, if it is not in its home.
        database: Database of MLflow, a path or a URL, if it is not in its home.
    """
    store = store or mixsweep.home / "store"
    results = task.results(store)
    originals = task.results(undisturbed.home / "store")
    assert [result.outcome for result in results] == ["complete"] * len(results)
    for result, original in zip(results, originals, strict=True):
        assert result.records == original.records, result.run
        assert result.stage.state == original.stage.state, f"other weights: {result.run}"
    _assert_not_trained_again(results, acknowledged or {})
    assert_store_is_whole(store)
    assert_tracked(results, database or mixsweep.home / "mlflow.db")
    for name in EXPORTS:
        assert mixsweep.report(task.study.name, name) == undisturbed.report(task.study.name, name)


def assert_tracked(results: Collection[RunResult], database: Path | str) -> None:
    """Assert that MLflow has each complete run once, finished, with all values at their steps."""
    url = f"sqlite:///{database}" if isinstance(database, Path) else database
    engine = sqlalchemy.create_engine(url)
    with engine.connect() as connection:
        runs = connection.exec_driver_sql(
            "SELECT r.run_uuid, r.status, t.value FROM runs r JOIN tags t USING (run_uuid) "
            "WHERE r.lifecycle_stage = 'active' AND t.key = 'run_key'"
        ).fetchall()
        points = connection.exec_driver_sql(
            "SELECT run_uuid, key, step, timestamp, value FROM metrics"
        ).fetchall()
        running = connection.exec_driver_sql(
            "SELECT run_uuid FROM runs WHERE lifecycle_stage = 'active' AND status = 'RUNNING'"
        ).fetchall()
    engine.dispose()
    assert not running, "a run that nobody trains shows as RUNNING"
    finished = {key: run_id for run_id, status, key in runs if status == "FINISHED"}
    assert Counter(key for _, _, key in runs) == Counter(result.run.key for result in results)
    shown: defaultdict[str, list[tuple[Any, ...]]] = defaultdict(list)
    for run_id, *point in points:
        shown[run_id].append(tuple(point))
    for result in results:
        assert sorted(shown[finished[result.run.key]]) == sorted(
            (name, record.epoch + 1, facts.stored_at_ms, value)
            for record, facts in zip(result.records, result.facts, strict=True)
            for name, value in {**record.metrics, SECONDS: facts.seconds}.items()
        ), result.run


def assert_store_is_whole(store: Path | str) -> None:
    """Assert that manifests and states refer to each other, and that all sha256 are right."""
    files, root = fsspec.core.url_to_fs(str(store))
    files.invalidate_cache()
    states = {path.rpartition("/")[2]: path for path in files.find(f"{root}/states")}
    for path in files.find(f"{root}/stages"):
        manifest = json.loads(files.cat_file(path))
        if manifest["state"] is not None:
            name = f"{Path(path).stem}-{manifest['state']['sha256']}.bin"
            content = files.cat_file(states.pop(name))
            assert hashlib.sha256(content).hexdigest() == manifest["state"]["sha256"]
    assert not states, "states without a manifest"


def _assert_not_trained_again(results: Collection[RunResult], acknowledged: Facts) -> None:
    for result in results:
        before = acknowledged.get(result.run.key, ())
        assert result.facts[: len(before)] == before, f"stored epochs were trained again: {result}"
