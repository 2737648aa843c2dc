"""Tests of the provenance and of published paths."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mixup_core.images.data.data_config import DataConfig
from reports.numbers.provenance import command_elsewhere, describe, spell_origin, text_elsewhere
from sweeps.reading.strict_yaml import write_yaml
from sweeps.state.results import RunResult
from sweeps.study.study import Study
from tests.reports.synthetic import FINISHED, SMALL, finish


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
    results = tuple(
        finish(run, epochs=2, failure="no memory") if run.seed == 3 else finish(run)
        for run in SMALL.runs()
    )
    runs = described(SMALL, results)["runs"]
    assert [run["run_key"] for run in runs] == [run.key for run in SMALL.runs()]
    stopped = next(run for run in runs if run["seed"] == 3)
    assert (stopped["outcome"], stopped["attempts"], stopped["error"]) == ("failed", 2, "no memory")
    assert runs[0]["seconds"] == 60.0
    assert runs[0]["attempts"] == 1


def test_secrets_of_addresses_in_the_study_file_are_not_recorded() -> None:
    address = "https://me:secret@host/x.zip?sig=secret#secret"
    study = replace(SMALL, description=f"From {address}.", source=f"description: {address}\n")
    found = described(study, FINISHED)
    assert found["description"] == "From https://***@host/x.zip."
    assert found["source"] == "description: https://***@host/x.zip\n"


def test_no_path_of_this_machine_is_recorded(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = f"{tmp_path}-images/a long name{' of words' * 20}/cats"
    data = DataConfig(name="image-folder", folder=folder, image_size=8)
    arms = {
        arm: replace(config, data=replace(data, digest="d")) for arm, config in SMALL.arms.items()
    }
    study = replace(SMALL, arms=arms, source=write_yaml({"study": "s", "folder": folder}))
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


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")


def test_paths_in_a_command_line_are_shortened_without_changing_other_words(tmp_path: Path) -> None:
    command = (
        f"mixsweep run {Path.cwd()}/s.yaml --home '{tmp_path}/my runs' --plugin /opt/p.py "
        "--set base.data.folder=/mnt/cats --set 'base.data={folder: /mnt/cats, image_size: 8}' "
        "--tracking-uri https://***@host:5000/x --price 3/5"
    )
    assert command_elsewhere(command) == (
        "mixsweep run s.yaml --home 'my runs' --plugin p.py "
        "--set base.data.folder=cats --set 'base.data={folder: cats, image_size: 8}' "
        "--tracking-uri https://***@host:5000/x --price 3/5"
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("cannot read '/mnt/a/b.png': truncated", "cannot read 'b.png': truncated"),
        ("no file /mnt/a.png.", "no file a.png."),
        ("3/5 runs, and/or https://a.b/c", "3/5 runs, and/or https://a.b/c"),
    ],
)
def test_paths_in_a_message_are_reduced_to_their_last_part(text: str, expected: str) -> None:
    assert text_elsewhere(text) == expected
