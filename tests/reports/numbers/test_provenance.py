import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mixup_core.images.data.data_config import DataConfig
from reports.numbers.provenance import describe, public, spell_origin
from sweeps.state.results import RunResult
from sweeps.study.study import Study
from tests.reports.synthetic import finish, make_study


def described(
    study: Study, results: tuple[RunResult, ...], command: str = "mixsweep"
) -> dict[str, Any]:
    return describe(
        study,
        results,
        selection_rule="none",
        data_checksums={"fashion-mnist": {"train": "ab"}},
        command=command,
    )


def test_every_run_is_named_with_its_outcome_and_attempts() -> None:
    study = make_study()
    results = tuple(
        finish(run, epochs=2, failure="no memory") if run.seed == 3 else finish(run)
        for run in study.runs()
    )
    runs = described(study, results)["runs"]
    assert [run["run_key"] for run in runs] == [run.key for run in study.runs()]
    stopped = next(run for run in runs if run["seed"] == 3)
    assert (stopped["outcome"], stopped["attempts"], stopped["error"]) == ("failed", 2, "no memory")
    assert runs[0]["seconds"] == 60.0
    assert runs[0]["attempts"] == 1


def test_study_data_seeds_and_times_are_kept(study: Study, results: tuple[RunResult, ...]) -> None:
    found = described(study, results)
    assert found["source"] == study.source
    assert found["arms"]["uniform"]["mix.law.alpha"] == 1.0
    assert "seed" not in found["arms"]["uniform"]
    assert found["seeds"] == [0, 1, 2, 3, 4]
    assert found["data_checksums"] == {"fashion-mnist": {"train": "ab"}}
    assert found["last_epoch_stored_at_ms"] - found["first_epoch_stored_at_ms"] == 54_000
    assert found["versions"]["torch"]
    assert json.loads(json.dumps(found)) == found


def test_equal_environments_are_listed_once(study: Study, results: tuple[RunResult, ...]) -> None:
    assert len(described(study, results)["environments"]) == 1


def test_a_study_without_results_has_no_times() -> None:
    found = described(make_study(), ())
    assert found["first_epoch_stored_at_ms"] is None
    assert found["environments"] == []


def test_secrets_of_addresses_in_the_study_file_are_not_recorded(
    study: Study, results: tuple[RunResult, ...]
) -> None:
    address = "https://me:secret@host/x.zip?sig=secret#secret"
    study = replace(study, description=f"From {address}.", source=f"description: {address}\n")
    found = described(study, results)
    assert found["description"] == "From https://***@host/x.zip."
    assert found["source"] == "description: https://***@host/x.zip\n"


def test_logins_and_the_home_folder_are_not_recorded(
    study: Study, results: tuple[RunResult, ...], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    command = f"mixsweep report --home {tmp_path}/runs --tracking-uri https://me:secret@host:5000/x"
    written = json.dumps(described(study, results, command))
    assert "secret" not in written
    assert str(tmp_path) not in written
    assert "--home ~/runs --tracking-uri https://***@host:5000/x" in written
    assert public(f"{tmp_path}-other/x") == f"{tmp_path}-other/x"


def test_no_path_of_this_machine_is_recorded(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    study = make_study()
    data = DataConfig(name="image-folder", folder=f"{tmp_path}-images/cats", image_size=8)
    arms = {
        arm: replace(config, data=replace(data, digest="d")) for arm, config in study.arms.items()
    }
    study = replace(study, arms=arms, source=f"study: s\nfolder: {data.folder}\n")
    results = tuple(
        finish(run, epochs=2, failure=f"{data.folder}/1.png: truncated") for run in study.runs()
    )
    command = f"mixsweep run {tmp_path}/s.yaml --home {tmp_path}-home --plugin {tmp_path}/p.py"
    found = described(study, results, command)
    assert str(tmp_path.parent) not in json.dumps(found)
    assert found["command"] == f"mixsweep run s.yaml --home {tmp_path.name}-home --plugin p.py"
    assert found["arms"]["erm"]["data.folder"] == "cats"
    assert found["source"] == "study: s\nfolder: cats\n"
    assert found["runs"][0]["error"] == "1.png: truncated"


def test_the_origin_names_device_torch_and_commit() -> None:
    found = {
        "environments": [{"device": "x86_64", "torch": "2.14.1", "host": "b"}],
        "code": {"commit": "0123456789", "branch": "main", "dirty": True},
    }
    assert spell_origin(found) == (
        "Trained on x86_64, torch 2.14.1. Report made at commit 0123456 with changes."
    )
    assert spell_origin({"environments": [], "code": None}) == ""


def test_the_origin_names_the_instructions_of_each_kind_of_processor() -> None:
    xeon = {"device": "Xeon", "instructions": "AVX512"}
    limited = {"device": "Xeon", "instructions": "AVX2", "onednn_at_most": "AVX2"}
    found = {"environments": [xeon, {**xeon, "host": "b"}, limited], "code": None}
    machines, _, warning = spell_origin(found).partition(". ")
    assert machines == "Trained on Xeon (AVX2, oneDNN at most AVX2), Xeon (AVX512)"
    assert "differ in instructions, onednn_at_most" in warning


def test_a_report_imports_neither_torch_nor_ray_nor_optuna() -> None:
    program = (
        "import sys, reports.pages.build; "
        "print(sorted({'torch', 'ray', 'optuna', 'mlflow'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_the_origin_compares_versions_that_the_first_record_lacks() -> None:
    records = [{"device": "Xeon"}, {"device": "Xeon", "scipy": "1.16"}]
    assert "WARNING" not in spell_origin({"environments": records, "code": None})
    records.append({"device": "Xeon", "scipy": "1.17"})
    found = spell_origin({"environments": records, "code": None})
    assert "environments that differ in scipy, so" in found


def test_the_origin_names_the_seeds_whose_arms_were_trained_on_different_devices() -> None:
    runs = [
        {"seed": 0, "device": "A100"}, {"seed": 0, "device": "A100"},
        {"seed": 1, "device": "A100"}, {"seed": 1, "device": "H200"},
        {"seed": 2, "device": "H200"}, {"seed": 2, "device": "A100"}, {"seed": 3}, {"seed": 3},
    ]  # fmt: skip
    described = {"environments": [], "code": None, "runs": runs}
    assert spell_origin(described) == (
        "WARNING, at seeds 1-2 arms were trained on different devices: A100 and H200."
    )
    assert spell_origin(described | {"runs": runs[:2] + runs[6:]}) == ""


def test_the_origin_warns_if_runs_were_computed_in_different_environments() -> None:
    plain = {"device": "Xeon", "instructions": "AVX512", "host": "a"}
    limited = {**plain, "settings": "MKL_CBWR=AVX2"}
    same = {"environments": [plain, {**plain, "host": "b"}], "code": None}
    assert spell_origin(same) == "Trained on Xeon (AVX512)."
    found = spell_origin({"environments": [plain, limited], "code": None})
    assert "Xeon (AVX512, MKL_CBWR=AVX2)" in found
    assert "WARNING, runs were trained in environments that differ in settings" in found
    begun = {**plain, "began_in": "epochs to 2: settings='MKL_CBWR=AVX2'"}
    found = spell_origin({"environments": [begun], "code": None})
    assert "WARNING, a run was begun in one environment and finished in another" in found
    assert "changed its device" not in found
    moved = {**plain, "began_in": "epochs to 2: device='NVIDIA H100' torch='2.14.1'"}
    found = spell_origin({"environments": [moved], "code": None})
    assert "WARNING, a run changed its device half-way: NVIDIA H100 to Xeon" in found
