"""Report folders: where reports are, with a real store and commands as users type them."""

import errno
import json
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from mixsweep.cli.main import commands
from mixup_core.keys import stage_keys
from mixup_core.plugins import loading
from mixup_core.predictions import Predictions
from mixup_core.records import EpochRecord
from mixup_core.store.checkpoints import Store
from mixup_core.store.manifests import EpochFacts, Failure
from reports.pages.build import draft_report
from reports.pages.report_folders import Room, standing, standings
from sweeps.reading.study_file import load_study
from sweeps.state.ledger import enter, settings_of, spell_differences
from sweeps.study.study import Study
from tests.damages import DAMAGES, Damage
from tests.plugin_files import HALVING, Write
from tests.reports.synthetic_predictions import split_of

Mixsweep = Callable[..., Result]

TIMED = {"report.html", "provenance.json"}


@pytest.fixture(scope="module", autouse=True)
def _one_figure() -> Iterator[None]:
    """Leave the curves out of the reports, because drawing takes most of their time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("reports.pages.build.draw_curves", lambda *_: None)
        yield


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MIXSWEEP_HOME", str(tmp_path))
    return tmp_path


def _reported(*arguments: str) -> Result:
    return CliRunner().invoke(commands, ["report", "digits", *arguments], standalone_mode=False)


@pytest.fixture
def report(home: Path) -> Mixsweep:
    return _reported


def _train(home: Path, *overrides: str, but: tuple[str, int] | None = None) -> Study:
    """Store every run of the study but one, as a launch would."""
    study, store = load_study("digits", overrides), Store(str(home / "store"))
    enter(study, store, "mixsweep run digits")
    for run in study.runs():
        epochs = run.config.epochs
        if (run.arm, run.seed) != but:
            store.write(
                stage_keys(run.config)[-1],
                records=[
                    EpochRecord(epoch=epoch, metrics={"test/error": 0.1 / (run.seed + epoch + 1)})
                    for epoch in range(epochs)
                ],
                facts=[EpochFacts(seconds=1.0, stored_at_ms=epoch) for epoch in range(epochs)],
                environment={},
                state=None,
            )
    return study


def _bytes(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*.*")}


def _rows(folder: Path) -> int:
    return len((folder / "runs.csv").read_text().splitlines()) - 1


def _beside(home: Path) -> list[Path]:
    return sorted((home / "reports").glob("digits@*"))


@pytest.fixture(scope="module")
def finished_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a home with a finished report, of which each test has a copy."""
    home = tmp_path_factory.mktemp("finished")
    _train(home)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MIXSWEEP_HOME", str(home))
        assert _reported().return_value == 0
    return home


@pytest.fixture
def finished(home: Path, finished_home: Path) -> dict[str, bytes]:
    shutil.copytree(finished_home, home, dirs_exist_ok=True)
    content = _bytes(home / "reports" / "digits")
    assert json.loads(content["provenance.json"])["finished"]
    return content


def test_a_report_on_settings_without_results_moves_the_finished_report_aside(
    home: Path, report: Mixsweep, finished: dict[str, bytes]
) -> None:
    said = report("--set", "base.epochs=7")
    assert said.return_value == 1
    (other,) = _beside(home)
    assert _bytes(other) == finished
    assert f"was moved to {other}: it was made with base.epochs=3; you asked for 7" in said.stderr
    assert "0/2" in (home / "reports" / "digits" / "table.md").read_text()


def test_a_finished_report_is_kept_if_a_run_is_damaged_or_fails_later(
    home: Path, report: Mixsweep, finished: dict[str, bytes]
) -> None:
    study = load_study("digits")
    damaged = study.runs()[4]
    (manifest,) = (home / "store").glob(f"stages/*/{stage_keys(damaged.config)[-1]}*.json")
    manifest.write_bytes(manifest.read_bytes()[:-9])
    Store(str(home / "store")).failures.write(
        Failure(run_key=damaged.key, kind="failed", message="no room", epoch=0, attempts=3)
    )
    said = report()
    assert said.return_value == 1
    (whole,) = _beside(home)
    assert _bytes(whole) == finished
    assert "it has runs or predictions that the new report lacks" in said.stderr
    assert "1/2" in (home / "reports" / "digits" / "table.md").read_text()


