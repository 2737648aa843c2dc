import json
import math
import os
import statistics
import subprocess
import sys
from pathlib import Path

import pytest
import scipy.stats
from click.testing import CliRunner, Result

import sweeps
from mixsweep.cli.main import commands
from mixsweep.request import RefusedError
from mixup_core.store.checkpoints import Store
from sweeps.reading.study_file import load_study
from sweeps.state.statements import state
from tests.mixsweep.cli.trained import error_of, train

SEEDS = ("--set", "seeds=4")


def _compare(home: Path, *arguments: str) -> Result:
    return CliRunner().invoke(
        commands, ["report", *arguments, "--home", str(home)], standalone_mode=False
    )


@pytest.fixture
def home(tmp_path: Path) -> Path:
    train(tmp_path, "digits", "seeds=4", but=("uniform", 3))
    return tmp_path


def test_two_arms_of_a_study_are_paired_over_their_common_seeds(home: Path) -> None:
    said = _compare(home, "digits", *SEEDS, "--arms", "uniform", "erm", "--json")
    told = json.loads(said.stdout)
    ours, theirs = ([error_of(place, seed, 2) for seed in range(3)] for place in (2, 0))
    mean = sum(ours) / 3 - sum(theirs) / 3
    observed = statistics.stdev(a - b for a, b in zip(ours, theirs, strict=True))
    spread = max(observed, math.sqrt(abs(mean) / 360))  # counting 360 images makes no less
    assert told["n"] == 3
    assert told["p"] == pytest.approx(2 * scipy.stats.t.sf(abs(mean) * 3**0.5 / spread, 2))
    assert told["difference"] == pytest.approx(sum(ours) / 3 - sum(theirs) / 3)
    assert told["values"][1].keys() == {"0", "1", "2", "3"}
    text = _compare(home, "digits", *SEEDS, "--arms", "uniform", "erm").stdout
    assert "minus erm, points" in text
    assert "| 3    | — " in text.replace("| 3   |", "| 3    |")


def test_arms_of_two_studies_are_compared_under_names_with_their_study(
    home: Path, tmp_path: Path
) -> None:
    file = tmp_path / "longer.yaml"
    source = train(home, "digits", "seeds=4", "base.epochs=2").source
    file.write_text(source.replace("study: digits", "study: longer"))
    studies = ("digits", str(file))
    which = _compare(home, *studies, "--arms", "erm", "midpoint")
    assert isinstance(which.exception, RefusedError)
    assert "digits/erm or longer/erm" in str(which.exception)
    said = _compare(home, *studies, "--arms", "digits/erm", "longer/erm")
    assert said.return_value == 0
    assert "longer/erm" in said.stdout


def test_a_metric_that_no_run_has_is_refused_with_the_available_metrics(home: Path) -> None:
    said = _compare(home, "digits", *SEEDS, "--arms", "erm", "uniform", "--metric", "nothing")
    assert isinstance(said.exception, RefusedError)
    assert "no complete run has the metric nothing; its runs have " in str(said.exception)
    assert "test/error" in str(said.exception)


def test_results_under_other_settings_are_reported_if_none_match(home: Path) -> None:
    said = _compare(home, "digits", "--set", "base.epochs=9", "--arms", "erm", "uniform")
    assert isinstance(said.exception, RefusedError)
    assert said.stderr.count("finished runs stored here with") == 1


def test_a_study_that_is_named_twice_is_compared_once(home: Path) -> None:
    said = _compare(home, "digits", "digits", *SEEDS, "--arms", "erm", "uniform")
    assert said.return_value == 0


def test_arms_that_cannot_be_paired_by_seed_are_refused_with_the_differing_setting(
    home: Path, tmp_path: Path
) -> None:
    file = tmp_path / "held-out.yaml"
    source = train(home, "digits", "seeds=4", "base.data.val_size=100").source
    file.write_text(source.replace("study: digits", "study: held-out"))
    said = _compare(home, "digits", str(file), "--arms", "digits/erm", "held-out/erm")
    assert isinstance(said.exception, RefusedError)
    assert "cannot be paired by seed, because they differ in data.val_size" in str(said.exception)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("--arms", "erm", "mild"), "no arm is named 'mild'"),
        (("--arms", "erm", "uniform", "--metric", "val/error"), "has the metric val/error"),
        (("--arms", "erm", "uniform", "--set", "base.epochs=9"), "has the metric test/error"),
    ],
)
def test_arms_without_name_metric_or_results_are_refused(
    home: Path, arguments: tuple[str, ...], text: str
) -> None:
    said = _compare(home, "digits", *arguments)
    assert isinstance(said.exception, RefusedError)
    assert text in str(said.exception)


