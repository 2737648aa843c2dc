"""Commands on a home, and on a finished study of photos."""

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from mixsweep.cli.main import commands
from mixup_core.store.checkpoints import Store
from tests.mixsweep.cli.photos import STUDY
from tests.mixsweep.cli.trained import train
from tests.mixup_core.small_files import fill


def type_in(*words: str) -> Result:
    """Run a command on the home `runs`."""
    # Without `color`, click would remove control sequences before a test sees them.
    return CliRunner().invoke(commands, words, standalone_mode=False, color=True)


@pytest.fixture(autouse=True)
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let commands use the home `runs` and the data folder `data` of a test."""
    monkeypatch.setenv("MIXSWEEP_HOME", str(tmp_path / "runs"))
    monkeypatch.setenv("MIXSWEEP_DATA", str(tmp_path / "data"))
    for name in ("MIXSWEEP_STORE", "MIXSWEEP_OPTUNA", "MLFLOW_TRACKING_URI"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Store of the home `runs`."""
    return Store(str(tmp_path / "runs" / "store"))


@pytest.fixture
def launched(tmp_path: Path) -> Path:
    """Home with a finished study of photos, launched with one seed more than its file has."""
    fill(tmp_path / "place" / "photos" / "train", left=3, right=3)
    fill(tmp_path / "place" / "photos" / "test", first=6, left=2, right=2)
    (tmp_path / "place" / "signs.yaml").write_text(STUDY)
    train(tmp_path / "runs", str(tmp_path / "place" / "signs.yaml"), "seeds=3")
    return tmp_path / "runs"