def test_a_finished_report_replaces_the_unfinished_report_once_trained(
    home: Path, report: Mixsweep, finished: dict[str, bytes]
) -> None:
    assert report("--set", "seeds=3").return_value == 1
    (whole,) = _beside(home)
    assert (_rows(whole), _rows(home / "reports" / "digits")) == (6, 9)
    _train(home, "seeds=3")
    assert report("--set", "seeds=3").return_value == 0
    assert (_beside(home), _rows(home / "reports" / "digits")) == ([], 9)


def test_finished_reports_under_two_settings_are_both_kept(
    home: Path, report: Mixsweep, finished: dict[str, bytes]
) -> None:
    _train(home, "base.epochs=2")
    said = report("--set", "base.epochs=2")
    assert said.return_value == 0
    (first,) = _beside(home)
    assert _bytes(first) == finished
    assert str(first) in said.stderr
    both = standings(home / "reports" / "digits", "digits")
    assert [found.arms["erm"]["epochs"] for found in both] == [2, 3]
    assert report().return_value == 0, "and back"
    both = standings(home / "reports" / "digits", "digits")
    assert [found.arms["erm"]["epochs"] for found in both] == [3, 2]


def test_a_report_on_all_seeds_is_kept_beside_a_report_on_some_seeds(
    home: Path, report: Mixsweep, finished: dict[str, bytes]
) -> None:
    assert report("--set", "seeds=1").return_value == 0
    (whole,) = _beside(home)
    assert _bytes(whole) == finished
    assert _rows(home / "reports" / "digits") == 3


def test_an_unfinished_report_is_replaced_by_any_report(home: Path, report: Mixsweep) -> None:
    _train(home, but=("erm", 1))
    assert report().return_value == 1
    assert not standing(home / "reports" / "digits", "digits").is_finished  # type: ignore[union-attr]
    assert report("--set", "base.epochs=7").return_value == 1
    assert _beside(home) == []
    _train(home)
    assert report().return_value == 0
    assert (_beside(home), _rows(home / "reports" / "digits")) == ([], 6)


def test_a_finished_report_in_a_folder_of_the_user_is_moved_aside_by_an_unfinished_one(
    home: Path, report: Mixsweep, finished: dict[str, bytes]
) -> None:
    out = home / "paper"
    assert report("--out", str(out)).return_value == 0
    before = _bytes(out)
    assert report("--out", str(out), "--set", "base.epochs=7").return_value == 1
    (whole,) = home.glob("paper@*")
    assert _bytes(whole) == before


def test_a_folder_without_provenance_does_not_count_as_a_report(tmp_path: Path) -> None:
    assert standing(tmp_path, "digits") is None
    for content in ("", "[]", '{"runs": 3}', "{}"):
        (tmp_path / "provenance.json").write_text(content)
        assert standing(tmp_path, "digits") is None


def _nest(path: Path) -> None:
    path.write_bytes(b"[" * 100_000)


def _be_of_another_study(path: Path) -> None:
    content = json.loads(path.read_text())
    runs = [{**run, "run_key": f"other {run['run_key']}"} for run in content["runs"]]
    path.write_text(json.dumps({**content, "study": "other", "settings": "0", "runs": runs}))


LOST: dict[str, Damage] = {
    **{name: DAMAGES[name] for name in ("empty", "a list", "other's content", "missing")},
    "nested too deep": _nest,
    "another study's": _be_of_another_study,
}


@pytest.mark.parametrize("damage", LOST)
def test_a_report_with_lost_provenance_is_kept_beside_a_report_on_fewer_seeds(
    home: Path, report: Mixsweep, finished: dict[str, bytes], damage: str
) -> None:
    folder = home / "reports" / "digits"
    LOST[damage](folder / "provenance.json")
    left = {name: content for name, content in finished.items() if name != "provenance.json"}
    said = report("--set", "seeds=1")
    assert said.return_value == 0
    aside = folder.with_name("digits@earlier")
    assert f"was moved to {aside}: its provenance.json cannot be read" in said.stderr
    assert {name: (aside / name).read_bytes() for name in left} == left
    assert _rows(folder) == 3
    assert standing(folder, "digits").is_known  # type: ignore[union-attr]


