"""RunQueue: two to four drivers on one store, at random times, train no run twice."""

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from mixup_core.keys import stage_keys
from mixup_core.store.checkpoints import Store
from sweeps.leasing.lease import Claims, Lease
from sweeps.running.assignment import Assignment
from sweeps.running.run_queue import RunQueue
from sweeps.running.storing import Storing
from sweeps.searching.sources import RunSource
from sweeps.state.results import read_results
from sweeps.state.stages import PlannedRun, plan_keeping_results, plan_study
from sweeps.study.study import Study
from tests import toy

EPOCHS = 10

pytestmark = pytest.mark.usefixtures("toy_problem")


@dataclass(kw_only=True)
class World:
    """The store that drivers share, the time, and the runs that are trained."""

    store: Store
    now: float = 0.0
    underway: set[str] = field(default_factory=set)
    ended: set[str] = field(default_factory=set)


class Driver:
    """A simulated driver with some slots, which trains one epoch per step."""

    def __init__(self, world: World, study: Study, slots: int, draw: random.Random) -> None:
        self.world, self.study, self.slots, self.draw = world, study, slots, draw
        self.lease = Lease.acquire(world.store, study.name, "mixsweep run")
        claims = Claims(
            store=world.store, study=study.name, token=self.lease.token, clock=lambda: world.now
        )
        plan = plan_keeping_results(world.store, lambda: plan_study(study, world.store))
        source = RunSource(study, plan.pending)
        self.queue = RunQueue(source, lambda _: None, source.more(()), claims=claims)
        self.claims = claims
        self.workers: list[Worker] = []
        self.is_over = False

    def step(self) -> None:
        """Start a run, or train one epoch of a run."""
        if len(self.workers) < self.slots and (planned := self.queue.next()) is not None:
            self.workers.append(Worker(self, planned))
        elif self.workers:
            self.draw.choice(self.workers).step()
        elif not self.queue.is_waiting:
            self.is_over = True
            self.claims.close()
            self.lease.release()

    def kill(self) -> None:
        """End without any message, as by SIGKILL."""
        for worker in self.workers:
            worker.kill()
        self.lease.release()


class Worker:
    """One run in training."""

    def __init__(self, driver: Driver, planned: PlannedRun) -> None:
        self.driver, self.run, self.queue = driver, planned.run, driver.queue
        assignment = Assignment.of(
            planned, driver.world.store, keep_final_state=False, on_gpu=False
        )
        self.keys, self.world = stage_keys(self.run.config), driver.world
        assert self.run.key not in self.world.underway, "two drivers train one run"
        self.world.underway.add(self.run.key)
        self.storing = Storing(assignment, "cpu")
        self.process = self.storing.resume(lambda: toy.start(assignment.config, None, "cpu"))
        self.epochs: Iterator[object] = iter(self.process)
        rows = [{"epoch": len(self.process.records) - 1}]
        self.queue.read(self.run.key, {"lost": self.storing.lost, "rows": rows})

    def step(self) -> None:
        """Train an epoch, or end the run."""
        if next(self.epochs, None) is None:
            self.driver.workers.remove(self)
            self.kill()
            self.world.ended.add(self.run.key)
            self.queue.end(self.run.key, failed=False)
            return
        assert self.run.key not in self.world.ended, "a stored run is trained again"
        self.storing.add(self.process, self.driver.draw.choice([0.0, 0.0, 30.0]))
        if self.storing.take_rows():
            self.queue.read(self.run.key, {"rows": [{"epoch": self.storing._num_stored - 1}]})

    def kill(self) -> None:
        """Lose the epochs that are not stored."""
        self.world.underway.remove(self.run.key)


def _study(name: str, draw: random.Random) -> Study:
    turns = draw.sample([None, 2, 3, 5, 7, 9], draw.randint(1, 4))
    longest = draw.choice([EPOCHS, EPOCHS, 6])
    arms = {f"t{turn}": toy.ToyConfig(epochs=longest, drift=1.0, turn=turn) for turn in turns}
    seeds = tuple(draw.sample(range(2), draw.randint(1, 2)))
    return Study(name=name, description="", arms=arms, seeds=seeds, baseline="", source="")


@pytest.mark.parametrize("kills", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_shared_runs_are_trained_once_for_any_interleaving_of_drivers(
    tmp_path: Path, seed: int, kills: bool
) -> None:
    draw = random.Random(seed)
    world = World(store=Store(str(tmp_path)))
    studies = [_study(f"s{number}", draw) for number in range(draw.randint(2, 4))]
    left, drivers = list(studies), list[Driver]()
    while left or drivers:
        world.now += 0.3
        if left and (not drivers or draw.random() < 0.05):
            drivers.append(Driver(world, left.pop(), draw.randint(1, 3), draw))
            continue
        driver = draw.choice(drivers)
        if kills and draw.random() < 0.01:
            driver.kill()
            left.append(driver.study)
        else:
            driver.step()
        drivers = [d for d in drivers if not d.is_over and d.study not in left]
    for study in studies:
        assert {r.outcome for r in read_results(study.runs(), world.store)} == {"complete"}
