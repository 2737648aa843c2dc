"""A plugin from an empty folder to a table: operation, network and dataset in one file."""

import csv
import io
import json
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cluster.head import Head, started_head
from tests.conftest import CommandLine
from tests.faults.launches import wait_for
from tests.tracked_runs import read_runs

pytestmark = [pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(900, func_only=True)]


@pytest.fixture
def folder(
    tmp_path: Path, command_line: Callable[..., CommandLine], monkeypatch: pytest.MonkeyPatch
) -> Path:
    monkeypatch.chdir(tmp_path)
    command_line()("new", ".")
    return tmp_path


@pytest.fixture(scope="module")
def head() -> Iterator[Head]:
    with started_head() as head:
        yield head


def test_a_plugin_is_swept_killed_resumed_and_reported(
    folder: Path, command_line: Callable[..., CommandLine]
) -> None:
    whole, mixsweep = command_line(), command_line()
    arguments = ("study.yaml", "--plugin", "plugin.py", "--set", "base.epochs=30")
    whole("run", *arguments, "--engine", "inline")
    for _ in range(2):
        launch = mixsweep.start("run", *arguments, "--slots", "2")
        stored = mixsweep.home / "store" / "stages"
        wait_for(lambda place=stored: (place.exists() and any(place.rglob("*.json"))) or None)
        launch.send_signal(signal.SIGKILL)
        launch.communicate(timeout=60)
    ran = mixsweep("run", *arguments, "--slots", "2")
    assert ran.stdout.count("3/3") == 3
    assert mixsweep.json("plan", *arguments)["to_run"] == 0
    assert mixsweep.report("corners", "runs.csv") == whole.report("corners", "runs.csv")
    rows = list(csv.DictReader(io.StringIO(mixsweep.report("corners", "table.csv").decode())))
    assert [row["arm"] for row in rows] == ["erm", "mixup", "halves"]
    assert list((mixsweep.home / "reports" / "corners" / "figures").iterdir())
    provenance = json.loads(mixsweep.report("corners", "provenance.json"))
    assert [plugin["plugin"] for plugin in provenance["plugins"]] == ["plugin.py"]
    tracked = read_runs(f"sqlite:///{mixsweep.home / 'mlflow.db'}", "corners")
    assert len(tracked) == 9


def test_an_edited_plugin_retrains_only_the_runs_that_use_the_plugin(
    folder: Path, command_line: Callable[..., CommandLine]
) -> None:
    mixsweep = command_line()
    study = (folder / "study.yaml").read_text().replace("corners, val_size: 80", "digits")
    study = study.replace("plugins: [plugin.py]", "")
    (folder / "small.yaml").write_text(study.replace("{name: tiny, channels: 8}", "{name: mlp}"))
    small = ("small.yaml", "--plugin", "plugin.py", "--set", "seeds=1")
    mixsweep("run", *small, "--engine", "inline")
    plugin = folder / "plugin.py"
    plugin.write_text(plugin.read_text() + "\n# a remark\n")
    assert mixsweep.json("plan", *small)["to_run"] == 0, "a remark changes no number"
    plugin.write_text(plugin.read_text().replace("rows / height", "1 - rows / height"))
    refused = mixsweep("plan", "small.yaml", code=2).stderr
    assert "if a plugin defines this operation, add --plugin FILE\n" in refused
    planned = mixsweep("plan", *small)
    assert (
        "1 finished run stored here with another version of the plugin plugin.py (source "
        in planned.stderr
    )
    assert mixsweep.json("plan", *small)["to_run"] == 1, "ERM and mixup use none of it"