def _side_by_side(*arguments: str) -> Result:
    return CliRunner().invoke(
        commands, ["report", "digits", *arguments], standalone_mode=False, env={}
    )


def test_a_home_from_the_environment_may_contain_spaces_and_colons(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "my home: here"
    train(home, "digits", "seeds=2")
    monkeypatch.setenv("MIXSWEEP_HOME", str(home))
    arguments = ["report", "digits", "--set", "seeds=2", "--arms", "uniform", "erm", "--json"]
    for store in (None, str(home / "store")):
        if store is not None:
            monkeypatch.setenv("MIXSWEEP_STORE", store)
        said = CliRunner().invoke(commands, arguments, standalone_mode=False)
        assert json.loads(said.stdout)["n"] == 2


def test_one_study_of_two_homes_is_compared_in_two_columns(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    train(here, environment={"device": "Xeon", "instructions": "AVX512"})
    train(there, environment={"device": "Xeon", "instructions": "AVX2"}, shift=0.05)
    places = ("--home", str(here), "--home", str(there))
    said = _side_by_side(*places, "--out", str(tmp_path / "out"))
    assert said.return_value == 0
    text = (tmp_path / "out" / "joined.md").read_text()
    assert said.stdout.strip() == text.strip()
    assert "AVX512" in text.splitlines()[2]
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        "joined.md", "joined.tex", "joined.csv", "joined_runs.csv", "joined_verdicts.csv",
        "provenance.json",
    }  # fmt: skip
    told = json.loads(_side_by_side(*places, "--json").stdout)
    assert told["columns"] == ["AVX512", "AVX2"]
    assert {record["column"] for record in told["means"]} == {"AVX512", "AVX2"}


def test_columns_show_when_their_claims_were_stated(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    file = tmp_path / "digits.yaml"
    claims = "claims: [{says: A, source: B, that: {less: [uniform, erm], metric: test/error}}]"
    file.write_text(load_study("digits", ()).source + claims)
    for home in (here, there):
        study = train(home, str(file))
        state(study, Store(str(home / "store")))
    arguments = ["report", str(file), "--home", str(here), "--home", str(there), "--json"]
    said = CliRunner().invoke(commands, arguments, standalone_mode=False)
    rows = json.loads(said.stdout)["verdicts"]
    assert [row["stated"] for row in rows] == ["after 4 of 4 runs"] * 2


def test_a_column_that_lacks_runs_is_reported_with_exit_code_1(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    train(here)
    train(there, but=("erm", 1))
    said = _side_by_side("--home", str(here), "--home", str(there))
    assert said.return_value == 1
    assert "5/6 runs are finished" in said.stderr


def test_studies_with_different_protocols_are_refused_with_the_difference(tmp_path: Path) -> None:
    source = train(tmp_path).source
    file = tmp_path / "longer.yaml"
    file.write_text(source.replace("study: digits", "study: longer").replace("3", "4", 1))
    said = _side_by_side(str(file), "--home", str(tmp_path))
    assert isinstance(said.exception, RefusedError)
    assert "in digits" in str(said.exception)
    assert "in longer" in str(said.exception)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("--home", "b", "--arms", "erm", "uniform"), "--arms cannot be used with several --home"),
        (("--home", "b", "--metric", "test/nll"), "--metric needs --arms"),
        (("--home", "b", "--store", "c"), "--store allows at most one --home"),
        (("--home", "b"), "a/store: this store does not exist"),
        (("--arms", "erm", "uniform"), "a/store: this store does not exist"),
    ],
)
def test_invalid_combinations_of_side_by_side_options_are_refused(
    arguments: tuple[str, ...], text: str
) -> None:
    said = _side_by_side("--home", "a", *arguments)
    assert isinstance(said.exception, RefusedError)
    assert text in str(said.exception)


def test_a_store_with_a_password_and_several_homes_are_refused(tmp_path: Path) -> None:
    address = "s3://me:secret@bucket"
    said = subprocess.run(
        [sys.executable, "-m", "mixsweep", "report", "digits", "--home", "a", "--home", "b",
         "--store", address],
        cwd=tmp_path, capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": str(Path(sweeps.__file__).parents[1])},
    )  # fmt: skip
    assert said.returncode == 2
    assert "MIXSWEEP_STORE instead" in said.stderr
    assert "secret" not in said.stdout + said.stderr
