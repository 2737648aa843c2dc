"""why: whose stages a run uses, and why a run was not trained; plan names diverged runs."""

import json
from pathlib import Path
from typing import NoReturn

import pytest
from click.testing import CliRunner

from mixsweep.cli.main import commands
from mixsweep.request import DONE, RefusedError
from mixup_core.keys import stage_keys
from mixup_core.records import EpochRecord
from mixup_core.store.checkpoints import Store
from mixup_core.store.manifests import EpochFacts, Failure
from sweeps.reading.study_file import load_study
from sweeps.state.ledger import enter
from sweeps.state.results import TRIED
from sweeps.study.study import Run


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MIXSWEEP_HOME", str(tmp_path))
    return tmp_path


def said(*words: str) -> list[str]:
    result = CliRunner().invoke(commands, words, standalone_mode=False, catch_exceptions=False)
    assert result.return_value == DONE, result.stderr
    return result.stdout.splitlines()


def put(home: Path, run: Run, epochs: int, trainer: str) -> str:
    key = stage_keys(run.config)[epochs - 1]
    Store(str(home / "store")).write(
        key,
        records=[EpochRecord(epoch=e, metrics={"test/error": 0.5}) for e in range(epochs)],
        facts=[EpochFacts(seconds=1.0, stored_at_ms=1_700_000_000_000)] * epochs,
        environment={"host": "node", TRIED: f"{trainer} 1"},
        state=b"state",
    )
    return key


def diverge(home: Path, run: Run) -> None:
    failure = Failure(
        run_key=run.key, kind="diverged", message="loss is nan in epoch 1", epoch=1, attempts=1
    )
    Store(str(home / "store")).failures.write(failure)


def test_a_run_shows_each_epoch_counted_from_one_and_its_traceback(home: Path) -> None:
    run = load_study("digits", ["seeds=1"]).runs()[0]
    put(home, run, 2, run.key)
    failure = Failure(
        run_key=run.key, kind="failed", message="KeyError: 'x'", epoch=None, attempts=1,
        trace="Traceback (most recent call last):\n  File \"a.py\"\n"
        "\x1b[31mKeyError: 'x'",
    )  # fmt: skip
    Store(str(home / "store")).failures.write(failure)
    lines = said("status", "digits", run.arm, "0", "--set", "seeds=1")
    assert lines[0].startswith("erm seed 0: failed after 1 attempt: KeyError: 'x'; 2 of 3 epochs")
    assert [line.split("epoch ")[1].split()[0] for line in lines[2:4]] == ["1", "2"]
    assert all("test/error 0.5000" in line for line in lines[2:4])
    assert "  Traceback (most recent call last):" in lines
    assert lines[-1].endswith("KeyError: 'x'")
    assert "\x1b" not in lines[-1]


def test_why_lists_stages_with_the_study_that_trained_them(home: Path) -> None:
    other = load_study("digits", ["study=other", "base.epochs=2", "seeds=1"])
    study = load_study("digits", ["seeds=1"])
    enter(other, Store(str(home / "store")), "mixsweep run other")
    trunk, run = other.runs()[0], study.runs()[0]
    assert stage_keys(trunk.config)[1] == stage_keys(run.config)[1]
    shared = put(home, run, 2, trunk.key)
    words = ["status", "digits", "--set", "seeds=1"]
    assert f"  epochs 1-2 stage {shared}, trained by other: erm seed 0 on node, stored 2023-" in (
        line[: line.index("2023-") + 5] if "2023-" in line else line
        for line in said(*words, "erm", "0")
    )
    assert "  next      `mixsweep run` trains epoch 3" in said(*words, "erm", "0")
    own = put(home, run, 3, run.key)
    lines = said(*words, "erm")
    assert lines[0] == "erm seed 0: finished, 3 of 3 epochs are stored"
    assert lines[1] == f"  run       {run.key}"
    assert [line.split(", ")[:2] for line in lines[2:]] == [
        [f"  epochs 1-2 stage {shared}", "trained by other: erm seed 0 on node"],
        [f"  epoch 3   stage {own}", "trained by this run on node"],
    ]


def test_a_diverged_run_is_listed_by_plan_and_retrained_with_again(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = load_study("digits")
    run = study.runs()[0]
    diverge(home, run)
    plan = said("plan", "digits")
    assert plan[0] == "digits: 6 runs, 0 stored, 1 diverged, 5 to run"
    assert "diverged  erm seed 0: loss is nan in epoch 1" in plan
    assert any("run --again" in line for line in plan)
    summary = json.loads("\n".join(said("plan", "digits", "--json")))
    assert summary["diverged"] == [{"arm": "erm", "seed": 0, "message": "loss is nan in epoch 1"}]
    lines = said("status", "digits", "erm", "0")
    assert lines[0] == "erm seed 0: diverged, 0 of 3 epochs are stored: loss is nan in epoch 1"
    assert lines[1].startswith("  again     ")
    assert lines[1].endswith("--again")

    def end(*_: object, **__: object) -> NoReturn:
        raise RefusedError("the test ends the launch before it trains")

    monkeypatch.setattr("mixsweep.launching.launch.plan_study", end)
    with pytest.raises(RefusedError, match="before it trains"):
        said("run", "digits", "--again", "--engine", "inline")
    assert said("plan", "digits")[0] == "digits: 6 runs, 0 stored, 6 to run"
