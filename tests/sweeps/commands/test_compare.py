import json
from pathlib import Path

import pytest
import scipy.stats
from click.testing import CliRunner, Result
from trained import error_of, train

from sweeps.cli import commands
from sweeps.commands.request import RefusedError

SEEDS = ("--set", "seeds=4")


def _compare(home: Path, *arguments: str) -> Result:
    return CliRunner().invoke(
        commands, ["compare", *arguments, "--home", str(home)], standalone_mode=False
    )


@pytest.fixture
def home(tmp_path: Path) -> Path:
    train(tmp_path, "digits", "seeds=4", but=("uniform", 3))
    return tmp_path


def test_two_arms_of_a_study_are_paired_over_the_seeds_that_both_have(home: Path) -> None:
    said = _compare(home, "digits", *SEEDS, "--arms", "uniform", "erm", "--json")
    told = json.loads(said.stdout)
    ours, theirs = ([error_of(place, seed, 2) for seed in range(3)] for place in (2, 0))
    test = scipy.stats.ttest_rel(ours, theirs)
    assert told["n"] == 3
    assert told["p"] == pytest.approx(test.pvalue)
    assert told["difference"] == pytest.approx(sum(ours) / 3 - sum(theirs) / 3)
    assert told["values"][1].keys() == {"0", "1", "2", "3"}
    text = _compare(home, "digits", *SEEDS, "--arms", "uniform", "erm").stdout
    assert "minus erm, points" in text
    assert "| 3    | — " in text.replace("| 3   |", "| 3    |")


def test_arms_of_two_studies_are_compared_and_named_with_them(home: Path, tmp_path: Path) -> None:
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


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("--arms", "erm", "mild"), "no arm 'mild'"),
        (("--arms", "erm", "uniform", "--metric", "val/error"), "no finished run with val/error"),
        (("--arms", "erm", "uniform", "--set", "base.epochs=9"), "no finished run with test/error"),
    ],
)
def test_what_cannot_be_compared_is_refused(
    home: Path, arguments: tuple[str, ...], text: str
) -> None:
    said = _compare(home, "digits", *arguments)
    assert isinstance(said.exception, RefusedError)
    assert text in str(said.exception)
