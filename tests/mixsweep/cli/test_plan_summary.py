"""Plan summary: sizes, costs, and how often it reads a stored run."""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mixsweep.cli.hardware import Hardware
from mixsweep.cli.plan_summary import PlanSummary, plan_summary, spell_json
from mixsweep.cli.plan_text import spell_plan
from mixsweep.cli.status import status_summary
from mixsweep.launching.costs import bytes_to_keep, seconds_to_train
from mixup_core.config.building import with_values
from mixup_core.images.config import TrainConfig
from mixup_core.store.checkpoints import Store
from mixup_core.store.files import Folder
from mixup_core.store.manifests import EpochFacts, Facts, StateRef
from reports.numbers.looks import reached_study
from sweeps.reading.study_file import load_study
from sweeps.state.stages import plan_runs
from sweeps.study.search import SearchHistory
from sweeps.study.study import Run, Study
from tests.bench.stored import fill
from tests.sweeps.searching.test_sources import TEXT
from tests.sweeps.small_searches import GRID, read
from tests.sweeps.tracked import result_of


def plan_of(study: Study, folder: Path, slots: int = 1) -> PlanSummary:
    return plan_summary(study, SearchHistory(), Store(str(folder)), Hardware(slots=slots))


KEYS = (
    "study plugins runs stored to_run added epochs_naive epochs_planned arms slots seconds "
    "kept_bytes prediction_bytes last_state_bytes memory_bytes run_bytes codes remarks claims "
    "claims_decide diverged gpu_hours cost free_bytes"
)
SEARCH_KEYS = "adaptive points points_known runs_to_ask runs_to_confirm budget space"
CLAIM_KEYS = (
    "says n tests found_sd never_below found_ratio metric cannot pilot sd sd_upper margin needed"
)


def test_the_json_of_a_plan_has_these_keys(tmp_path: Path) -> None:
    """Programs read them, so none may change its name."""

    def printed(study: Study) -> dict[str, Any]:
        value: dict[str, Any] = json.loads(spell_json(plan_of(study, tmp_path)))
        return value

    def has(value: Mapping[str, Any], keys: str) -> bool:
        return list(value) == keys.split()

    grid, search = printed(read(tmp_path, GRID)), printed(read(tmp_path))["search"]
    assert has(grid, KEYS)
    assert has(grid["arms"]["erm"], "runs stored to_run")
    assert has(search, SEARCH_KEYS)
    law, switch = search["space"]
    assert law == {"path": "mix.law.alpha", "kind": "log_uniform", "low": 0.1, "high": 32.0}
    assert switch == {"path": "mix.switch_epoch", "kind": "int", "low": 0, "high": 20, "step": 2}
    budget = printed(read(tmp_path, f"{GRID}budget: {{hours: 2, runs: 3}}\n"))["budget"]
    assert budget == {"hours": 2, "runs": 3, "ended": None}
    planned = printed(reached_study(read(tmp_path, TEXT), Store(str(tmp_path))))
    assert has(planned["looks"], "at open most simulated expected_by_sd")
    assert has(planned["looks"]["most"], "runs to_run seconds")
    assert has(planned["claims"][0], CLAIM_KEYS)


def test_plan_and_status_read_each_stored_run_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, study = Store(str(tmp_path)), load_study("digits", ["seeds=2"])
    fill(store, study)
    opened: Counter[str] = Counter()
    read = Folder.read

    def counted(folder: Folder, name: str) -> bytes:
        opened[name] += name.startswith("stages/")
        return read(folder, name)

    monkeypatch.setattr(Folder, "read", counted)
    assert plan_summary(study, SearchHistory(), store, Hardware(slots=1)).to_run == 0
    assert set(opened.values()) == {1}
    opened.clear()
    assert status_summary(study, store)["seconds_left"] == 0
    assert set(opened.values()) == {1}


def test_a_plan_shows_no_size_of_0_mb(tmp_path: Path) -> None:
    summary = plan_of(load_study("digits"), tmp_path)
    assert "records, 0.1 MB of predictions" in spell_plan(summary)
    few = spell_plan(replace(summary, prediction_bytes=20_000))
    assert "records, less than 0.1 MB of predictions" in few


@pytest.mark.parametrize(
    ("gigabytes", "told"),
    [
        (7, "0.1 MB of digits once"),
        (4, "4.0 GB are free, surely enough for 2 at a time; most runs need far less"),
        (1, "1.0 GB are free; most runs need far less; 0.1 MB"),
    ],
)
def test_a_plan_prints_how_many_runs_have_enough_free_memory(
    gigabytes: int, told: str, tmp_path: Path
) -> None:
    summary = plan_of(load_study("digits"), tmp_path, slots=4)
    text = spell_plan(replace(summary, free_bytes=gigabytes * 10**9))
    assert (
        f"memory    at most 1.5 GB per run, computed from its images and batch size; {told}" in text
    )


BASE = TrainConfig(epochs=10, batch_size=8)
MIXED = with_values(BASE, {"mix.law": "midpoint"})


def _run(config: TrainConfig, seed: int, arm: str) -> Run:
    return Run(arm=arm, config=with_values(config, {"seed": seed}))


def test_the_time_to_train_uses_the_median_epoch_of_the_arm_or_of_other_arms() -> None:
    runs = [_run(BASE, 0, "erm"), _run(BASE, 1, "erm"), _run(MIXED, 0, "midpoint")]
    result = result_of(runs[0], 10)
    assert result.stage is not None
    facts = [EpochFacts(seconds=seconds, stored_at_ms=0) for seconds in [9.0] + [2.0] * 9]
    results = [replace(result, stage=replace(result.stage, facts=Facts(facts)))]
    plan = plan_runs(runs[1:], {})
    assert seconds_to_train(plan, results, slots=1) == pytest.approx(40)
    assert seconds_to_train(plan, results, slots=2) == pytest.approx(20)
    assert seconds_to_train(plan, results, slots=9) == pytest.approx(20), "a run is not split"


def test_each_fork_keeps_one_state_and_plain_runs_keep_none() -> None:
    plain = [_run(BASE, 0, "erm")]
    assert bytes_to_keep(plan_runs(plain, {}), []) == 0
    forks = [_run(with_values(MIXED, {"mix.switch_epoch": t}), 0, str(t)) for t in (4, 8, 10)]
    plan = plan_runs(forks, {})
    assert bytes_to_keep(plan, []) is None
    result = result_of(forks[0], 1)
    assert result.stage is not None
    state = StateRef(sha256="0" * 64, size=1000)
    measured = replace(result, stage=replace(result.stage, state=state))
    assert bytes_to_keep(plan, [measured]) == 2000
