import json
import math
import statistics
from pathlib import Path

import pytest
import scipy.stats
from click.testing import CliRunner, Result

from mixsweep.cli.main import commands
from mixsweep.request import RefusedError
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


def _side_by_side(*arguments: str) -> Result:
    return CliRunner().invoke(
        commands, ["report", "digits", *arguments], standalone_mode=False, env={}
    )


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


def test_a_column_that_lacks_runs_is_reported_with_exit_code_1(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    train(here)
    train(there, but=("erm", 1))
    said = _side_by_side("--home", str(here), "--home", str(there))
    assert said.return_value == 1
    assert "5/6 runs are finished" in said.stderr
