"""Conclusion: the last lines of a launch, and the record that repeats them if nothing changed."""

import json
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from unittest.mock import Mock

import pytest

from mixsweep.launching.conclusion import Conclusion, conclude, keep, recall
from mixsweep.request import Request
from mixup_core.records import EpochRecord
from mixup_core.store.checkpoints import Store
from mixup_core.store.manifests import Failure, seal
from reports.pages.screen import LINES
from sweeps.machine.home import Home
from sweeps.machine.terminal_text import COLUMNS, width_of
from sweeps.reading.study_file import load_study
from sweeps.state.results import RunResult, read_results
from sweeps.study.budget import Budget
from sweeps.study.search import SearchHistory
from tests.conftest import CommandLine, CommandLines
from tests.damages import DAMAGES
from tests.filled import put
from tests.interpreters import run_python
from tests.reports.synthetic import finish

OVERRIDES = ("base.epochs=2", "seeds=2")
SETS = ("--set", OVERRIDES[0], "--set", OVERRIDES[1])
KEPT = "reports/.digits.conclusion.json"
HEAVY = {"ray", "torch", "mlflow", "pandas", "matplotlib", "optuna"}


@pytest.fixture(scope="module")
def concluded(command_line: CommandLines) -> CommandLine:
    """Home whose study was trained elsewhere, and then launched once."""
    mixsweep = command_line()
    store = Store(str(mixsweep.home / "store"))
    for number, run in enumerate(load_study("digits", OVERRIDES).runs()):
        metrics = {"test/error": 0.1 + 0.01 * number, "train/loss": 1.0}
        records = [EpochRecord(epoch=epoch, metrics=metrics) for epoch in range(2)]
        put(store, run, records, environment={"device": "cpu"})
    run_again(mixsweep)
    return mixsweep


def run_again(mixsweep: CommandLine) -> "subprocess.CompletedProcess[str]":
    return mixsweep("run", "digits", *SETS)


def request_in(home: Path) -> Request:
    study = load_study("digits", OVERRIDES)
    return Request(reference="digits", overrides=OVERRIDES, study=study, home=Home(folder=home))


def is_recalled(mixsweep: CommandLine, monkeypatch: pytest.MonkeyPatch) -> bool:
    monkeypatch.setenv("MIXSWEEP_DATA", str(mixsweep.data))
    request = request_in(mixsweep.home)
    return recall(request, read_results(request.study.runs(), request.store)) is not None


def test_a_repeated_launch_imports_no_heavy_module_and_prints_the_same_text(
    concluded: CommandLine,
) -> None:
    first = run_again(concluded)
    program = (
        "import atexit, sys; from mixsweep.cli.main import main; sys.argv[0] = 'mixsweep'\n"
        f"atexit.register(lambda: print('loaded', *({HEAVY!r} & sys.modules.keys())))\n"
        "main()"
    )
    again = run_python(program, "run", "digits", *SETS, env=concluded.environment(), check=True)
    *said, loaded = again.stdout.splitlines()
    assert loaded == "loaded"
    assert said == first.stdout.splitlines()
    assert again.stderr == first.stderr


def _replace(file: str, old: bytes, new: bytes, home: Path) -> None:
    path = next(home.glob(file))
    content = path.read_bytes()
    assert old in content
    path.write_bytes(content.replace(old, new, 1))


def _seal(home: Path, **changes: object) -> None:
    """Write the conclusion with other content, as another program may seal it."""
    plain = json.loads((home / KEPT).read_text())
    del plain["sha256"]
    (home / KEPT).write_bytes(seal(plain | changes))


def _lose(file: str, home: Path) -> None:
    next(home.glob(file)).unlink()


CHANGES: dict[str, Callable[[Path], object]] = {
    "a lost report": partial(_lose, "reports/digits/table.csv"),
    "a changed report": partial(_replace, "reports/digits/table.md", b"erm", b"new"),
    "a lost stage": partial(_lose, "store/stages/*/*.json"),
    "a damaged stage": partial(_replace, "store/stages/*/*.json", b"0.1", b"0.0"),
    "a lost database": partial(_lose, "mlflow.db"),
    "another text": partial(_replace, KEPT, b" points", b" pointz"),
    "another type": partial(_seal, folder=["digits"]),
    "other evidence": partial(_seal, evidence="0" * 64),
}


@pytest.fixture
def changing(concluded: CommandLine, tmp_path: Path) -> Iterator[CommandLine]:
    """Return the home, which is as before after the test."""
    shutil.copytree(concluded.home, kept := tmp_path / "kept")
    yield concluded
    shutil.rmtree(concluded.home)
    shutil.move(kept, concluded.home)


@pytest.mark.parametrize("change", CHANGES)
def test_a_conclusion_is_not_recalled_after_any_change_in_the_home(
    changing: CommandLine, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    assert is_recalled(changing, monkeypatch)
    CHANGES[change](changing.home)
    assert not is_recalled(changing, monkeypatch)


@pytest.mark.parametrize("damage", ["empty", "bit flipped", "a folder"])
def test_a_damaged_conclusion_is_replaced_without_an_error(
    changing: CommandLine, monkeypatch: pytest.MonkeyPatch, damage: str
) -> None:
    DAMAGES[damage](changing.home / KEPT)
    assert not is_recalled(changing, monkeypatch)
    keep_again(changing, monkeypatch)
    assert is_recalled(changing, monkeypatch) == (damage != "a folder")


def keep_again(mixsweep: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this process store the conclusion of the last launch, as that launch did."""
    monkeypatch.setenv("MIXSWEEP_DATA", str(mixsweep.data))
    request = request_in(mixsweep.home)
    report = Mock(folder=request.home.report_of("digits"), screen="")
    keep(request, read_results(request.study.runs(), request.store), report)


REASON = "RuntimeError: CUDA out of memory.\n" + "Tried to allocate 2.00 GiB.\t" * 20


def test_the_last_lines_are_few_and_short_for_reasons_of_any_length(
    capsys: pytest.CaptureFixture[str],
) -> None:
    study = load_study("digits")
    failure = Failure(run_key="0" * 32, kind="failed", message=REASON, epoch=0, attempts=3)
    results = [RunResult(run=run, stage=None, failure=failure) for run in study.runs()]
    request = request_in(Path("runs"))
    ended = "used up its budget of 2 hours, " + "as its study file says, " * 6
    request.__dict__["history"] = SearchHistory(ended=ended)
    conclude(request, results, Conclusion(folder=Path("runs") / "reports" / "digits", screen=""))
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) + LINES <= 40
    assert max(map(width_of, lines)) <= COLUMNS, max(lines, key=width_of)


def test_a_study_that_used_up_its_budget_names_no_next_command(
    capsys: pytest.CaptureFixture[str],
) -> None:
    study = load_study("digits", ["base.epochs=10", "budget.runs=3"])
    results = [
        finish(run, 0.1) if run.seed == 0 else RunResult(run=run, stage=None, failure=None)
        for run in study.runs()
    ]
    for budget, is_next in ((study.budget, False), (Budget(), True)):
        request = replace(request_in(Path("runs")), study=replace(study, budget=budget))
        conclude(request, results, Conclusion(folder=Path("runs"), screen=""))
        lines = capsys.readouterr().err.splitlines()
        assert any(line.startswith("next ") for line in lines) == is_next
