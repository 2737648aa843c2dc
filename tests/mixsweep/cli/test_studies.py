"""studies: the list of bundled studies by question, its times, the search and one study."""

import json
from pathlib import Path

import pytest

from mixsweep.cli.studies import catalogue
from tests.bundled import bundled
from tests.mixsweep.cli.conftest import type_in
from tests.mixsweep.cli.trained import train

PUBLISHED = Path(__file__).parents[3] / "reports" / "published"


def test_listed_times_equal_those_of_the_published_runs() -> None:
    for name, listed in catalogue().items():
        seconds = None
        if (record := PUBLISHED / name / "provenance.json").is_file():
            told = json.loads(record.read_text())
            if not any(each.get("gpus") for each in told["environments"]):
                seconds = max(1, round(sum(run["seconds"] for run in told["runs"])))
        assert listed.seconds == seconds, f"put {seconds} for {name} into studies.yaml"


def test_stored_runs_give_the_time_of_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mixsweep.cli.studies.usable_cpus", lambda: 2)
    before = type_in("studies", "smoke test").stdout
    assert "digits  " in before
    assert "*" not in before
    train(tmp_path / "runs")
    seconds = sum(run.config.epochs for run in bundled("digits").runs())  # 2 s each, on 2 CPUs
    row = next(
        line for line in type_in("studies").stdout.splitlines() if line.startswith("  digits ")
    )
    assert row.split()[1:3] == [f"{seconds:.0f}", "s*"]
    assert "measured by runs stored here" in type_in("studies", "digits").stdout
