"""status: launched studies, whose stages a run uses, and why a run was not trained."""

import json
import shutil
from pathlib import Path
from unittest.mock import Mock

import pytest

import mixsweep
from mixsweep.request import DONE, RefusedError
from mixup_core.keys import stage_keys
from mixup_core.store.checkpoints import Store
from mixup_core.store.manifests import Failure
from sweeps.leasing.holders import RunningRun
from sweeps.leasing.lease import Lease
from sweeps.reading.study_file import load_study
from sweeps.state.ledger import enter, launches
from sweeps.state.results import TRIED
from sweeps.state.statements import state
from sweeps.study.study import Run
from tests.filled import fail, put_epochs
from tests.mixsweep.cli.conftest import type_in
from tests.mixsweep.cli.photos import forget
from tests.mixsweep.cli.trained import train


def said(*words: str) -> list[str]:
    result = type_in(*words)
    if result.exception is not None:
        raise result.exception
    assert result.return_value == DONE, result.stderr
    return result.stdout.splitlines()


def put(store: Store, run: Run, epochs: int, trainer: str) -> str:
    return put_epochs(store, run, epochs, b"state", host="node", **{TRIED: f"{trainer} 1"})


def test_a_run_shows_each_epoch_counted_from_one_and_its_traceback(store: Store) -> None:
    run = load_study("digits", ["seeds=1"]).runs()[0]
    put(store, run, 2, run.key)
    failure = Failure(
        run_key=run.key, kind="failed", message="KeyError: 'x'", epoch=None, attempts=1,
        trace="Traceback (most recent call last):\n  File \"a.py\"\n"
        "\x1b[31mKeyError: 'x'",
    )  # fmt: skip
    store.failures.write(failure)
    lines = said("status", "digits", run.arm, "0", "--set", "seeds=1")
    assert lines[0].startswith("erm seed 0: failed after 1 attempt: KeyError: 'x'; 2 of 3 epochs")
    assert [line.split("epoch ")[1].split()[0] for line in lines[2:4]] == ["1", "2"]
    assert all("test/error 0.5000" in line for line in lines[2:4])
    assert "  Traceback (most recent call last):" in lines
    assert lines[-1].endswith("KeyError: 'x'")
    assert "\x1b" not in lines[-1]


def test_why_lists_stages_with_the_study_that_trained_them(store: Store) -> None:
    other = load_study("digits", ["study=other", "base.epochs=2", "seeds=1"])
    study = load_study("digits", ["seeds=1"])
    enter(other, store, "mixsweep run other")
    trunk, run = other.runs()[0], study.runs()[0]
    assert stage_keys(trunk.config)[1] == stage_keys(run.config)[1]
    shared = put(store, run, 2, trunk.key)
    words = ["status", "digits", "--set", "seeds=1"]
    lines = said(*words, "erm", "0")
    told = f"  epochs 1-2 stage {shared}, trained by other: erm seed 0 on node, stored 2023-"
    assert any(line.startswith(told) for line in lines)
    assert "  next      `mixsweep run` trains epoch 3" in lines
    own = put(store, run, 3, run.key)
    lines = said(*words, "erm")
    assert lines[0] == "erm seed 0: finished, 3 of 3 epochs are stored"
    assert lines[1] == f"  run       {run.key}"
    assert [line.split(", ")[:2] for line in lines[2:]] == [
        [f"  epochs 1-2 stage {shared}", "trained by other: erm seed 0 on node"],
        [f"  epoch 3   stage {own}", "trained by this run on node"],
    ]


