"""Paths: a home works in any folder, or is refused in one line before anything is written."""

import json
import os
import re
import urllib.request
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.conftest import CommandLine, CommandLines

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

ODD = ("a::b", "h?1", "what?mode=ro", "w%201", "a#b", "results[2026]", "a\\b", "me@site:x", "~x",
       "$HOME", "é 'x'")  # fmt: skip
REFUSED = {
    "too long": "/".join(["x" * 200] * 3),
    "not UTF-8": os.fsdecode(b"n\xff"),
    "a line break": "a\nb",
}
STUDY = """
study: odd
base: {data: {name: digits, val_size: 200}, model: {name: mlp}, epochs: 1, batch_size: 512}
arms: {erm: {mix.law: erm}}
seeds: 1
search:
  space: {mix.law: {beta: {log_uniform: [0.5, 2.0]}}}
  points: 1
  objective: val/error
"""
COMMANDS = (
    "plan {study}", "status {study}", "run {study} --engine inline", "run {study} --engine inline",
    "report {study}", "sync {study}", "report {study} --epochs {out}", "status",
    "store list {study}", "store verify", "store prune {study} --yes",
    "report {study} --arms erm point-0000",
    "stop {study}", "plan",
)  # fmt: skip


@pytest.mark.parametrize(
    "name",
    ["/".join(ODD), *(pytest.param(name, marks=pytest.mark.long) for name in ODD)],
    ids=["all", *ODD],
)
def test_every_command_works_with_unusual_characters_in_the_home_path(
    command_line: CommandLines,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
) -> None:
    home, study = tmp_path / "place" / name, tmp_path / "odd.yaml"
    home.parent.mkdir(parents=True)
    study.write_text(STUDY)
    monkeypatch.chdir(home.parent)
    mixsweep = command_line(home)
    for ran in mixsweep.each(_arguments(COMMANDS, study, tmp_path / "out.csv")):
        said = ran.stdout + ran.stderr
        assert ran.returncode in ({0, 1, 2} if ran.args[0] in _MAY_FAIL else {0}), (ran.args, said)
        assert "Traceback" not in said, ran.args
    assert _beside(home, tmp_path / "place") == []
    assert {"store", "mlflow.db", "optuna.db", "reports"} <= {path.name for path in home.iterdir()}
    (experiment,) = _shown_by_ui(mixsweep)
    assert experiment["name"] == "odd"
    assert experiment["artifact_location"] == f"{(home / 'artifacts').as_uri()}"
    assert _beside(home, tmp_path / "place") == []


@pytest.mark.parametrize("name", REFUSED.values(), ids=REFUSED)
def test_an_unsupported_home_path_is_refused_before_writing(
    command_line: CommandLines, tmp_path: Path, name: str
) -> None:
    mixsweep = command_line(MIXSWEEP_HOME=os.fspath(tmp_path / name))
    commands = (*COMMANDS, "ui", "submit digits --address http://127.0.0.1:1")
    for ran in mixsweep.each(_arguments(commands, "digits", tmp_path / "x")):
        assert ran.returncode == 2, ran
        assert len(ran.stderr.splitlines()) == 1, ran
        assert re.match(r"(Invalid value for ')?--home[ :']", ran.stderr), ran
    assert list(tmp_path.iterdir()) == []


_MAY_FAIL = {"report", "stop"}
"""Commands that may say that there is nothing to compare or to stop."""


def _arguments(commands: Iterable[str], study: object, out: Path) -> list[list[str]]:
    return [[part.format(study=study, out=out) for part in command.split()] for command in commands]


def _beside(home: Path, place: Path) -> list[str]:
    """Return the files beside the home and the folders above it."""
    own = {home, *home.parents}
    found = (
        Path(folder) / name for folder, names, files in os.walk(place) for name in names + files
    )
    return [os.fspath(path) for path in found if path not in own and home not in path.parents]


def _shown_by_ui(mixsweep: CommandLine) -> list[dict[str, str]]:
    """Return the experiments on MLflow's pages, without the default one."""
    with mixsweep.serving() as (_, port):
        address = f"http://127.0.0.1:{port}/api/2.0/mlflow/experiments/search?max_results=9"
        with urllib.request.urlopen(address, timeout=20) as answer:
            found: list[dict[str, str]] = json.load(answer)["experiments"]
    return [experiment for experiment in found if experiment["name"] != "Default"]
