"""Drivers that are killed, interrupted, stopped or started twice; then the same command again."""

import os
import shutil
import signal
import sqlite3
from contextlib import closing

import pytest

from tests.conftest import CommandLine, CommandLines
from tests.faults.invariants import assert_nothing_was_lost
from tests.faults.launches import TWO_LAWS, Launch, lasting, ray_workers, wait_for

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300, func_only=True)]


@pytest.mark.long
def test_an_interrupted_launch_exits_130_and_the_next_launch_resumes(
    command_line: CommandLines, undisturbed: CommandLine
) -> None:
    mixsweep = command_line()
    runs = TWO_LAWS.study.runs()
    with Launch(mixsweep, TWO_LAWS) as launch:
        launch.stage(runs[0], epochs=5)
        os.kill(launch.process.pid, signal.SIGTERM)
        assert "interrupted" in launch.end(130).stderr
    database = sqlite3.connect(mixsweep.home / "mlflow.db", isolation_level=None)
    with Launch(mixsweep, TWO_LAWS) as launch, closing(database) as held:
        launch.worker(epochs=6)
        held.execute("BEGIN IMMEDIATE")  # the launch is to wait for MLflow when it is asked again
        for _ in ("once", "again"):
            os.killpg(launch.process.pid, signal.SIGINT)  # as a terminal sends it, to all at once
            wait_for(lambda: not ray_workers())
        assert "Traceback" not in launch.end(130).stderr
    acknowledged = TWO_LAWS.acknowledged(launch.store)
    assert mixsweep.json("status", TWO_LAWS.file)["driver"] is None
    with Launch(mixsweep, TWO_LAWS) as launch:
        launch.end(0)
    assert_nothing_was_lost(TWO_LAWS, mixsweep, undisturbed, acknowledged=acknowledged)


def test_a_driver_whose_home_is_moved_ends_with_3_and_writes_nothing_at_the_old_path(
    command_line: CommandLines, undisturbed: CommandLine
) -> None:
    mixsweep = command_line()
    with Launch(mixsweep, TWO_LAWS) as launch:
        launch.worker(epochs=4)
        moved = mixsweep.home.rename(mixsweep.home.with_name(f"{mixsweep.home.name}-moved"))
        said = launch.end(3, timeout=60).stderr
    assert "two-laws.lock was deleted or moved, so this driver has lost its lease" in said
    assert "Traceback" not in said
    assert lasting(ray_workers) == []
    assert not mixsweep.home.exists()
    acknowledged = TWO_LAWS.acknowledged(moved / "store")
    there = command_line(moved)
    with Launch(there, TWO_LAWS) as launch:
        launch.end(0)
    assert_nothing_was_lost(TWO_LAWS, there, undisturbed, acknowledged=acknowledged)


@pytest.mark.parametrize("engine", [pytest.param("ray", marks=pytest.mark.long), "inline"])
def test_a_driver_whose_lease_is_deleted_leaves_the_study_to_the_next_driver(
    command_line: CommandLines, engine: str
) -> None:
    mixsweep = command_line()
    options, slots = ("--engine", engine), 2 if engine == "ray" else None
    with Launch(mixsweep, TWO_LAWS, *options, slots=slots) as first:
        wait_for(lambda: any(map(len, TWO_LAWS.acknowledged(first.store).values())))
        shutil.rmtree(mixsweep.home / "store" / "leases")
        with Launch(mixsweep, TWO_LAWS, *options, slots=slots) as second:
            said = first.end(3, timeout=60).stderr
            known = TWO_LAWS.acknowledged(first.store)
            second.end(0)
    assert "two-laws.lock was deleted or moved, so this driver has lost its lease" in said
    facts = TWO_LAWS.acknowledged(first.store)
    assert [len(found) for found in facts.values()] == [96] * 4
    for run, before in known.items():
        assert facts[run][: len(before)] == before, "trained twice"


def test_the_launch_after_a_killed_driver_finishes_despite_a_pause_and_second_start(
    command_line: CommandLines, undisturbed: CommandLine
) -> None:
    mixsweep = command_line()
    with Launch(mixsweep, TWO_LAWS) as launch:
        half_way = []
        for run in TWO_LAWS.study.runs()[:2]:
            launch.stage(run, epochs=4)
            half_way.append(launch.worker(run))
            os.kill(half_way[-1], signal.SIGSTOP)  # the other's process may come much later
        acknowledged = TWO_LAWS.acknowledged(launch.store)
        launch.process.kill()
        for pid in half_way:
            os.kill(pid, signal.SIGCONT)
    wait_for(lambda: not ray_workers(), timeout=30)  # workers end without their driver
    with Launch(mixsweep, TWO_LAWS) as launch:
        launch.worker()
        os.kill(launch.process.pid, signal.SIGSTOP)
        holder = f"study 'two-laws' is already run by pid {launch.process.pid} on "
        assert holder in mixsweep("run", *TWO_LAWS.arguments, code=3).stderr
        assert holder in mixsweep("sync", *TWO_LAWS.arguments, code=3).stderr
        os.kill(launch.process.pid, signal.SIGCONT)
        launch.end(0)
    assert_nothing_was_lost(TWO_LAWS, mixsweep, undisturbed, acknowledged=acknowledged)