def test_a_diverged_run_is_listed_by_plan_and_retrained_with_again(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = "loss is nan in epoch 1"
    fail(store, load_study("digits").runs()[0], "diverged", told, 1)
    plan = said("plan", "digits")
    assert plan[0] == "digits: 6 runs, 0 stored, 1 diverged, 5 to run"
    assert f"diverged  erm seed 0: {told}" in plan
    assert any("run --again" in line for line in plan)
    summary = json.loads("\n".join(said("plan", "digits", "--json")))
    assert summary["diverged"] == [{"arm": "erm", "seed": 0, "message": told}]
    lines = said("status", "digits", "erm", "0")
    assert lines[0] == f"erm seed 0: diverged, 0 of 3 epochs are stored: {told}"
    assert lines[1].startswith("  again     ")
    assert lines[1].endswith("--again")

    end = Mock(side_effect=RefusedError("the test ends the launch before it trains"))
    monkeypatch.setattr("mixsweep.launching.launch.plan_study", end)
    with pytest.raises(RefusedError, match="before it trains"):
        said("run", "digits", "--again", "--engine", "inline")
    assert said("plan", "digits")[0] == "digits: 6 runs, 0 stored, 6 to run"


def test_every_study_and_settings_has_a_line_with_progress_driver_and_report(
    tmp_path: Path, store: Store
) -> None:
    home = tmp_path / "runs"
    train(home, "digits", but=("erm", 1))
    train(home, "digits", "base.epochs=2")
    assert type_in("report", "digits", "--set", "base.epochs=2").return_value == 0
    with Lease.acquire(store, "digits", "mixsweep run digits") as lease:
        said = json.loads(type_in("status", "--json").stdout)["studies"]
        lines = type_in("status").stdout.splitlines()
    assert [(row["finished"], row["runs"]) for row in said] == [(6, 6), (5, 6)]
    assert [row["told"] for row in said] == ["epochs=2", "epochs=3"]
    assert [row["driver"] is None for row in said] == [False, True]
    assert said[0]["driver"]["pid"] == lease.holder.pid
    assert said[0]["report"] == str(home / "reports" / "digits" / "report.html")
    assert said[1]["report"] is None
    assert len(lines) == 3
    for line, row in zip(lines[1:], said, strict=True):
        assert line.startswith("digits")
        assert f"{row['finished']}/6" in line
        assert row["told"] in line


def test_runs_in_training_with_other_settings_are_not_shown_as_those_of_a_study(
    tmp_path: Path, store: Store
) -> None:
    for overrides in ((), ("base.epochs=2",)):
        train(tmp_path / "runs", "digits", *overrides, but=("erm", 1))
    short = ("--set", "base.epochs=2")
    with Lease.acquire(store, "digits", "mixsweep run digits") as lease:
        lease.write_progress([RunningRun(arm="erm", seed=1, epoch=1)], 9.0)
        own = said("status", "digits", *short)
        other = said("status", "digits")
        here, there = (
            json.loads(type_in("status", "digits", "--json", *words).stdout)
            for words in (short, ())
        )
    assert own[0] == f"digits: training, process {lease.holder.pid} on {lease.holder.host}"
    assert other[0] == own[0].replace("training", "training other settings")
    assert (len(here["running"]), len(there["running"])) == (1, 0)
    assert (own[-1].split()[0], other[-1].split()[0]) == ("ETA", "epochs")


def test_the_list_shows_when_claims_were_stated_and_the_number_of_looks(
    tmp_path: Path, store: Store
) -> None:
    state(train(tmp_path / "runs", "entropy-floor"), store)
    (row,) = json.loads(type_in("status", "--json").stdout)["studies"]
    assert row["stated"] == "2 of 2 after the runs began"
    assert type_in("report", "entropy-floor").return_value == 0
    lines = type_in("status").stdout.splitlines()
    assert "claims stated" in lines[0]
    assert "2 of 2 after the runs began, 1 look" in lines[1]


@pytest.mark.parametrize("reference", ["signs", "signs@", "file"])
def test_a_finished_study_is_reported_without_its_images_cache_or_overrides(
    reference: str, launched: Path, tmp_path: Path
) -> None:
    file = str(tmp_path / "place" / "signs.yaml")
    report = type_in("report", file, "--set", "seeds=3", "--out", str(tmp_path / "before"))
    assert report.return_value == DONE, report.stderr
    shutil.rmtree(tmp_path / "place" / "photos")
    shutil.rmtree(tmp_path / "data")
    (launch,) = launches(Store(str(launched / "store")))
    named = {"signs": ["signs"], "signs@": [f"signs@{launch.settings[:8]}"]}
    words = named.get(reference, [file, "--set", "seeds=3"])
    for command in (
        ["report", *words, "--out", str(tmp_path / "after")],
        ["report", *words, "--epochs", str(tmp_path / "epochs.csv")],
        ["status", *words],
        ["report", *words, "--arms", "uniform", "erm"],
        ["status", *words, "erm", "0"],
        ["status"],
        ["plan", *words],
    ):
        forget()
        said = type_in(*command)
        assert said.return_value == DONE, (command, said.stderr, said.exception)
    for name in ("table.csv", "runs.csv", "table.md"):
        before, after = (tmp_path / place / name for place in ("before", "after"))
        assert before.read_bytes() == after.read_bytes()
    forget()
    arms = mixsweep.load(
        words[0], *(["seeds=3"] if reference == "file" else []), home=launched
    ).arms
    assert list(arms["n"]) == [3, 3]


def test_a_stored_study_keeps_its_settings_and_run_keys_after_a_move(
    launched: Path, tmp_path: Path
) -> None:
    own = load_study(str(tmp_path / "place" / "signs.yaml"), ["seeds=3"])
    shutil.rmtree(tmp_path / "place")
    moved = launched.rename(tmp_path / "elsewhere")
    forget()
    stored = load_study("signs", (), str(moved / "store"))
    assert stored.settings == own.settings
    assert [run.key for run in stored.runs()] == [run.key for run in own.runs()]
    assert load_study("signs", ["seeds=1"], str(moved / "store")).seeds == (0,)
    said = type_in("status", "signs", "--home", str(moved), "--json")
    assert json.loads(said.stdout)["arms"]["erm"]["finished"] == 3