def test_a_pipe_in_a_report_is_not_replaced(
    home: Path, report: Mixsweep, finished: dict[str, bytes]
) -> None:
    del finished
    provenance = home / "reports" / "digits" / "provenance.json"
    DAMAGES["a FIFO"](provenance)
    assert f"{provenance}: is a pipe and is not replaced" in str(report().exception)
    assert provenance.is_fifo()


def test_an_unreadable_report_is_moved_aside_completely(
    home: Path, report: Mixsweep, finished: dict[str, bytes]
) -> None:
    folder = home / "reports" / "digits"
    for number in range(2):
        (folder / "provenance.json").write_text("")
        (folder / "runs.csv").write_text("")
        before = _bytes(folder)
        said = report("--set", "seeds=1")
        aside = folder.with_name(f"digits@earlier{'.1' * number}")
        assert (said.return_value, _bytes(aside)) == (0, before)
        assert f"was moved to {aside}: its provenance.json cannot be read" in said.stderr
        assert _rows(folder) == 3


def test_an_unfinished_report_with_lost_provenance_is_replaced(
    home: Path, report: Mixsweep
) -> None:
    _train(home, but=("erm", 1))
    assert report().return_value == 1
    (home / "reports" / "digits" / "provenance.json").unlink()
    assert report().return_value == 1
    assert _beside(home) == []
    assert standing(home / "reports" / "digits", "digits").is_known  # type: ignore[union-attr]


def test_a_finished_report_under_other_settings_is_not_replaced_by_an_unfinished_one(
    home: Path, report: Mixsweep, finished: dict[str, bytes]
) -> None:
    _train(home, "base.epochs=2")
    assert report("--set", "base.epochs=2").return_value == 0
    (first,) = _beside(home)
    other = _bytes(home / "reports" / "digits")
    damaged = load_study("digits").runs()[4]
    (manifest,) = (home / "store").glob(f"stages/*/{stage_keys(damaged.config)[-1]}*.json")
    manifest.unlink()
    for _ in range(2):
        assert report().return_value == 1
        assert _bytes(first) == finished
        (second,) = set(_beside(home)) - {first}
        assert _bytes(second) == other
    _train(home)
    assert report().return_value == 0
    assert len(_beside(home)) == 1, "of the other settings"
    assert _rows(home / "reports" / "digits") == 6


@pytest.mark.parametrize("outcome", ["complete", "diverged"])
def test_an_incomplete_line_of_runs_csv_makes_all_its_runs_unknown(
    tmp_path: Path, outcome: str
) -> None:
    (tmp_path / "runs.csv").write_text(f"run_key,seed,outcome\naa,0,{outcome}\nbb,1")
    found = standing(tmp_path, "digits")
    assert found is not None
    assert found.is_finished
    assert not found.complete <= {"aa", "bb"}


def _predict(home: Path, study: Study) -> list[Path]:
    """Store predictions of every run; return the files."""
    store = Store(str(home / "store"))
    for run in study.runs():
        key = stage_keys(run.config)[-1]
        stage = store.read(key)
        assert stage is not None
        content = Predictions(splits={"test": split_of(run.arm, run.seed)}).to_bytes()
        store.predictions.write(key, stage.records[-1], content)
    return sorted((home / "store").glob("predictions/*/*.bin"))


@pytest.mark.parametrize("num_lost", [1, 6])
def test_a_report_with_predictions_is_kept_beside_one_without(
    home: Path, report: Mixsweep, num_lost: int
) -> None:
    study = _train(home)
    files = _predict(home, study)
    assert report().return_value == 0
    folder = home / "reports" / "digits"
    finished = _bytes(folder)
    assert "tables/calibration.csv" in finished
    for path in files[:num_lost]:
        path.write_bytes(path.read_bytes()[:-9])
    for is_first in (True, False):
        said = report()
        assert said.return_value == 0
        assert ("it has runs or predictions that the new report" in said.stderr) == is_first
        (whole,) = _beside(home)
        assert _bytes(whole) == finished
    _predict(home, study)
    assert report().return_value == 0
    again = _bytes(folder)
    assert {name for name in finished if finished[name] != again[name]} <= TIMED
    assert _beside(home) == []


