"""studies: the list of bundled studies by question, its times, the search and one study."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from mixsweep.cli.main import commands
from mixsweep.cli.studies import COLUMNS, catalogue, description_of
from mixsweep.request import DONE, RefusedError
from sweeps.reading.study_file import bundled_names
from tests.bundled import bundled
from tests.mixsweep.cli.trained import train

PUBLISHED = Path(__file__).parents[3] / "reports" / "published"
List = Callable[..., Result]


@pytest.fixture
def studies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> List:
    monkeypatch.setenv("MIXSWEEP_HOME", str(tmp_path / "runs"))
    monkeypatch.setattr("mixsweep.cli.studies.usable_cpus", lambda: 2)

    def run(*words: str) -> Result:
        return CliRunner().invoke(commands, ["studies", *words], standalone_mode=False)

    return run


def test_every_bundled_study_is_listed_once_in_a_short_line(tmp_path: Path, studies: List) -> None:
    said = studies()
    assert (said.return_value, said.stderr) == (DONE, "")
    assert list(tmp_path.iterdir()) == []
    words = said.stdout.replace(",", " ").split()
    assert sorted(catalogue()) == bundled_names()
    assert all(words.count(name) >= 1 for name in bundled_names())
    lines = said.stdout.splitlines()
    assert max(map(len, lines)) <= COLUMNS
    assert {each.question for each in catalogue().values()} <= set(lines)


def test_listed_times_equal_those_of_the_published_runs() -> None:
    for name, listed in catalogue().items():
        seconds = None
        if (record := PUBLISHED / name / "provenance.json").is_file():
            told = json.loads(record.read_text())
            if not any(each.get("gpus") for each in told["environments"]):
                seconds = max(1, round(sum(run["seconds"] for run in told["runs"])))
        assert listed.seconds == seconds, f"put {seconds} for {name} into studies.yaml"


def test_a_word_selects_studies_by_name_question_and_description(studies: List) -> None:
    assert bundled("label-order").description == description_of("label-order")
    by_name = studies("cifar100").stdout
    assert all(name in by_name for name in ("table1-cifar100", "mixup-e-cifar100"))
    assert "over-training-vgg16" not in by_name
    assert "label-order" in studies("WRONG LABELS").stdout
    assert "over-training-augmented" in studies("Liu et al. 2023").stdout
    both = studies("wrong", "operations").stdout
    assert "label-noise" in studies("wrong").stdout
    assert set(both.splitlines()) <= {*studies("wrong").stdout.splitlines(), ""}
    refused = studies("wrong", "horses").exception
    assert isinstance(refused, RefusedError)
    assert "has 'wrong' and 'horses'" in str(refused)
    refused = studies("horses").exception
    assert isinstance(refused, RefusedError)
    assert "no bundled study has 'horses'" in str(refused)


def test_a_name_shows_the_whole_description(studies: List) -> None:
    said = studies("label-order").stdout
    assert bundled("label-order").description in said.replace("\n", " ")
    assert "time      5 min on 2 CPUs, from its published runs" in said


def test_stored_runs_give_the_time_of_this_machine(tmp_path: Path, studies: List) -> None:
    assert "digits  " in studies("smoke test").stdout
    assert "*" not in studies("smoke test").stdout
    train(tmp_path / "runs")
    seconds = sum(run.config.epochs for run in bundled("digits").runs())  # 2 s each, on 2 CPUs
    row = next(line for line in studies().stdout.splitlines() if line.startswith("  digits "))
    assert row.split()[1:3] == [f"{seconds:.0f}", "s*"]
    assert "measured by runs stored here" in studies("digits").stdout
