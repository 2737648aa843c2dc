"""Tests of the folders of reports and of their files."""

import errno
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from mixsweep.cli.main import commands
from mixup_core.keys import stage_keys
from mixup_core.predictions import Predictions
from mixup_core.store.checkpoints import Store
from mixup_core.store.manifests import Failure
from mixup_core.temporary import OutputError
from reports.pages.report_folders import replace_files
from sweeps.reading.study_file import load_study
from sweeps.study.study import Study
from tests.mixsweep.cli.trained import train
from tests.reports.synthetic_predictions import split_of

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


def report(*arguments: str) -> Result:
    return CliRunner().invoke(commands, ["report", "digits", *arguments], standalone_mode=False)


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
    train(home)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MIXSWEEP_HOME", str(home))
        assert report().return_value == 0
    return home


@pytest.fixture
def finished(home: Path, finished_home: Path) -> dict[str, bytes]:
    shutil.copytree(finished_home, home, dirs_exist_ok=True)
    content = _bytes(home / "reports" / "digits")
    assert json.loads(content["provenance.json"])["finished"]
    return content


def test_a_report_on_settings_without_results_moves_the_finished_report_aside(
    home: Path, finished: dict[str, bytes]
) -> None:
    said = report("--set", "base.epochs=7")
    assert said.return_value == 1
    (other,) = _beside(home)
    assert _bytes(other) == finished
    assert f"was moved to {other}: it was made with base.epochs=3; you asked for 7" in said.stderr
    assert "0/2" in (home / "reports" / "digits" / "table.md").read_text()


def test_settings_that_are_no_hash_never_become_the_name_of_a_folder(
    home: Path, finished: dict[str, bytes]
) -> None:
    folder = home / "reports" / "digits"
    told = json.loads(finished["provenance.json"]) | {"settings": "../../../evil"}
    (folder / "provenance.json").write_text(json.dumps(told))
    assert report("--set", "base.epochs=7").return_value == 1
    (other,) = _beside(home)
    assert other.name == "digits@earlier"


def test_a_report_without_its_provenance_is_always_kept(
    home: Path, finished: dict[str, bytes]
) -> None:
    folder = home / "reports" / "digits"
    (folder / "provenance.json").unlink()
    for _ in range(2):
        assert report().return_value == 0
        (other,) = _beside(home)
        assert other.name == "digits@earlier"
        assert _bytes(other).items() == finished.items() - {
            ("provenance.json", finished["provenance.json"])
        }
        assert _bytes(folder).keys() == finished.keys()


def test_a_finished_report_of_another_study_is_moved_aside_once(
    home: Path, finished: dict[str, bytes]
) -> None:
    folder = home / "reports" / "digits"
    told = json.loads(finished["provenance.json"])
    of_other = told | {"study": "other", "settings": "0" * 32}
    for run in of_other["runs"]:
        run["run_key"] = run["run_key"][::-1]
    for _ in range(2):
        (folder / "provenance.json").write_text(json.dumps(of_other))
        said = report()
        assert said.return_value == 0
        assert "its provenance.json cannot be read or is another study's" in said.stderr
        (other,) = _beside(home)
        assert other.name == "digits@00000000"
        assert json.loads((other / "provenance.json").read_text()) == of_other


def test_a_finished_report_is_kept_if_a_run_is_damaged_or_fails_later(
    home: Path, finished: dict[str, bytes]
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


def test_a_finished_report_under_other_settings_is_not_replaced_by_an_unfinished_one(
    home: Path, finished: dict[str, bytes]
) -> None:
    train(home, "digits", "base.epochs=2")
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
    train(home)
    assert report().return_value == 0
    assert len(_beside(home)) == 1, "of the other settings"
    assert _rows(home / "reports" / "digits") == 6


def _predict(home: Path, study: Study) -> list[Path]:
    """Store predictions of every run; return the files."""
    store = Store(str(home / "store"))
    for run in study.runs():
        key = stage_keys(run.config)[-1]
        stage = store.read(key)
        content = Predictions(splits={"test": split_of(run.arm, run.seed)}).to_bytes()
        store.predictions.write(key, stage.records[-1], content)
    return sorted((home / "store").glob("predictions/*/*.bin"))


@pytest.mark.parametrize("num_lost", [1, 6])
def test_a_report_with_predictions_is_kept_beside_one_without(home: Path, num_lost: int) -> None:
    study = train(home)
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


def test_an_outdated_report_is_deleted_only_after_the_new_one_is_written(
    home: Path, finished: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
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


def names(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def test_files_are_written_and_other_files_in_the_folder_are_kept(tmp_path: Path) -> None:
    folder = tmp_path / "reports" / "study"
    replace_files(folder, {"table.md": "one ±\n", "figures/a.png": b"\x89"}, is_own=True)
    replace_files(folder, {"table.md": "two\n", "figures/b.png": b"\x90"}, is_own=True)
    assert names(tmp_path) == {
        f"reports/study/{n}" for n in ("table.md", "figures/a.png", "figures/b.png")
    }
    assert (folder / "table.md").read_text() == "two\n"
    assert (folder / "figures" / "b.png").read_bytes() == b"\x90"


def test_no_file_is_replaced_if_one_cannot_be_written(tmp_path: Path) -> None:
    folder = tmp_path / "study"
    replace_files(folder, {"a": "old", "b": "old"}, is_own=True)
    with pytest.raises(OSError, match="x" * 300):
        replace_files(folder, {"a": "new", "x" * 300: "too long a name"}, is_own=True)
    assert (folder / "a").read_text() == "old"
    assert names(tmp_path) == {"study/a", "study/b"}


def test_former_files_below_a_link_are_not_deleted(tmp_path: Path) -> None:
    folder, other = tmp_path / "study", tmp_path / "other"
    other.mkdir()
    (other / "thesis.tex").write_text("mine")
    replace_files(folder, {"a": "old"}, is_own=True)
    (folder / "docs").symlink_to(other)
    with pytest.raises(OutputError, match="docs: is not a folder"):
        replace_files(folder, {"a": "new"}, is_own=True, former=["docs/thesis.tex"])
    assert (other / "thesis.tex").read_text() == "mine"
    assert (folder / "a").read_text() == "old"


def test_files_are_written_to_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    replace_files(Path(), {"a": "new", "figures/b": "new"}, is_own=True)
    assert names(tmp_path) == {"a", "figures/b"}
