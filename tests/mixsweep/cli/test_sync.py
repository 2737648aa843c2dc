"""Commands that write MLflow leave no run RUNNING, and name what they cannot open."""

import os
import signal
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing

import pytest

from tests.conftest import CommandLine
from tests.mixsweep.cli.trained import train

STATUSES = "SELECT status, count(*) FROM runs GROUP BY status"
COUNT = "SELECT count(*) FROM runs"


@pytest.mark.slow
@pytest.mark.parametrize("verb", ["sync", pytest.param("run", marks=pytest.mark.long)])
def test_an_interrupt_during_an_mlflow_update_leaves_no_run_marked_running(
    command_line: Callable[..., CommandLine], verb: str
) -> None:
    """The database is locked once a few runs are in it, so that the interrupt comes in time."""
    homes = (command_line() for _ in range(5))
    mixsweep = next(home for home in homes if _was_interrupted(home, verb))
    mixsweep("sync", "digits")
    with closing(sqlite3.connect(mixsweep.home / "mlflow.db")) as connection:
        assert connection.execute(STATUSES).fetchall()[0][0] == "FINISHED"
        assert len(connection.execute(STATUSES).fetchall()) == 1


@pytest.mark.slow
def test_two_stores_of_one_home_keep_their_own_runs_in_mlflow(
    command_line: Callable[..., CommandLine],
) -> None:
    mixsweep = command_line()
    stores = [str(mixsweep.home / name / "store") for name in ("a", "b")]
    train(mixsweep.home / "a")
    train(mixsweep.home / "b", shift=0.01)
    runs = "SELECT run_uuid, lifecycle_stage, status FROM runs ORDER BY run_uuid"
    found = []
    for store in (*stores, stores[0]):
        mixsweep("sync", "digits", "--store", store)
        with closing(sqlite3.connect(mixsweep.home / "mlflow.db")) as connection:
            found.append(connection.execute(runs).fetchall())
    first, both, again = ({run for run in runs if run[1] == "active"} for runs in found)
    assert first < both
    assert len(both & again) == len(first), "the runs of the other store"
    assert len(both) == len(again) == 2 * len(first)


def _was_interrupted(mixsweep: CommandLine, verb: str) -> bool:
    """Return whether the signal came before the end; on a busy machine it may be too late."""
    train(mixsweep.home)
    process = mixsweep.start(verb, "digits")
    database = mixsweep.home / "mlflow.db"
    while not (database.is_file() and database.stat().st_size):
        assert process.poll() is None
        time.sleep(0.01)
    with closing(sqlite3.connect(database, isolation_level=None)) as connection:
        while not _told(connection, COUNT):
            assert process.poll() is None
            time.sleep(0.002)
        connection.execute("BEGIN IMMEDIATE")
        assert process.stderr is not None
        if verb == "run":
            while process.stderr.readline() != "bringing MLflow up to date\n":
                assert process.poll() is None
        os.killpg(process.pid, signal.SIGINT)
        time.sleep(0.5)
        connection.execute("ROLLBACK")
        out, said = process.communicate(timeout=60)
        if out.endswith("are in MLflow\n"):
            return False
        assert (process.returncode, "Traceback" in said) == (130, False), said
        statuses = dict(connection.execute(STATUSES).fetchall())
        assert statuses.keys() <= {"FINISHED", "KILLED"}
        assert sum(statuses.values()) >= 1
    return True


def _told(connection: sqlite3.Connection, question: str) -> int:
    try:
        ((count,),) = connection.execute(question).fetchall()
    except sqlite3.OperationalError:  # no tables yet
        return 0
    return int(count)
