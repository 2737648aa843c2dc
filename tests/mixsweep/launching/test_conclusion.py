"""A launch with nothing to train repeats the last report, if nothing at all has changed."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from mixsweep.launching.conclusion import keep, recall
from mixsweep.request import Request
from mixup_core.keys import stage_keys
from mixup_core.records import EpochRecord
from mixup_core.store.checkpoints import Store
from mixup_core.store.manifests import EpochFacts, seal
from reports.pages.build import Report
from reports.tables.table import tabulate
from sweeps.machine.home import Home
from sweeps.reading.study_file import load_study
from sweeps.state.results import read_results
from tests.conftest import CommandLine
from tests.damages import DAMAGES

OVERRIDES = ("base.epochs=2", "seeds=2")
KEPT = "reports/.digits.conclusion.json"
HEAVY = ("ray", "torch", "mlflow", "pandas", "matplotlib", "optuna")


@pytest.fixture(scope="module")
def concluded(command_line: Callable[..., CommandLine]) -> CommandLine:
    """Home whose study was trained elsewhere, and then launched once."""
    mixsweep = command_line()
    store = Store(str(mixsweep.home / "store"))
    for number, run in enumerate(load_study("digits", OVERRIDES).runs()):
        store.write(
            stage_keys(run.config)[-1],
            records=[
                EpochRecord(epoch=e, metrics={"test/error": 0.1 + 0.01 * number, "train/loss": 1.0})
                for e in range(2)
            ],
            facts=[EpochFacts(seconds=1.0, stored_at_ms=1_700_000_000_000 + e) for e in range(2)],
            environment={"device": "cpu"},
            state=None,
        )
    run_again(mixsweep)
    return mixsweep


def run_again(mixsweep: CommandLine) -> "subprocess.CompletedProcess[str]":
    sets = [part for override in OVERRIDES for part in ("--set", override)]
    return mixsweep("run", "digits", *sets)


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
    ).replace(repr(HEAVY), repr(set(HEAVY)))
    sets = [part for override in OVERRIDES for part in ("--set", override)]
    again = subprocess.run(
        [sys.executable, "-c", program, "run", "digits", *sets],
        env=concluded.environment(), text=True, capture_output=True, check=True,
    )  # fmt: skip
    *said, loaded = again.stdout.splitlines()
    assert loaded == "loaded"
    assert said == first.stdout.splitlines()
    assert again.stderr == first.stderr


def _lose_a_report(home: Path) -> None:
    (home / "reports/digits/table.csv").unlink()


def _write_into_a_report(home: Path) -> None:
    (home / "reports/digits/table.md").write_text("better\n")


def _lose_a_stage(home: Path) -> None:
    next((home / "store/stages").glob("*/*.json")).unlink()


def _damage_a_stage(home: Path) -> None:
    file = next((home / "store/stages").glob("*/*.json"))
    content = file.read_bytes()
    file.write_bytes(content.replace(b"0.1", b"0.0", 1))


def _lose_the_database(home: Path) -> None:
    (home / "mlflow.db").unlink()


def _change_what_was_said(home: Path) -> None:
    file = home / KEPT
    content = file.read_bytes()
    assert b" points" in content
    file.write_bytes(content.replace(b" points", b" pointz", 1))


def _let_another_seal_it(home: Path) -> None:
    plain = json.loads((home / KEPT).read_text())
    del plain["sha256"]
    (home / KEPT).write_bytes(seal(plain | {"folder": ["digits"]}))


def _conclude_from_something_else(home: Path) -> None:
    plain = json.loads((home / KEPT).read_text())
    del plain["sha256"]
    (home / KEPT).write_bytes(seal(plain | {"evidence": "0" * 64}))


@pytest.mark.parametrize(
    "change",
    [
        _lose_a_report,
        _write_into_a_report,
        _lose_a_stage,
        _damage_a_stage,
        _lose_the_database,
        _change_what_was_said,
        _let_another_seal_it,
        _conclude_from_something_else,
    ],
)
def test_a_conclusion_is_not_recalled_after_any_change_in_the_home(
    concluded: CommandLine,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    change: Callable[[Path], None],
) -> None:
    assert is_recalled(concluded, monkeypatch)
    kept = tmp_path / "kept"
    shutil.copytree(concluded.home, kept)
    try:
        change(concluded.home)
        assert not is_recalled(concluded, monkeypatch)
    finally:
        shutil.rmtree(concluded.home)
        shutil.move(kept, concluded.home)


@pytest.mark.parametrize(
    "damage",
    [
        "empty",
        "bit flipped",
        "a folder",
    ],
)
def test_a_damaged_conclusion_is_replaced_without_an_error(
    concluded: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: str
) -> None:
    kept = tmp_path / "kept"
    shutil.copytree(concluded.home, kept)
    try:
        DAMAGES[damage](concluded.home / KEPT)
        assert not is_recalled(concluded, monkeypatch)
        keep_again(concluded, monkeypatch)
        assert is_recalled(concluded, monkeypatch) == (damage != "a folder")
    finally:
        shutil.rmtree(concluded.home)
        shutil.move(kept, concluded.home)


def keep_again(mixsweep: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this process store the conclusion of the last launch, as that launch did."""
    monkeypatch.setenv("MIXSWEEP_DATA", str(mixsweep.data))
    request = request_in(mixsweep.home)
    results = read_results(request.study.runs(), request.store)
    folder = request.home.report_of("digits")
    study, markdown = request.study, (folder / "table.md").read_text()
    report = Report(
        table=tabulate(study, results), screen="", markdown=markdown, folder=folder, files=()
    )
    keep(request, results, report)
