"""`mixsweep.tune.trainable`: reports, checkpoints, and a user's own `Tuner` on real Ray."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import ray
from ray import tune

from mixsweep.api import read_study
from mixsweep.tune import trainable
from mixup_core.rules import RuleError

OVERRIDES = ("base.data.val_size=200", "base.epochs=3", "base.eval_every=1")
POINT = {"mix.law.alpha": 0.5, "seed": 4}
EXAMPLE = Path(__file__).parents[2] / "examples" / "asha.py"


class Session:
    """Input of a trial from Ray Tune: its last checkpoint, and a place for reports."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._folder = folder
        self.reports: list[dict[str, Any]] = []
        self.checkpoint: tune.Checkpoint | None = None
        self.stops_after = 99
        monkeypatch.setattr(ray, "get_gpu_ids", list)
        monkeypatch.setattr(tune, "report", self._report)
        monkeypatch.setattr(tune, "get_checkpoint", lambda: self.checkpoint)

    def _report(self, metrics: dict[str, Any], checkpoint: tune.Checkpoint | None = None) -> None:
        self.reports.append(metrics)
        if checkpoint is not None:
            kept = self._folder / str(len(self.reports))
            shutil.copytree(checkpoint.path, kept, dirs_exist_ok=True)
            self.checkpoint = tune.Checkpoint.from_directory(str(kept))
        if len(self.reports) == self.stops_after:
            raise KeyboardInterrupt


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Session:
    return Session(tmp_path, monkeypatch)


def test_a_resumed_trial_reports_the_values_of_an_unbroken_one(session: Session) -> None:
    train = trainable("digits", "uniform", *OVERRIDES)
    session.stops_after = 2
    with pytest.raises(KeyboardInterrupt):
        train(POINT)
    files = {path.name for path in Path(session.checkpoint.path).iterdir()}
    assert files == {"state.bin", "records.json"}
    session.stops_after = 99
    train(POINT)
    broken, session.reports, session.checkpoint = session.reports, [], None
    train(POINT)
    assert broken == session.reports
    assert [report["epoch"] for report in broken] == [1, 2, 3]


def test_test_metrics_are_reported_only_on_request(session: Session) -> None:
    trainable("digits", "uniform", *OVERRIDES, "base.epochs=1", checkpoint_every=0)(POINT)
    (report,) = session.reports
    assert {"train/loss", "val/error"} <= report.keys()
    assert not any(name.startswith("test/") for name in report)
    assert session.checkpoint is None


@pytest.mark.parametrize(
    ("study", "arm", "point", "epochs", "metric"),
    [
        ("digits", "uniform", {"epochs": 4, "eval_every": 2}, [2, 4], "test/error"),
        ("random-features", "uniform", {"epochs": 3}, [1, 2, 3], "risk/measured"),
    ],
)
def test_each_evaluated_epoch_is_a_report_without_validation_data(
    study: str, arm: str, point: dict[str, Any], epochs: list[int], metric: str, session: Session
) -> None:
    trainable(study, arm, test=True)(point)
    assert [report["epoch"] for report in session.reports] == epochs
    assert all(metric in report for report in session.reports)


@pytest.mark.parametrize("study", ["spurious-feature", "separability", "rare-features"])
def test_problems_that_hide_no_test_results_from_searches_report_them(
    study: str, session: Session
) -> None:
    loaded = read_study(study)
    arm = next(iter(loaded.arms))
    trainable(study, arm)({"epochs": 1})
    (report,) = session.reports
    assert not report.keys().isdisjoint(loaded.problem.headline)


def test_a_trial_that_would_fail_is_refused_before_training(session: Session) -> None:
    with pytest.raises(RuleError, match="batch_size <= training images"):
        trainable("digits", "uniform", *OVERRIDES)({"batch_size": 5000})
    assert not session.reports


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("digits", "ern"), "study digits has no arm 'ern'; its arms are erm, midpoint, uniform"),
        (("teacher-filter", "low"), "learns from a teacher"),
    ],
)
def test_arms_that_cannot_be_trained_alone_are_refused(
    arguments: tuple[str, str], says: str
) -> None:
    with pytest.raises(ValueError, match=says):
        trainable(*arguments)


@pytest.mark.slow
def test_the_example_runs_asha_on_a_cluster_of_its_own(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(EXAMPLE), "--samples", "2", "--epochs", "2"],
        cwd=tmp_path, capture_output=True, text=True, timeout=250,
        env={k: v for k, v in os.environ.items() if not k.startswith(("TUNE_", "RAY_"))},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "best alpha" in done.stdout
    assert list(tmp_path.iterdir()) == []
