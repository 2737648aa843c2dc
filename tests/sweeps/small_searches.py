"""A driver without Ray and a trainer without training, for tests of searches."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ray.tune.utils import flatten_dict

from mixup_core.images.config import TrainConfig
from mixup_core.keys import stage_keys
from mixup_core.laws import Beta
from mixup_core.records import EpochRecord
from mixup_core.seeding import stream
from mixup_core.store.checkpoints import Store
from mixup_core.store.manifests import EpochFacts
from sweeps.reading.study_file import load_study
from sweeps.running.run_queue import RunQueue
from sweeps.running.tuning import RunSearcher
from sweeps.searching.proposals import Proposals
from sweeps.searching.search_source import SearchSource
from sweeps.state.stages import PlannedRun
from sweeps.study.budget import GPUS_PER_RUN
from sweeps.study.study import Run, Study
from tests.filled import fail, put

STUDY = """
study: s
base:
  data: {name: digits, val_size: 200}
  model: {name: mlp}
  epochs: 20
  batch_size: 128
arms:
  erm: {mix.law: erm}
  uniform: {mix.law: {beta: 1.0}}
seeds: 3
search:
  space:
    mix.law: {beta: {log_uniform: [0.1, 32.0]}}
    mix.switch_epoch: {int: [0, 20], step: 2}
  points: 6
  objective: val/error
"""

GRID = STUDY.partition("search:")[0]
CONFIRM = STUDY + "  confirm: {seeds: [100, 101]}\n"

Metrics = Callable[[TrainConfig], Mapping[str, float]]


class KilledError(Exception):
    """Simulates the death of a driver."""


class WorkerLostError(Exception):
    """Raised in place of a run whose processes died."""


def read(folder: Path, text: str = STUDY, *overrides: str) -> Study:
    """Return the study of a text."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "s.yaml"
    file.write_text(text)
    return load_study(str(file), overrides)


def expected_error(config: TrainConfig) -> float:
    """Return an error whose minimum, 0.10, is at alpha 4 and switch epoch 14; ERM has 0.16."""
    law, switch = config.mix.law, config.mix.switch_epoch
    if not isinstance(law, Beta) or switch == 0:
        return 0.16
    late = 20 if switch is None else switch
    return 0.10 + 0.01 * math.log(law.alpha / 4) ** 2 + 0.0004 * (late - 14) ** 2


def noisy(config: TrainConfig) -> dict[str, float]:
    """Return metrics with noise that depends on the seed, and a little on the configuration."""
    rng = stream(config.seed, "trainer double", int(stage_keys(config)[-1][:6], 16))
    error = expected_error(config) + 0.002 * ((config.seed * 7919) % 5 - 2)
    error += 0.0005 * float(rng.random())
    metrics = {"val/error": error, "val/nll": 2.2 - error, "val/calibration_error": 0.1}
    return metrics | ({"test/error": error + 0.01} if config.data.test else {})


class BrokenRunError(Exception):
    """Raised in place of a run that fails with its own error."""


class Driver:
    """Trains a search as a launch on Ray would, one run at a time, with metrics from a formula.

    It calls the searcher in Tune's order with Tune's arguments: flat reports, the report before the
    failure is stored, and the end of a trial a second time if the first call raised an error.
    """

    def __init__(
        self,
        study: Study,
        home: Path,
        metrics: Metrics = noisy,
        *,
        url: str = "",
        gpus_per_run: float = 0.0,
    ) -> None:
        self.store = Store(str(home / "store"))
        self.url = url or str(home / "optuna.log")
        self.proposals = Proposals(study, self.url)
        self.source = SearchSource(study, self.store, self.proposals)
        self.metrics = metrics
        self.gpus_per_run = gpus_per_run
        self.trained: list[tuple[str, int]] = []
        self.ends_kept: list[tuple[str, int]] = []
        self.epochs = 0
        self.num_trained = len(self.store.keys())

    def run(self, kill_after: int | None = None, kill_in: str = "report") -> "Driver":
        """Train until nothing is left, or die in a run: before training it, or after storing it."""
        first = self.source.more(())
        self.source.gpus_per_run = self.gpus_per_run
        queue = RunQueue(self.source, self._join, first)
        searcher = RunSearcher(queue, lambda planned: {"planned": planned})
        for number in range(1_000):
            suggestion = searcher.suggest(f"t{number}")
            if suggestion == RunSearcher.FINISHED:
                return self
            assert isinstance(suggestion, dict), "one slot, and nothing to wait for"
            dies = number == kill_after
            if dies and kill_in == "start":
                raise KilledError
            self._train(searcher, f"t{number}", suggestion["planned"], dies=dies)
        raise AssertionError("it does not end")

    def _join(self, joined: Sequence[PlannedRun]) -> None:
        for planned in joined:
            self.store.failures.remove(planned.run.key)

    def _train(self, searcher: RunSearcher, trial: str, planned: PlannedRun, *, dies: bool) -> None:
        run = planned.run
        metrics: Mapping[str, float] = {}
        failure: dict[str, Any] | None = None
        try:
            metrics = self.metrics(run.config)
        except WorkerLostError:
            searcher.on_trial_complete(trial, None, error=True)
            fail(self.store, run)
            return
        except BrokenRunError:
            failure = {"kind": "failed", "message": "as told", "epoch": None}
        self.trained.append((run.arm, run.seed))
        if run.config.epochs in planned.keep:
            self.ends_kept.append((run.arm, run.seed))
        self.num_trained += 1
        self.epochs += planned.epochs_to_train
        if math.isnan(metrics.get("val/error", 0.0)):
            failure = {"kind": "diverged", "message": "as told", "epoch": 0}
        if failure is None:
            for epoch in sorted(planned.keep | {run.config.epochs}):
                self._write(run, epoch, metrics)
        if dies:
            raise KilledError
        last = {"epochs": run.config.epochs, "trained": True, "failure": failure, "done": True}
        if failure is not None:
            fail(self.store, run, failure["kind"])
        try:
            searcher.on_trial_complete(trial, flatten_dict(last))
        except Exception:  # Tune logs whatever it is, and the trial runs and ends again
            searcher.on_trial_complete(trial, flatten_dict(last))

    def _write(self, run: Run, epochs: int, metrics: Mapping[str, float]) -> None:
        put(
            self.store,
            run,
            [EpochRecord(epoch=epoch, metrics=metrics) for epoch in range(epochs)],
            b"state" if epochs < run.config.epochs else None,
            facts=[
                EpochFacts(seconds=36.0, stored_at_ms=self.num_trained * 1_000 + epoch)
                for epoch in range(epochs)
            ],
            environment={GPUS_PER_RUN: f"{self.gpus_per_run:g}"} if self.gpus_per_run else {},
        )


def asked(study: Study, url: str, count: int, *, reopened: bool) -> Proposals:
    """Ask and tell; every fifth point fails, every seventh is pruned, the last stays open."""
    proposals = Proposals(study, url)
    for number in range(count):
        if reopened:
            proposals = Proposals(study, url)
        (point,) = proposals.ask()
        if reopened:
            proposals = Proposals(study, url)
        error = expected_error(study.search.config_of(point.values))  # type: ignore[union-attr]
        if number % 5 == 4:
            proposals.tell(replace(point, state="failed"))
        elif number % 7 == 6:
            proposals.tell(replace(point, state="pruned", num_seeds=2))
        elif number < count - 1:
            proposals.tell(replace(point, state="complete", objectives=(error,)))
    return proposals