def test_a_report_with_more_runs_and_fewer_predictions_keeps_the_other_aside(
    home: Path, report: Mixsweep
) -> None:
    _predict(home, _train(home))
    assert report().return_value == 0
    finished = _bytes(home / "reports" / "digits")
    for path in (home / "store").glob("predictions/*/*.bin"):
        path.unlink()
    _train(home, "seeds=3")
    for is_first in (True, False):
        said = report("--set", "seeds=3")
        assert said.return_value == 0
        assert ("it has runs or predictions that" in said.stderr) == is_first
        assert _rows(home / "reports" / "digits") == 9
        assert "tables/calibration.csv" not in _bytes(home / "reports" / "digits")
        (first,) = _beside(home)
        assert _bytes(first) == finished


def test_a_report_of_other_seeds_is_moved_aside_for_this_reason(
    home: Path, report: Mixsweep
) -> None:
    _train(home)
    assert report().return_value == 0
    finished = _bytes(home / "reports" / "digits")
    _train(home, "seeds=[5, 6]")
    said = report("--set", "seeds=[5, 6]")
    (first,) = _beside(home)
    assert (said.return_value, _bytes(first)) == (0, finished)
    assert f"was moved to {first}: it has other seeds (seeds 0-1)" in said.stderr


@pytest.mark.parametrize("name", ["digits@for-the-paper", "digits@0123456789", "digits@earlier.md"])
def test_a_copy_of_a_report_under_a_name_of_the_user_is_never_deleted(
    home: Path, report: Mixsweep, finished: dict[str, bytes], name: str
) -> None:
    copy = home / "reports" / name
    shutil.copytree(home / "reports" / "digits", copy)
    assert report().return_value == 0
    assert _bytes(copy) == finished


def test_an_outdated_report_is_deleted_only_after_the_new_one_is_written(
    home: Path, report: Mixsweep, finished: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = json.loads(finished["provenance.json"])["settings"]
    outdated = home / "reports" / f"digits@{settings[:8]}"
    shutil.copytree(home / "reports" / "digits", outdated)

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "disk full")

    with monkeypatch.context() as broken:
        broken.setattr("reports.pages.build.replace_files", full)
        assert isinstance(report().exception, OSError)
    assert _bytes(outdated) == finished
    assert report().return_value == 0
    assert not outdated.exists()


def test_a_report_and_the_ledger_record_the_same_plugins_of_each_arm(
    tmp_path: Path, plugin: Write
) -> None:
    loading.use(str(plugin(HALVING, name="halve.py")))
    arms = "arms: {slow: {}, fast: {start: 2.0}}\n"
    file = tmp_path / "halved.yaml"
    file.write_text("study: halved\nproblem: halving\nbase: {}\n" + arms + "seeds: 1\n")
    study = load_study(str(file))
    draft = draft_report(study, [], data_checksums={}, command="")
    draft.write(tmp_path / "halved")
    found = standing(tmp_path / "halved", "halved")
    assert found is not None
    assert spell_differences(found.arms, study, found.seeds) == ""
    assert found.arms == json.loads(json.dumps(settings_of(study)))
    other = replace(study, arms={**study.arms, "fast": replace(study.arms["fast"], start=3.0)})
    assert spell_differences(found.arms, other) == "arms.fast.start=2.0; you asked for 3.0"


def test_a_report_is_moved_where_folders_cannot_be_renamed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))

    (tmp_path / "digits").mkdir()
    (tmp_path / "digits" / "table.md").write_text("| arm |")
    monkeypatch.setattr(os, "rename", refuse)
    monkeypatch.setattr(Path, "rename", refuse)
    Room(folder=tmp_path / "digits", moves=tmp_path / "digits@old").make()
    assert [path.name for path in tmp_path.iterdir()] == ["digits@old"]
    assert (tmp_path / "digits@old" / "table.md").read_text() == "| arm |"
